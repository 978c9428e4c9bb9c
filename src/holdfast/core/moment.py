"""Points in time and spans of time, between the user's types and integer microseconds.

Owns the reading of what a caller may write for a time or a duration, and the refusal of
what would be guessed at: a datetime without a time zone means another moment on another
machine. It reads no clock.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from holdfast.core.errors import ConfigError

__all__ = [
    "Due",
    "Span",
    "When",
    "due",
    "from_us",
    "instant_us",
    "length",
    "optional_us",
    "span_us",
    "to_us",
]

Span: TypeAlias = "float | timedelta | str"
"""A duration: seconds, a timedelta, or text such as "90s", "12h", "30d"."""
When: TypeAlias = "float | timedelta | datetime"
"""A later time: seconds or a timedelta from now, or an aware datetime."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_US: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_LONGEST_US: Final = 100 * 366 * 86_400 * 1_000_000
_SPAN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")
_UNIT_US: Final = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


def to_us(moment: datetime) -> int:
    """Microseconds since 1970 UTC of an aware datetime, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The aware datetime, in UTC, of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)


def instant_us(moment: datetime, *, option: str) -> int:
    """Microseconds of a datetime that a caller gave as `option`."""
    if not isinstance(moment, datetime):
        raise ConfigError(
            f"{option}={moment!r} is not a time: give a datetime with a time zone", option=option
        )
    if moment.utcoffset() is None:
        raise ConfigError(
            f"{option}={moment!r} has no time zone: "
            "use datetime.now(timezone.utc), or call .astimezone() on it",
            option=option,
        )
    us = to_us(moment)
    if not _FIRST_US <= us <= _LAST_US:
        raise ConfigError(
            f"{option}={moment.isoformat()} is not usable: in UTC it is outside the years 1 to "
            "9999",
            option=option,
        )
    return us


def optional_us(moment: datetime | None, *, option: str) -> int | None:
    """Microseconds of an optional moment that a caller gave."""
    return None if moment is None else instant_us(moment, option=option)


def span_us(span: Span, *, option: str) -> int:
    """Microseconds of a duration that a caller gave as `option`; never negative."""
    us = _read_span(span)
    if us is None:
        raise ConfigError(
            f"{option}={span!r} is not a duration: "
            'give seconds, a timedelta, or text such as "90s", "12h", "30d"',
            option=option,
        )
    if not 0 <= us <= _LONGEST_US:
        raise ConfigError(f"{option}={span!r} must be between 0 and 100 years", option=option)
    return us


def _read_span(span: object) -> int | None:
    if isinstance(span, timedelta):
        return span // _MICROSECOND
    if isinstance(span, str):
        read = _SPAN.fullmatch(span)
        return None if read is None else round(float(read[1]) * _UNIT_US[read[2]])
    if isinstance(span, int | float) and not isinstance(span, bool):
        if isinstance(span, float) and not math.isfinite(span):
            return None
        return round(span * 1_000_000)
    return None


@dataclass(frozen=True, slots=True)
class Due:
    """When a task becomes claimable: after a delay by the database's clock, or at a moment.

    At most one is set; neither means at once.
    """

    delay_us: int | None = None
    run_at: int | None = None


def length(seconds: float, units: int = 2) -> str:
    """A duration for people: `4 ms`, `0.05 s`, `12 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`."""
    if 0 < seconds < 0.01:
        return f"{seconds * 1000:.2g} ms"
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    left = round(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {unit}")
        if parts and (len(parts) == units or not number):
            break
    return " ".join(parts)


def due(when: When, *, option: str) -> Due:
    """Read a delay or a moment. A delay of nothing is at once."""
    if isinstance(when, datetime):
        return Due(run_at=instant_us(when, option=option))
    if isinstance(when, int | float | timedelta):
        return Due(delay_us=span_us(when, option=option) or None)
    raise ConfigError(
        f"{option}={when!r} is not a time: give seconds, a timedelta or an aware datetime",
        option=option,
    )
