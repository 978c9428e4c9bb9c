"""Numbers and times as pages say them.

Ages: seconds to 119 s, then minutes, hours, days. Durations keep three digits. What is absent is
a dash, which the templates write. `static/live.js` counts ages on by the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = [
    "age",
    "as_sentence",
    "capped",
    "compact",
    "count_of",
    "duration",
    "exact",
    "in_words",
    "memory",
    "number",
    "percent",
    "round_duration",
    "until",
]

_AGES: Final = ((120, 1, "s"), (7_200, 60, "m"), (172_800, 3_600, "h"))
_SIZES: Final = ("", "k", "M", "G")


def age(at: datetime, now: datetime) -> str:
    """`3s`, `12m`, `24h`, `104d`: for how long it has been; of what lies ahead, until then."""
    seconds = int(abs((now - at).total_seconds()))
    for below, unit, letter in _AGES:
        if seconds < below:
            return f"{seconds // unit}{letter}"
    return f"{seconds // 86_400}d"


def until(at: datetime, now: datetime) -> str:
    """`in 12m`, or `3s ago`."""
    return f"in {age(at, now)}" if at > now else f"{age(at, now)} ago"


def duration(span: timedelta | float) -> str:
    """`214 ms`, `1.87 s`, `41.2 s`, `3m 08s`, `2h 05m`, `3d 04h`."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    seconds = max(0.0, seconds)
    if seconds < 0.0005:
        return "0 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3_600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3_600}h {whole % 3_600 // 60:02}m"
    return f"{whole // 86_400:,}d {whole % 86_400 // 3_600:02}h"


def round_duration(span: timedelta | float) -> str:
    """The same without what is nothing, for numbers that are round: `20 s`, `30m`, `2h`."""
    return re.sub(r"\.0+(?= s)|(?<=[mhd]) 00[smh]", "", duration(span))


def exact(at: datetime) -> str:
    """`2026-11-16 14:32:05 UTC`: what stands behind every age."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(value: float) -> str:
    """`1,037`; of small fractions two digits."""
    if 0 < value < 0.1:
        return "<0.1"
    if value < 10 and value != int(value):
        return f"{value:.2g}"
    return f"{value:,.0f}"


def capped(value: int, cap: int) -> str:
    """`12,480`, or `10,000+` where counting stopped."""
    return f"{cap:,}+" if value >= cap else f"{value:,}"


def compact(value: float) -> str:
    """`212`, `1.0k`, `14.2k`, `1.9M`: where there is little room."""
    size = 0
    while value >= 999.5 and size < len(_SIZES) - 1:
        value /= 1000
        size += 1
    if size == 0:
        return number(value)
    return f"{value:.1f}{_SIZES[size]}" if value < 99.95 else f"{value:.0f}{_SIZES[size]}"


def percent(fraction: float) -> str:
    """`34 %`, `1.8 %`, `0.02 %`."""
    value = fraction * 100
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.2g} %"


def memory(megabytes: float) -> str:
    """`412 MB`, `1.9 GB`."""
    return f"{megabytes:.0f} MB" if megabytes < 999.5 else f"{megabytes / 1000:.1f} GB"


def count_of(value: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `437 tasks`."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def in_words(names: Sequence[str]) -> str:
    """`Waiting, Pending or Claimed`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


def as_sentence(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]
