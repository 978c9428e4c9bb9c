"""Counters per minute, worker, queue and task: what charts are drawn from.

Owns the `stats` table. Each worker adds to rows of its own, so that counting never makes
two workers wait for each other; readers add the rows up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.op import At, Column, Statement, Steps, Table, alone, reads

_COLUMNS = {
    "worker_id": Column.TEXT,
    "queue_name": Column.TEXT,
    "task_name": Column.TEXT,
    "completed": Column.BIGINT,
    "failed": Column.BIGINT,
    "retried": Column.BIGINT,
    "other": Column.BIGINT,
    "wait_us": Column.BIGINT,
    "run_us": Column.BIGINT,
}


class Tally(NamedTuple):
    """What one worker counted for one task of one queue.

    `wait_us` is the time from when each could have been claimed until it was given to a child,
    `run_us` the time that its code took.
    """

    worker_id: str
    queue_name: str
    task_name: str
    completed: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0
    wait_us: int = 0
    run_us: int = 0


class Minute(NamedTuple):
    """One minute of one queue, all workers together."""

    minute: int
    queue_name: str
    completed: int
    failed: int
    retried: int
    other: int
    wait_us: int
    run_us: int


@alone
def add(tallies: Sequence[Tally]) -> Steps[None]:
    """Add to this minute's counters."""
    yield Statement("count_stats", table=Table(_COLUMNS, tallies))


@reads
def minutes(since: int) -> Steps[list[Minute]]:
    """The counters since a time, in order."""
    found = yield Statement("read_stats", {"since": At(since)})
    return [Minute(*row) for row in found]
