"""What fires when, by looking at every minute: slow, and too simple to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


def _numbers(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, last = (low, high) if span == "*" else _ends(span)
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def _ends(span: str) -> tuple[int, int]:
    first, _, last = span.partition("-")
    return int(first), int(last or first)


class Pattern:
    """Five fields of numbers, lists, ranges and steps; both days given: either matches."""

    def __init__(self, text: str) -> None:
        minute, hour, day, month, weekday = text.split()
        self.minutes, self.hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
        self.days, self.months = _numbers(day, 1, 31), _numbers(month, 1, 12)
        self.weekdays = {number % 7 for number in _numbers(weekday, 0, 7)}
        self.either = day[0] != "*" and weekday[0] != "*"

    def matches_day(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = in_month or in_week if self.either else in_month and in_week
        return day.month in self.months and fits

    def matches(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and self.matches_day(wall.date())
        )


def minutes(zone: ZoneInfo, first: datetime, last: datetime) -> list[tuple[datetime, datetime]]:
    """Every minute after `first` and before `last`: its instant, and what the clock shows."""
    found, at = [], first + MINUTE
    while at < last:
        found.append((at, at.astimezone(zone).replace(tzinfo=None)))
        at += MINUTE
    return found


def elapsed(pattern: Pattern, clock: list[tuple[datetime, datetime]]) -> list[datetime]:
    """Every instant whose wall time matches."""
    return [at for at, wall in clock if pattern.matches(wall)]


def fixed(pattern: Pattern, clock: list[tuple[datetime, datetime]]) -> list[datetime]:
    """Each wall time when a clock first shows it, or shows a later one for the first time."""
    return list(_fixed(pattern, clock))


def _fixed(pattern: Pattern, clock: list[tuple[datetime, datetime]]) -> Iterator[datetime]:
    shown = clock[0][1] - MINUTE
    for at, wall in clock:
        if wall <= shown:
            continue
        # Walk the wall times between the last that was shown and this one: more than one in a gap.
        passed, step = shown, False
        while passed < wall:
            passed += MINUTE
            step = step or pattern.matches(passed)
        shown = wall
        if step:
            yield at.replace(tzinfo=UTC)
