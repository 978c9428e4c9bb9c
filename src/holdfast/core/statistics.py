"""What is counted about tasks over time, and what can be told from the counts.

Owns the names of the counters, the bounds of the histograms, and percentiles. The bounds are
fixed: each is a column of the store, so counts of any two times and workers can be added up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

__all__ = [
    "BOUNDS",
    "COUNTERS",
    "ENDINGS",
    "RUN",
    "WAIT",
    "Counts",
    "Level",
    "level_for",
    "percentile",
    "run_column",
    "wait_column",
]

BOUNDS: Final = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    15.0,
    60.0,
    300.0,
    1800.0,
)
"""Upper bounds of the buckets in seconds; the last bucket, behind them, has none."""
ENDINGS: Final = ("completed", "failed", "cancelled", "stalled", "expired", "dropped")
"""Counters of tasks that ended, by the status they ended in."""
WAIT: Final = tuple(f"wait_{place:02d}" for place in range(len(BOUNDS) + 1))
RUN: Final = tuple(f"run_{place:02d}" for place in range(len(BOUNDS) + 1))
COUNTERS: Final = (
    "sent",
    *ENDINGS,
    "retried",
    "snoozed",
    "interrupted",
    "other",
    "wait_us",
    "run_us",
    *WAIT,
    *RUN,
)
"""Every counter, in the order in which the store's statements have them."""

Counts: TypeAlias = Mapping[str, int]
Level: TypeAlias = Literal["minute", "hour", "day", "ever"]

_BOUNDS_US: Final = tuple(round(bound * 1_000_000) for bound in BOUNDS)
_HOUR_US: Final = 3_600_000_000


def wait_column(us: int) -> str:
    """The counter for a task that waited so long."""
    return WAIT[bisect_left(_BOUNDS_US, us)]


def run_column(us: int) -> str:
    """The counter for a run that took so long."""
    return RUN[bisect_left(_BOUNDS_US, us)]


def level_for(step_us: int) -> Level:
    """Of which level the counts are that a series with this step is made of."""
    if step_us % (24 * _HOUR_US) == 0:
        return "day"
    return "hour" if step_us % _HOUR_US == 0 else "minute"


def percentile(buckets: Sequence[int], share: float) -> float | None:
    """Seconds that this share of what was counted did not exceed; None if nothing was counted.

    It is as exact as the buckets are: inside one, values are taken to lie evenly. In the last,
    which has no end, it is where that begins.
    """
    total = sum(buckets)
    if not total:
        return None
    wanted, below = share * total, 0
    for place, number in enumerate(buckets):
        if number and below + number >= wanted:
            low = BOUNDS[place - 1] if place else 0.0
            if place == len(BOUNDS):
                return low
            return low + (BOUNDS[place] - low) * max(0.0, wanted - below) / number
        below += number
    return BOUNDS[-1]
