"""What is made of the ticks that are due: which are fired, which wait, which are dropped.

Owns the rules of overlap and of missed ticks, as a pure function of what is stored and of the
database's time. It writes nothing, and it is asked under the lock of the schedule's row.

    late      due for more than 60 s. A tick that waits for the prior run never turns late
    latest    of all that are due, the newest
    skip      of those that are not late, the newest
    all       those that are not late, and of the late ones the newest `max_missed`; one by one,
              each when the one before has ended, unless they may overlap
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias

from holdfast.core.schedules.timing import Interval, Timing

__all__ = [
    "LATE_US",
    "MOST_AT_ONCE",
    "MOST_COUNTED",
    "FiringPlan",
    "FiringRule",
    "Missed",
    "Overlap",
    "plan",
]

Overlap: TypeAlias = Literal["skip", "wait", "allow"]
Missed: TypeAlias = Literal["latest", "skip", "all"]

LATE_US: Final = 60_000_000
MOST_AT_ONCE: Final = 100
"""Ticks that are fired in one transaction."""
MOST_WAITING: Final = 10_000
"""Ticks of one schedule that wait for their turn; of more, the oldest are dropped."""
MOST_COUNTED: Final = 10_000
"""Where the counting of ticks that are dropped at one time stops."""
MOST_NOTED: Final = 20
"""Of the ticks that are dropped at one time, how many the history names."""
_FIRST_WINDOW_US: Final = 120_000_000


@dataclass(frozen=True, slots=True)
class FiringRule:
    """When a schedule fires, and what it does with ticks that cannot be fired on time."""

    timing: Timing
    overlap: Overlap = "skip"
    missed: Missed = "latest"
    max_missed: int = 100
    start_us: int | None = None
    end_us: int | None = None

    def after(self, moment_us: int) -> Iterator[int]:
        """Its ticks after a moment, from `start` on and before `end`."""
        if self.start_us is not None:
            moment_us = max(moment_us, self.start_us - 1)
        ticks = self.timing.after(moment_us)
        end = self.end_us
        return ticks if end is None else takewhile(lambda tick: tick < end, ticks)

    def first(self, moment_us: int) -> int | None:
        """Its first tick after a moment."""
        return next(self.after(moment_us), None)

    def until(self, after_us: int, until_us: int) -> Iterator[int]:
        """Its ticks after one moment and not after another."""
        return takewhile(lambda tick: tick <= until_us, self.after(after_us))

    def newest(self, after_us: int, until_us: int, most: int) -> list[int]:
        """The newest of these, the oldest of them first; what lies further back is not walked."""
        window = _FIRST_WINDOW_US
        while True:
            begin = max(after_us, until_us - window)
            found = deque(self.until(begin, until_us), maxlen=most)
            if len(found) == most or begin == after_us:
                return list(found)
            window *= 4

    def count(self, after_us: int, until_us: int) -> int:
        """How many there are, up to `MOST_COUNTED`."""
        if isinstance(self.timing, Interval):
            first = self.first(after_us)
            last = until_us if self.end_us is None else min(until_us, self.end_us - 1)
            if first is None or first > last:
                return 0
            return min(MOST_COUNTED, (last - first) // self.timing.every_us + 1)
        return sum(1 for _ in islice(self.until(after_us, until_us), MOST_COUNTED))


@dataclass(frozen=True, slots=True)
class FiringPlan:
    """What happens to the ticks of one schedule now."""

    fire: Sequence[int] = ()
    """The oldest first."""
    waiting: Sequence[int] = ()
    """All that wait from now on."""
    overlapped: Sequence[int] = ()
    """Dropped because of the prior run; or because of a newer one, with which it waited."""
    missed: int = 0
    """How many were dropped because they came too late, or with others."""
    missed_ticks: Sequence[int] = ()
    """The newest of those."""
    next_us: int | None = None
    """The first tick that is not due yet; None: there will be none."""

    @property
    def dropped(self) -> int:
        """How many were dropped."""
        return self.missed + len(self.overlapped)


def plan(
    rule: FiringRule, next_us: int | None, waiting: Sequence[int], now_us: int, *, is_live: bool
) -> FiringPlan:
    """What to do now. `next_us` is the first tick that nothing was done about, `waiting` those that
    wait for the prior run, and `is_live` says whether that has not ended."""
    if next_us is None or next_us > now_us:
        return _overlap(rule, sorted(waiting), FiringPlan(next_us=next_us), is_live)
    after = next_us - 1
    kept = _kept(rule, after, now_us)
    missed = max(0, rule.count(after, now_us) - len(kept))
    noted: list[int] = []
    if missed:
        newest = rule.newest(after, now_us, len(kept) + MOST_NOTED)
        noted = [tick for tick in newest if tick not in set(kept)][-MOST_NOTED:]
    due = FiringPlan(missed=missed, missed_ticks=noted, next_us=rule.first(now_us))
    return _overlap(rule, sorted({*waiting, *kept}), due, is_live)


def _kept(rule: FiringRule, after: int, now_us: int) -> list[int]:
    """Those that are due and may still be fired."""
    if rule.missed == "latest":
        return rule.newest(after, now_us, 1)
    in_time = max(after, now_us - LATE_US - 1)
    if rule.missed == "skip":
        return rule.newest(in_time, now_us, 1)
    late = rule.newest(after, in_time, rule.max_missed) if in_time > after else []
    return [*late, *rule.until(in_time, now_us)]


def _overlap(rule: FiringRule, pool: Sequence[int], due: FiringPlan, is_live: bool) -> FiringPlan:
    overlapped: Sequence[int] = ()
    if rule.overlap == "allow":
        fire, waiting = pool[:MOST_AT_ONCE], pool[MOST_AT_ONCE:]
    elif rule.missed == "all":
        fire, waiting = ([], pool) if is_live else (pool[:1], pool[1:])
    elif not is_live:
        fire, waiting, overlapped = pool[-1:], [], pool[:-1]
    elif rule.overlap == "wait":
        fire, waiting, overlapped = [], pool[-1:], pool[:-1]
    else:
        fire, waiting, overlapped = [], [], pool
    if len(waiting) > MOST_WAITING:
        overlapped, waiting = waiting[:-MOST_WAITING], waiting[-MOST_WAITING:]
    return FiringPlan(fire, waiting, overlapped, due.missed, due.missed_ticks, due.next_us)
