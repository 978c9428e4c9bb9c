"""resubmit, delete, reschedule: what an operator does to tasks that are not running.

Owns the operator's verbs. Each answers with the state a task has afterwards, and None
for an id that does not exist; a task in a state the verb does not start from is left
untouched, and the caller sees that from its state.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.errors import UniqueConflict
from holdfast.core.status import TaskStatus
from holdfast.core.unique import key_of
from holdfast.store import rows
from holdfast.store.dependents import reopen
from holdfast.store.op import (
    At,
    Channel,
    Hint,
    Keys,
    Row,
    Statement,
    Steps,
    Texts,
    Uuids,
    writes,
)

_RESUBMITTABLE = frozenset(
    {
        TaskStatus.FAILED,
        TaskStatus.CANCELLED,
        TaskStatus.EXPIRED,
        TaskStatus.STALLED,
        TaskStatus.DROPPED,
    }
)


@writes
def resubmit(
    ids: Sequence[bytes],
    *,
    keep_retries: bool = False,
    fresh: bool = False,
    good_until: int | None = None,
    run_at: int | None = None,
) -> Steps[dict[bytes, bool]]:
    """Let ended tasks run again; True for each task that was resubmitted.

    Attempts, log and checkpoints are kept (`fresh` drops the checkpoints). Steps that had
    been skipped because of a resubmitted one are resubmitted with it. A unique key that
    another live task holds is a `UniqueConflict`, and nothing is written.
    """
    done: set[bytes] = set()
    batch = Uuids(sorted(set(ids)))
    while batch:
        locked = yield Statement("lock_tasks", {"ids": batch})
        eligible = [row for row in locked if TaskStatus(row[1]) in _RESUBMITTABLE]
        yield from _check_slots(eligible)
        chosen = Uuids(rows.uuid(row[0]) for row in eligible)
        if not chosen:
            break
        skipped = yield from reopen([rows.uuid(row[0]) for row in eligible if row[2] is not None])
        if fresh:
            yield Statement("drop_checkpoints", {"ids": chosen})
        found = yield Statement(
            "resubmit",
            {
                "ids": chosen,
                "keep_retries": keep_retries,
                "good_until": None if good_until is None else At(good_until),
                "run_at": None if run_at is None else At(run_at),
            },
        )
        done.update(rows.uuid(row[0]) for row in found)
        queues = {row[2] for row in found if row[1] == TaskStatus.PENDING}
        if queues:
            yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
        batch = Uuids(sorted(set(skipped) - done))
    return {id: id in done for id in ids}


def _check_slots(eligible: Sequence[Row]) -> Steps[None]:
    """Refuse before anything is written if a unique key is taken, and say by whom."""
    wanted: dict[str, bytes] = {}
    for id, _, _, _, slot, name in eligible:
        if slot is None:
            continue
        if slot in wanted:
            # Both have ended, but one resubmit cannot give both of them the key.
            raise UniqueConflict(wanted[slot], name=name, key=key_of(name, slot))
        wanted[slot] = rows.uuid(id)
    if not wanted:
        return
    holders = yield Statement("submitted", {"ids": Uuids(), "slots": Texts(wanted)})
    for id, _, slot, _, name in holders:
        raise UniqueConflict(rows.uuid(id), name=name, key=key_of(name, slot))


@writes
def delete(ids: Sequence[bytes]) -> Steps[dict[bytes, bool]]:
    """Remove ended tasks with all that belongs to them; True for each that is gone.

    A step of a workflow that still lives stays.
    """
    found = yield Statement("deletable", {"ids": Uuids(sorted(set(ids)))})
    gone = yield from remove(found)
    return {id: id in gone for id in ids}


def remove(found: Sequence[Row]) -> Steps[set[bytes]]:
    """Delete the tasks of these (key, id) rows."""
    if not found:
        return set()
    keys = [rows.key(row[0]) for row in found]
    ids = Uuids(rows.uuid(row[1]) for row in found)
    deleted = yield Statement("delete", {"keys": Keys(keys), "ids": ids})
    return {rows.uuid(row[0]) for row in deleted}


@writes
def reschedule(
    ids: Sequence[bytes],
    *,
    move: bool = False,
    delay_us: int | None = None,
    run_at: int | None = None,
    queue: str | None = None,
    priority: int | None = None,
) -> Steps[dict[bytes, bool]]:
    """Change time, queue or priority of tasks that wait; True for each that changed.

    `move` says that the time changes: to `run_at`, to `delay_us` from now, or to now.
    """
    found = yield Statement(
        "reschedule",
        {
            "ids": Uuids(sorted(set(ids))),
            "move": move,
            "delay_us": delay_us,
            "run_at": None if run_at is None else At(run_at),
            "queue_name": queue,
            "priority": priority,
            "renew": False,
            "good_until": None,
            "good_for_us": None,
        },
        hint=Hint(Channel.READY, () if queue is None else (queue,)),
    )
    queues = {row[2] for row in found if row[1] == TaskStatus.PENDING} - {queue}
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    moved = {rows.uuid(row[0]) for row in found}
    return {id: id in moved for id in ids}
