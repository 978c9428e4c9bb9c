"""Times as an operator reads and types them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from holdfast.cli.render import times

NOW = datetime(2030, 3, 17, 17, 46, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.0512, "0.051 s"),
        (1.26, "1.3 s"),
        (12.4, "12 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
        (-185, "-3 min 5 s"),
    ],
)
def test_a_length_of_time_in_words(seconds: float, words: str) -> None:
    assert times.length(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("seconds", "words", "rough"),
    [
        (0.4, "now", "now"),
        (-185, "3 min 5 s ago", "3 min ago"),
        (7500, "in 2 h 5 min", "in 2 h"),
    ],
)
def test_a_moment_against_now(seconds: float, words: str, rough: str) -> None:
    at = NOW + timedelta(seconds=seconds)
    assert times.relative(at, NOW) == words
    assert times.roughly(at, NOW) == rough
    assert times.both(at, NOW).endswith(f" UTC ({words})")


def test_moments_are_shown_in_utc() -> None:
    local = NOW.astimezone(None)
    assert times.stamp(local) == "2030-03-17T17:46:40Z"
    assert times.exact(local) == "2030-03-17T17:46:40.000000Z"


def typed(text: str) -> times.Given | None:
    return times.given(click.Context(click.Command("x")), click.Option(["--since"]), text)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        (" 12h ", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
    ],
)
def test_lengths_of_time_are_read(text: str, span: timedelta) -> None:
    assert typed(text) == span


def test_moments_are_read() -> None:
    assert typed("2030-03-17T17:46:40Z") == NOW
    assert typed("2030-03-17T18:46:40+01:00") == NOW
    assert typed("2030-03-17T17:46") == datetime(2030, 3, 17, 17, 46).astimezone()
    assert typed("2030-03-17") == datetime(2030, 3, 17).astimezone()


@pytest.mark.parametrize(
    "text", ["", "soon", "1y", "-5", "nan", "inf", "2030-13-01", "9999999999999"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        typed(text)


def test_lengths_count_back_or_forward() -> None:
    hour = timedelta(hours=1)
    assert times.before(hour, NOW) == NOW - hour
    assert times.after(hour, NOW) == NOW + hour
    assert times.before(NOW, NOW) == times.after(NOW, NOW) == NOW
    assert times.before(timedelta(days=36_500), NOW).year == 1970
