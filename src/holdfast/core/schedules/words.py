"""A schedule in words, for people: "at 02:30 every day (Europe/Berlin)"."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from cronsim import CronSim

from holdfast.core.moment import from_us, length
from holdfast.core.schedules.timing import Cron, Interval, Timing

__all__ = ["in_words"]

_EVERY_SECOND: Final = re.compile(r"\bevery second (?=(second|minute|hour|day|month)\b)")
"""Of two: it reads like the unit of time."""


def in_words(timing: Timing) -> str:
    """When it fires, in words."""
    if isinstance(timing, Cron):
        return f"{_cron(timing)} ({timing.zone})"
    if isinstance(timing, Interval):
        every = f"every {_span(timing.every_us)}"
        return f"{every}, since {_moment(timing.since_us)}" if timing.since_us else every
    return f"once, at {_moment(timing.at_us)}"


def _span(us: int) -> str:
    if us % 1_000_000:
        return f"{us / 1_000_000:g} s"
    return length(us // 1_000_000, units=4) if us >= 10_000_000 else f"{us // 1_000_000} s"


def _cron(cron: Cron) -> str:
    pattern = " ".join(cron.fields)
    try:
        # Only the fields are put into words, so the moment does not matter.
        text = CronSim(pattern, datetime(2024, 1, 1)).explain()  # noqa: DTZ001 - wall time
    except Exception:  # noqa: BLE001 - a pattern without words is shown as it is
        return cron.pattern
    return _EVERY_SECOND.sub("every other ", text[:1].lower() + text[1:])


def _moment(us: int) -> str:
    return from_us(us).isoformat(sep=" ", timespec="seconds")
