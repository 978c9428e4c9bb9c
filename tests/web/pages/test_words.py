"""Times and numbers as pages say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.web.pages import words

NOW = datetime(2026, 11, 16, 14, 32, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (7_199, "119m"),
        (7_200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (9_000_000, "104d"),
        (-30, "30s"),
    ],
)
def test_ages(seconds: float, said: str) -> None:
    assert words.age(NOW - timedelta(seconds=seconds), NOW) == said


def test_ages_at_the_ends_of_the_calendar() -> None:
    assert words.age(datetime.min.replace(tzinfo=UTC), NOW).endswith("d")
    assert words.age(datetime.max.replace(tzinfo=UTC), NOW).endswith("d")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 ms"),
        (0.214, "214 ms"),
        (0.9996, "1.00 s"),
        (1.87, "1.87 s"),
        (9.999, "10.0 s"),
        (41.2, "41.2 s"),
        (99.96, "1m 40s"),
        (188, "3m 08s"),
        (3_599.9, "1h 00m"),
        (7_500, "2h 05m"),
        (273_600, "3d 04h"),
        (-1, "0 ms"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said
    assert words.duration(timedelta(seconds=seconds)) == said


def test_round_durations() -> None:
    spans = (0.1, 1, 2.4, 20, 60, 1_800, 1_830, 7_200, 9_000, 172_800)
    assert [words.round_duration(span) for span in spans] == [
        "100 ms", "1 s", "2.40 s", "20 s", "60 s", "30m", "30m 30s", "2h", "2h 30m", "2d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (212, "212"), (999, "999"), (1_000, "1.0k"), (14_206, "14.2k"), (1.92e6, "1.9M")],
)
def test_compact_numbers(value: float, said: str) -> None:
    assert words.compact(value) == said


def test_other_numbers() -> None:
    assert words.capped(12_480, 100_000) == "12,480"
    assert words.capped(10_000, 10_000) == "10,000+"
    assert words.count_of(1, "task") == "1 task"
    assert words.count_of(437, "task") == "437 tasks"
    assert words.count_of(2, "retry", "retries") == "2 retries"
    assert words.percent(0.34) == "34 %"
    assert words.percent(0.018) == "1.8 %"
    assert words.memory(1_900) == "1.9 GB"
    assert words.number(0.017) == "<0.1"
    assert words.number(1_037.4) == "1,037"
    assert words.exact(NOW) == "2026-11-16 14:32:05 UTC"
    assert words.until(NOW + timedelta(seconds=90), NOW) == "in 90s"
    assert words.in_words(["a", "b", "c"]) == "a, b or c"
