"""promote, expire, drop: what time alone does to tasks.

Owns the verbs that need no claim. Any worker may run them at any moment; the state
in the guard decides, and a row that someone else is writing is left for the next pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.core.records import HEAD, Position
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Channel,
    Hint,
    Key,
    Keys,
    Rows,
    Statement,
    Steps,
    Texts,
    Uuids,
    reads,
    writes,
)
from holdfast.store.verbs.claims import behind, known_name, lockable
from holdfast.store.verbs.dependents import ended_steps, resolve
from holdfast.store.verbs.end_reasons import DROPPED, EXPIRED
from holdfast.store.verbs.ended_counts import count_ended

BATCH = 500


class NextDue(NamedTuple):
    """When the next SCHEDULED task comes due, and the database's clock."""

    at: int | None
    now: int


class Met(list[bytes]):
    """The ids of the tasks that changed their status."""

    def __init__(self, ids: Iterable[bytes], *, written: int) -> None:
        super().__init__(ids)
        self.written = written
        """How many rows were written: with those that only lost a time which does not go with
        their status. Fewer than were asked for: there are no more."""


@writes
def promote(batch: int = BATCH, *, aside: Sequence[Key] = (), careful: bool = False) -> Steps[Met]:
    """SCHEDULED → PENDING for tasks whose time has come.

    Rows in `aside`, which the store refuses to have written, are passed over; if it is `careful`,
    all that break the constraints of the table.
    """
    found = yield Statement("promote", {"batch": batch, "aside": Keys(aside), "careful": careful})
    promoted = [(id, queue) for id, queue, status in found if status == TaskStatus.PENDING]
    yield from _ready(promoted)
    return Met(rows.uuids(promoted), written=len(found))


@reads
def first_due(aside: Sequence[Key] = ()) -> Steps[Key | None]:
    """The task that `promote` would take first: the one to blame if the store refused that."""
    found = yield Statement("first_due", {"aside": Keys(aside)})
    return rows.key(found[0][0]) if found else None


@reads
def first_expired(aside: Sequence[Key] = ()) -> Steps[Key | None]:
    """The task that `expire` would take first."""
    found = yield Statement("first_expired", {"aside": Keys(aside)})
    return rows.key(found[0][0]) if found else None


@writes
def promote_now(ids: Iterable[bytes]) -> Steps[list[bytes]]:
    """SCHEDULED → PENDING at once, by an operator."""
    found = yield Statement("promote_now", {"ids": Uuids(sorted(set(ids)))})
    yield from _ready(found)
    return list(rows.uuids(found))


def _ready(found: Rows) -> Steps[None]:
    queues = set(rows.texts(queue for _, queue in found))
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))


@reads
def next_due(aside: Sequence[Key] = (), *, careful: bool = False) -> Steps[NextDue]:
    """When to promote next: a timer to the next task, not a poll."""
    found = yield Statement("next_due", {"aside": Keys(aside), "careful": careful})
    return NextDue(*found[0])


@writes
def expire(batch: int = BATCH, *, aside: Sequence[Key] = (), careful: bool = False) -> Steps[Met]:
    """WAITING, SCHEDULED, PENDING → EXPIRED where `good_until` has passed.

    Rows in `aside`, which the store refuses to have written, are passed over; if it is `careful`,
    all that break the constraints of the table.
    """
    found = yield Statement(
        "expire",
        {
            "batch": batch,
            "error": EXPIRED.error,
            "reason": EXPIRED.reason,
            "aside": Keys(aside),
            "careful": careful,
        },
    )
    expired = [row for row in found if row[1] == TaskStatus.EXPIRED]
    yield from _ended(expired)
    return Met(rows.uuids(expired), written=len(found))


@writes
def drop(
    queue: str,
    *,
    known: Iterable[str],
    before: int,
    after: Position = HEAD,
    key: str = "",
    batch: int = BATCH,
) -> Steps[dict[bytes, str]]:
    """PENDING → DROPPED for tasks enqueued before `before` that no live worker knows.

    Returns the name and version of each, by id. At most 1,000 entries of the queue are examined,
    of those without a concurrency key or of this one, from `after` on; `claims.horizon`, asked
    before, tells where to go on. Fewer than `batch`: all that were among those.
    """
    unknown = yield Statement(
        "unknown_pending",
        {
            "queue_name": queue,
            "known": Texts(known),
            "before": At(before),
            "batch": batch,
            "concurrency_key": key,
            **behind(after),
        },
    )
    if not unknown:
        return {}
    # What waits for such a task may be held by somebody: then it stays for the next walk.
    free = yield from lockable([rows.key(key) for _, key in unknown])
    found = yield Statement(
        "drop",
        {
            "ids": Uuids(
                sorted(rows.uuids([(id,) for id, key in unknown if rows.key(key) in free]))
            ),
            "error": DROPPED.error,
            "reason": DROPPED.reason,
        },
    )
    yield from _ended(found)
    return {
        rows.uuid(id): known_name(one_line(task_name, 200), version)
        for id, _, _, task_name, version in found
    }


def _ended(found: Rows) -> Steps[None]:
    yield from count_ended(rows.uuids(found))
    yield from resolve(ended_steps(found))
    if found:
        yield Statement("notify", hint=Hint(Channel.DONE))
