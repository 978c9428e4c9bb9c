"""The ticks of a schedule: cron patterns in a time zone, intervals, and single moments.

Owns which moments a pattern means. It reads no clock: all is asked from a given moment on, in
integer µs since 1970 UTC, and answered for any other process in the same way.

cronsim reads the fields of a cron pattern and walks the calendar, on wall time without a zone.
The zone is this module's own business, because wall time has gaps and overlaps:

    elapsed   the minute or the hour field starts with `*`: every instant whose wall time matches
    fixed     any other: each wall time once. In an overlap its first occurrence; in a gap the
              instant at which the gap ends, and several that fall into one gap are one tick
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.core.errors import ConfigError
from holdfast.core.moment import from_us, instant_us, span_us, to_us

__all__ = [
    "ALIASES",
    "DEFAULT_ZONE",
    "Cron",
    "Interval",
    "Once",
    "Timing",
    "When",
    "read",
    "zone_of",
]

When: TypeAlias = "str | timedelta | datetime"
"""A cron pattern, the length of an interval, or one aware moment."""

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
DEFAULT_ZONE: Final = "UTC"
_EVERY: Final = re.compile(r"@every (\d{1,18})us")
_ONCE: Final = re.compile(r"@once (-?\d{1,18})")
_LONGEST: Final = 200
_SHORTEST_US: Final = 1_000_000
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
_FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9998, 1, 1, tzinfo=UTC)
"""Beyond these a time zone would leave the calendar."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron pattern in a time zone."""

    pattern: str
    zone: str = "UTC"

    @property
    def text(self) -> str:
        """As it is stored."""
        return self.pattern

    @property
    def fields(self) -> list[str]:
        """Its five or six fields."""
        return ALIASES.get(self.pattern, self.pattern).split()

    @property
    def is_elapsed(self) -> bool:
        """Whether it means instants, and not wall times."""
        return self.fields[-5].startswith("*") or self.fields[-4].startswith("*")

    def after(self, moment_us: int) -> Iterator[int]:
        """Its ticks after a moment, the earliest first."""
        moment = from_us(max(moment_us, _FIRST_US)).replace(microsecond=0)
        if moment >= _LAST:
            return iter(())
        zone = zone_of(self.zone)
        pattern = " ".join(self.fields)
        ticks = _elapsed if self.is_elapsed else _fixed
        return map(to_us, takewhile(lambda tick: tick < _LAST, ticks(pattern, zone, moment)))


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole multiples of a length since a moment, so a restart shifts nothing."""

    every_us: int
    since_us: int = 0

    @property
    def text(self) -> str:
        """As it is stored; `since_us` is the schedule's `start`."""
        return f"@every {self.every_us}us"

    def after(self, moment_us: int) -> Iterator[int]:
        """Its ticks after a moment, the earliest first."""
        passed = (moment_us - self.since_us) // self.every_us + 1
        tick = self.since_us + max(passed, 0) * self.every_us
        while tick < _LAST_US:
            yield tick
            tick += self.every_us


@dataclass(frozen=True, slots=True)
class Once:
    """One moment."""

    at_us: int

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"@once {self.at_us}"

    def after(self, moment_us: int) -> Iterator[int]:
        """Itself, if it comes after this moment."""
        return iter((self.at_us,) if self.at_us > moment_us else ())


Timing: TypeAlias = "Cron | Interval | Once"

_FIRST_US: Final = to_us(_FIRST)
_LAST_US: Final = to_us(_LAST)


def read(when: When, tz: str = "UTC", start_us: int | None = None) -> Timing:
    """What a caller wrote, or what was stored; `ConfigError` if it means nothing."""
    if isinstance(when, timedelta):
        every = span_us(when, option="when")
        if every < _SHORTEST_US:
            raise ConfigError(
                f"an interval of {when} is too short: give at least a second", option="when"
            )
        return Interval(every, start_us or 0)
    if isinstance(when, datetime):
        return Once(instant_us(when, option="when"))
    if not isinstance(when, str):
        raise ConfigError(
            f"{when!r:.200} is not a time to fire at: give a cron pattern such as '30 2 * * *', a "
            "timedelta, or a datetime with a time zone",
            option="when",
        )
    if stored := _EVERY.fullmatch(when):
        return Interval(max(int(stored[1]), _SHORTEST_US), start_us or 0)
    if stored := _ONCE.fullmatch(when):
        return Once(_in_the_calendar(int(stored[1])))
    return _cron(when, tz)


def _in_the_calendar(at_us: int) -> int:
    try:
        from_us(at_us)
    except OverflowError:
        raise ConfigError(f"@once {at_us} is a time beyond all years", option="when") from None
    return at_us


def _cron(pattern: str, tz: str) -> Cron:
    found = Cron(" ".join(pattern.split()) if len(pattern) <= _LONGEST else "", tz)
    zone_of(tz)
    problem = _wrong(found)
    if problem is not None:
        raise ConfigError(
            f"the pattern {pattern!r:.200} is not usable: {problem}. Give five fields (minute hour "
            "day month weekday), six with seconds first, or one of " + ", ".join(ALIASES),
            option="when",
        )
    return found


def _wrong(cron: Cron) -> str | None:
    if not cron.pattern:
        return f"it is empty, or longer than {_LONGEST} characters"
    if cron.pattern.startswith("@") and cron.pattern not in ALIASES:
        return "there is no such word"
    if len(cron.fields) not in (5, 6):
        return f"it has {len(cron.fields)} field(s)"
    try:
        # Whether any day matches depends on no zone.
        next(CronSim(" ".join(cron.fields), datetime(2024, 1, 1)))  # noqa: DTZ001 - wall time
    except CronSimError as error:
        return str(error).replace("Bad ", "it has a bad ")
    except StopIteration:
        return "no day matches it"
    except Exception as error:  # noqa: BLE001 - whatever the parser did not foresee is the pattern's
        return f"it cannot be read ({type(error).__name__})"
    return None


def zone_of(name: object) -> ZoneInfo:
    """The time zone of this name; `ConfigError` if there is none."""
    if not isinstance(name, str) or not name or len(name) > 100:
        raise _no_zone(name)
    return _zone(name)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError) as error:
        # ZoneInfoNotFoundError is a KeyError; a directory or a device is an OSError.
        raise _no_zone(name) from error
    except KeyError as error:
        raise _no_zone(name) from error


def _no_zone(name: object) -> ConfigError:
    return ConfigError(
        f"tz={name!r:.200} is no time zone that is known here: give a name such as 'Europe/Berlin' "
        "or 'UTC' (where the system has no time zones: pip install tzdata)",
        option="tz",
    )


def _elapsed(pattern: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Every instant whose wall time matches: one stretch of constant offset after the other."""
    at = after
    while at < _LAST:
        offset = _offset(at + _SECOND, zone)
        changed = False
        for wall in _walls(pattern, (at + offset).replace(tzinfo=None)):
            tick = (wall - offset).replace(tzinfo=UTC)
            change = _first_change(zone, at + _SECOND, tick, offset)
            if change is not None:
                # Nothing matches before the change: what matched lies behind it.
                at = change - _SECOND
                changed = True
                break
            yield tick
            at = tick
        if not changed:
            return


def _fixed(pattern: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Each wall time once, in its first occurrence; in a gap, when the gap ends."""
    last = after
    for wall in _walls(pattern, after.astimezone(zone).replace(tzinfo=None)):
        tick = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if tick.astimezone(zone).replace(tzinfo=None) != wall:
            # Before the gap its wall time would have been this instant: the gap ended before it.
            gap_end = _first_change(zone, tick - 2 * _DAY, tick, None)
            tick = tick if gap_end is None else gap_end
        if tick > last:
            last = tick
            yield tick


def _walls(pattern: str, after: datetime) -> Iterator[datetime]:
    """The wall times that match, until no more do for fifty years or the calendar ends."""
    walls = CronSim(pattern, after)
    while True:
        try:
            yield next(walls)
        except (StopIteration, OverflowError, ValueError):
            return


def _first_change(
    zone: ZoneInfo, start: datetime, end: datetime, offset: timedelta | None
) -> datetime | None:
    """The first instant in (start, end] with another offset than `start`; looks a day at a time,
    so two changes within a day that undo each other are not seen (there have been none)."""
    offset = _offset(start, zone) if offset is None else offset
    while start < end:
        behind = min(end, start + _DAY)
        if _offset(behind, zone) != offset:
            while behind - start > _SECOND:
                middle = start + timedelta(seconds=(behind - start) // _SECOND // 2)
                if _offset(middle, zone) == offset:
                    start = middle
                else:
                    behind = middle
            return behind
        start = behind
    return None


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()
