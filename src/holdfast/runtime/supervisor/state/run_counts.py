"""What this worker has counted about ended runs and not yet written.

Owns the counts of one thread, the finisher's; `core/statistics.py` has their names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from holdfast.core.outcome import Interrupted, NotBegun, Outcome, SnoozeAsked, StoppedByShutdown
from holdfast.core.statistics import ENDINGS, run_column, wait_column
from holdfast.core.status import TaskStatus
from holdfast.store.verbs.statistics import Tally

HANDED_OVER: Final = "handed_over"
"""Of a run whose task has not ended with it: what the steps it has added come to is its end, and is
counted then."""
_INTERRUPTIONS = (Interrupted, NotBegun, StoppedByShutdown)


class RunCounts:
    """Counts by queue and task name."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def ran(self, queue: str, name: str, counted_as: str, took_us: Sequence[int]) -> None:
        """So many runs ended in the same way, and took so long."""
        counts = self._counts[queue, name]
        if counted_as != HANDED_OVER:
            counts[counted_as] += len(took_us)
        counts["run_us"] += sum(took_us)
        for us in took_us:
            counts[run_column(us)] += 1

    def waited(self, queue: str, name: str, waits_us: Sequence[int]) -> None:
        """So long had runs been claimable before they were given to a child."""
        counts = self._counts[queue, name]
        counts["wait_us"] += sum(waits_us)
        for us in waits_us:
            counts[wait_column(us)] += 1

    def tallies(self, worker_id: str) -> list[Tally]:
        """What is to be written."""
        return [
            Tally(worker_id, queue, name, counts) for (queue, name), counts in self._counts.items()
        ]

    def clear(self) -> None:
        """It has been written."""
        self._counts.clear()


def counted_as(status: TaskStatus | None, outcome: Outcome) -> str:
    """Which counter a run that ended so belongs to."""
    if status is None:
        return "completed"
    if status is TaskStatus.WAITING:
        return HANDED_OVER
    if status in (TaskStatus.SCHEDULED, TaskStatus.PENDING):
        if isinstance(outcome, SnoozeAsked):
            return "snoozed"
        return "interrupted" if isinstance(outcome, _INTERRUPTIONS) else "retried"
    name = status.value.lower()
    return name if name in ENDINGS else "other"
