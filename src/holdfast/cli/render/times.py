"""Times as an operator reads and writes them.

Owns the words for moments and durations, and the reading of `--since 2h` and
`--at 2026-11-15T22:00`. Moments are shown in UTC, like everything the database says; what
an operator types without a zone is the local time of the machine it is typed on. "Now" is
always the database's and comes as an argument.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import click

from holdfast.core import moment
from holdfast.core.errors import ConfigError
from holdfast.core.moment import span_us

Given: TypeAlias = "timedelta | datetime"
"""What an operator typed: a length of time, or a moment."""

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(at: datetime) -> str:
    """`2026-11-15T22:05:01Z`: sorts, has no space, and any program reads it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact(at: datetime) -> str:
    """The same to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def length(span: timedelta, units: int = 2) -> str:
    """`0.05 s`, `12 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = span.total_seconds()
    if seconds < 0:
        return f"-{length(-span, units)}"
    return moment.length(seconds, units)


def relative(at: datetime, now: datetime, units: int = 2) -> str:
    """`3 min 5 s ago`, `in 12 s`, `now`."""
    passed = now - at
    if abs(passed) < timedelta(seconds=1):
        return "now"
    if passed > timedelta(0):
        return f"{length(passed, units)} ago"
    return f"in {length(-passed, units)}"


def roughly(at: datetime, now: datetime) -> str:
    """`3 min ago`, `in 12 s`, `now`: for a column."""
    return relative(at, now, units=1)


def both(at: datetime, now: datetime) -> str:
    """`2026-11-15 22:05:01 UTC (3 min 5 s ago)`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({relative(at, now)})"


def given(ctx: click.Context, param: click.Parameter, value: str | None) -> Given | None:
    """The callback of an option that takes a time: `90`, `90s`, `12h`, or an ISO moment."""
    if value is None:
        return None
    try:
        return read(value.strip())
    except (ValueError, OverflowError):
        # The ends of the calendar have no place in every time zone.
        raise click.BadParameter(
            f"{value!r} is not a time: give seconds, a length such as 90s, 15m, 12h or 30d, "
            "or a moment such as 2026-11-15T22:00 or 2026-11-15T22:00Z",
            ctx,
            param,
        ) from None


def read(text: str) -> Given:
    """A length of time, or a moment; `ValueError` or `OverflowError` for anything else."""
    try:
        span = timedelta(microseconds=span_us(_seconds(text), option="time"))
    except ConfigError:
        return datetime.fromisoformat(text).astimezone()
    return span


def span(ctx: click.Context, param: click.Parameter, value: str) -> timedelta:
    """The callback of an option that takes a length of time: `90`, `90s`, `12h`."""
    try:
        return timedelta(microseconds=span_us(_seconds(value.strip()), option="time"))
    except (ConfigError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is not a length of time: give seconds, or 90s, 15m, 12h, 30d", ctx, param
        ) from None


def _seconds(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def before(typed: Given, now: datetime) -> datetime:
    """The moment meant by `--since 2h`: a length of time counts back from now."""
    if isinstance(typed, datetime):
        return typed
    return now - min(typed, now - _LONG_AGO)


def after(typed: Given, now: datetime) -> datetime:
    """The moment meant by `--delay 2h`: a length of time counts forward from now."""
    return typed if isinstance(typed, datetime) else now + typed


delay = click.option(
    "--delay", metavar="TIME", callback=given, help="Not before: 90s, 2h, or a moment."
)
