"""What an examination of the database reads, beyond what lists show.

Owns the questions. Nothing here writes or locks, and no answer costs more the more tasks are
stored: of a queue a bounded number of entries is read. What an answer means is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import At, Rows, Statement, Steps, Texts, Uuids, reads
from holdfast.store.verbs import workflows

SCAN = 1_000
"""How many claimable tasks of a queue are looked at."""


class CleanupHolder(NamedTuple):
    """Something that keeps the server from removing dead rows, or the WAL."""

    kind: str
    """`transaction`, `prepared` or `slot`."""
    pid: int | None
    user: str | None
    name: str | None
    """Of the application, of the prepared transaction, of the replication slot."""
    state: str | None
    since: int | None
    holds_rows: bool
    wal_bytes: int | None


class TableHealth(NamedTuple):
    """How one table is kept."""

    table: str
    live_rows: int
    dead_rows: int
    vacuumed_at: int | None
    is_neglected: bool
    """Autovacuum has been switched off for it."""


class ExpiredLeases(NamedTuple):
    """Leases of one worker that ended, and that nobody has recovered."""

    worker_id: str
    number: int
    since: int


class PendingKind(NamedTuple):
    """Claimable tasks of one name and version in one queue."""

    queue_name: str
    task_name: str
    version: int
    number: int
    oldest: int


class LateSchedule(NamedTuple):
    """A schedule whose time has passed."""

    name: str
    due_at: int


@reads
def facts() -> Steps[Mapping[str, str | None]]:
    """What the engine says about itself, by name."""
    found: Rows = yield Statement("database_facts")
    return dict(found)


@reads
def checkpoint_counts() -> Steps[Mapping[str, str | None]]:
    """How many checkpoints a server of PostgreSQL 17 or later has made, by name as in `facts`."""
    found: Rows = yield Statement("checkpoint_counts")
    return dict(found)


@reads
def cleanup_holders(*, before: int) -> Steps[list[CleanupHolder]]:
    """What has been keeping dead rows since before then."""
    found = yield Statement("cleanup_holders", {"before": At(before)})
    return [CleanupHolder(*row) for row in found]


@reads
def table_health() -> Steps[list[TableHealth]]:
    """How our tables are kept, those with the most dead rows first."""
    return [TableHealth(*row) for row in (yield Statement("table_health"))]


@reads
def expired_leases(*, before: int) -> Steps[list[ExpiredLeases]]:
    """Leases that ended before then and are still there, by worker."""
    found = yield Statement("expired_leases", {"before": At(before)})
    return [ExpiredLeases(rows.named(worker), *rest) for worker, *rest in found]


@reads
def pending_kinds(queues: Sequence[str], *, scan: int = SCAN) -> Steps[list[PendingKind]]:
    """Which tasks are claimable in these queues, as far as the first entries of each tell."""
    if not queues:
        return []
    found = yield Statement("pending_kinds", {"queues": Texts(queues), "scan": scan})
    return [
        PendingKind(queue, name, version, number, oldest)
        for queue, name, version, number, oldest in found
        if len(list(rows.texts([queue, name]))) == 2
    ]


@reads
def stuck_steps(workflow_ids: Sequence[bytes], *, scan: int = SCAN) -> Steps[list[bytes]]:
    """Of the first steps of these workflows, those that wait for what will never come."""
    stuck: set[bytes] = set()
    for workflow_id in workflow_ids:
        steps, _ = yield from workflows.steps(workflow_id, limit=scan)
        waiting = [s for s in steps if s.status is TaskStatus.WAITING and not s.handed_over]
        stuck.update(s.id for s in waiting if s.deps_needed > s.deps_open)
        overdue = yield Statement("overdue_edges", {"children": Uuids(s.id for s in waiting)})
        stuck.update(rows.uuids(overdue))
    return sorted(stuck)


@reads
def late_schedules(*, before: int) -> Steps[list[LateSchedule]]:
    """Schedules that should have fired before then, the latest first."""
    found = yield Statement("late_schedules", {"before": At(before)})
    return [LateSchedule(rows.named(name), due_at) for name, due_at in found]
