"""Ticks: against an oracle that looks at every minute, and at the ends of the calendar."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.moment import from_us, to_us
from holdfast.core.schedules.timing import Cron, Interval, Once, Timing, read
from tests.core.schedules import oracle

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago")
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
ELAPSED = (
    "*/30 2 * * *",
    "*/30 1 * * *",
    "*/15 1 * * *",
    "*/30 23 * * *",
    "*/30 0 * * *",
    "0 * * * *",
    "15 */2 * * *",
    "* 3 * * *",
    "*/20 */5 1,15 * *",
    "30 * * * 0",
)
FIXED = (
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 2 * * *",
    "45 1 * * *",
    "15,45 2 * * *",
    "0 3 * * *",
    "30 23 * * *",
    "0 2-4 * * *",
    "30 2 * * 0",
)


def _between(timing: Timing, first: datetime, last: datetime) -> list[datetime]:
    ticks = map(from_us, timing.after(to_us(first)))
    return list(takewhile(lambda tick: tick < last, ticks))


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_of_three_years_against_the_oracle(zone: str) -> None:
    _compare(zone, FIRST, LAST)


@pytest.mark.parametrize("zone", ZONES)
def test_every_change_of_the_clocks_in_three_years_against_the_oracle(zone: str) -> None:
    days = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days)]
    offsets = [day.astimezone(ZoneInfo(zone)).utcoffset() for day in days]
    changes = [day for day, a, b in zip(days, offsets, offsets[1:], strict=False) if a != b]
    assert len(changes) == 6
    for day in changes:
        _compare(zone, day - timedelta(days=2), day + timedelta(days=8))


def _compare(zone: str, first: datetime, last: datetime) -> None:
    clock = oracle.minutes(ZoneInfo(zone), first, last)
    chance = random.Random(7)
    for patterns, expected in ((ELAPSED, oracle.elapsed), (FIXED, oracle.fixed)):
        for text in patterns:
            cron = Cron(text, zone)
            found = _between(cron, first, last)
            assert found == expected(oracle.Pattern(text), clock), (zone, text)
            for place in chance.choices(range(len(found) - 1), k=20 if len(found) > 1 else 0):
                earlier, later = found[place], found[place + 1]
                within = earlier + (later - earlier) * chance.random()
                assert from_us(next(cron.after(to_us(within)))) == later, (zone, text, within)


@pytest.mark.parametrize(
    ("zone", "pattern", "day", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["00:30"]),
        ("America/New_York", "30 2 * * *", "2026-03-08", ["07:00"]),
        ("America/New_York", "30 1 * * *", "2026-11-01", ["05:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", ["15:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", ["14:45"]),
        ("America/Santiago", "0 0 * * *", "2026-09-06", ["04:00"]),
        ("America/Santiago", "30 23 * * *", "2026-04-04", ["02:30"]),
        ("Europe/Berlin", "15,45 2 * * *", "2026-03-29", ["01:00"]),
        ("Europe/Berlin", "0 30 2 * * *", "2026-03-29", ["01:00"]),
        ("Europe/Berlin", "0 30 2 * * *", "2026-10-25", ["00:30"]),
    ],
)
def test_fixed_patterns_where_the_clocks_change(
    zone: str, pattern: str, day: str, expected: list[str]
) -> None:
    assert [f"{tick:%H:%M}" for tick in _of_day(zone, pattern, day)] == expected


@pytest.mark.parametrize(
    ("zone", "pattern", "day", "number"),
    [
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-29", 0),
        ("Europe/Berlin", "0 * * * *", "2026-03-29", 23),
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-25", 4),
        ("Europe/Berlin", "0 * * * *", "2026-10-25", 25),
        ("America/New_York", "*/30 2 * * *", "2026-03-08", 0),
        ("America/New_York", "*/30 1 * * *", "2026-11-01", 4),
        ("Australia/Lord_Howe", "*/15 2 * * *", "2026-10-04", 2),
        ("Australia/Lord_Howe", "*/15 1 * * *", "2026-04-05", 6),
        ("America/Santiago", "*/30 0 * * *", "2026-09-06", 0),
        ("America/Santiago", "*/30 23 * * *", "2026-04-04", 4),
    ],
)
def test_elapsed_patterns_where_the_clocks_change(
    zone: str, pattern: str, day: str, number: int
) -> None:
    assert len(_of_day(zone, pattern, day)) == number


def _of_day(zone: str, pattern: str, day: str) -> list[datetime]:
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    begin = (start - timedelta(hours=2)).astimezone(UTC)
    ticks = _between(Cron(pattern, zone), begin, begin + timedelta(hours=29))
    return [tick for tick in ticks if tick.astimezone(ZoneInfo(zone)).date() == start.date()]


def test_nothing_is_past_inside_the_repeated_hour() -> None:
    after = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    tick = next(Cron("30 2 * * *", "Europe/Berlin").after(to_us(after)))
    assert from_us(tick) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_a_day_that_was_left_out() -> None:
    # Samoa went over the date line: there was no 30 December 2011.
    found = _between(
        Cron("0 12 * * *", "Pacific/Apia"),
        datetime(2011, 12, 29, tzinfo=UTC),
        datetime(2012, 1, 1, tzinfo=UTC),
    )
    assert [f"{tick:%d %H:%M}" for tick in found] == [
        "29 22:00",
        "30 10:00",
        "30 22:00",
        "31 22:00",
    ]


def test_intervals_are_multiples_since_their_start() -> None:
    five = read(timedelta(minutes=5))
    assert list(islice(five.after(0), 2)) == [300_000_000, 600_000_000]
    assert next(five.after(299_999_999)) == 300_000_000
    later = read(timedelta(minutes=5), start_us=7)
    assert list(islice(later.after(-1_000), 2)) == [7, 300_000_007]
    assert read(later.text, start_us=7) == later == Interval(300_000_000, 7)


def test_a_single_moment_comes_once() -> None:
    once = read(datetime(2027, 1, 1, tzinfo=UTC))
    assert isinstance(once, Once)
    assert read(once.text) == once
    assert list(once.after(once.at_us - 1)) == [once.at_us]
    assert list(once.after(once.at_us)) == []


@pytest.mark.parametrize("moment", [-(2**63), 0, 253_402_300_799_999_999])
@pytest.mark.parametrize("when", ["0 0 29 2 *", "* * * * * *", "@hourly", timedelta(days=9)])
def test_the_ends_of_the_calendar(when: str | timedelta, moment: int) -> None:
    for zone in ("Pacific/Kiritimati", "America/Adak"):
        assert len(list(islice(read(when, zone).after(moment), 2))) in (0, 2)


@pytest.mark.parametrize(
    "when",
    [
        "",
        "* * * *",
        "61 * * * *",
        "0 0 31 2 *",
        "@sometimes",
        "@every 5",
        "x" * 10_000,
        "* * * * *\0",
        "\ud800 * * * *",
        "*/0 * * * *",
        "L/2 * * * *",
        "* * L# * *",
        5,
        None,
        timedelta(0),
        timedelta(seconds=-5),
        timedelta(milliseconds=999),
        datetime(2027, 1, 1),  # noqa: DTZ001 - that is what is refused
    ],
)
def test_what_is_no_time_is_refused(when: object) -> None:
    with pytest.raises(ConfigError, match=r"give|Give|use|must be") as refused:
        read(when)  # type: ignore[arg-type]
    assert refused.value.option == "when"


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../etc/passwd", "Europe", "x" * 999, "\0", 5])
def test_what_is_no_zone_is_refused(zone: object) -> None:
    with pytest.raises(ConfigError, match="Europe/Berlin") as refused:
        read("0 0 * * *", zone)  # type: ignore[arg-type]
    assert refused.value.option == "tz"
