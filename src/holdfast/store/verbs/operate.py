"""resubmit, delete, reschedule: what an operator does to tasks that are not running.

Owns the operator's verbs. Each answers with the state a task has afterwards, and None
for an id that does not exist; a task in a state the verb does not start from is left
untouched, and the caller sees that from its state.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.errors import UniqueConflict
from holdfast.core.options.unique import key_of
from holdfast.core.status import TaskStatus
from holdfast.store import rows
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
from holdfast.store.verbs import resubmits
from holdfast.store.verbs.dependents import LockedTask
from holdfast.store.verbs.reopened_edges import refuse, reopen, revisit
from holdfast.store.verbs.resubmits import ResubmitChoice
from holdfast.store.verbs.step_counts import EndedStep

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
    been skipped because of a resubmitted one are resubmitted with it, if they can run then. A
    unique key that another live task holds is a `UniqueConflict`, and a step whose parents have
    ended so that it could never run is an `UpstreamEnded`; nothing is written then. A step of a
    workflow that has completed, or is still winding down, is left as it is.
    """
    choice = ResubmitChoice(keep_retries, fresh, good_until, run_at)
    found = yield Statement("workflow_steps", {"ids": Uuids(sorted(set(ids)))})
    steps = set(rows.uuids(found))
    done = (yield from resubmits.steps(sorted(steps), choice)) if steps else set[bytes]()
    done |= yield from _resubmit([id for id in ids if id not in steps], choice)
    return {id: id in done for id in ids}


def _resubmit(ids: Sequence[bytes], choice: ResubmitChoice) -> Steps[set[bytes]]:
    """The same for tasks that are no steps, though they may wait for each other."""
    done: set[bytes] = set()
    stuck: set[bytes] = set()
    batch = set(ids)
    # Each round resubmits what can run. What can only run with that is looked at again.
    while batch:
        family = yield Statement("family", {"ids": Uuids(sorted(batch))})
        found = yield Statement("lock_tasks", {"ids": Uuids(sorted(map(_id, family)))})
        locked = [row for row in map(LockedTask._make, found) if rows.is_status(row.status)]
        eligible = [
            row for row in locked if _id(row) in batch and TaskStatus(row.status) in _RESUBMITTABLE
        ]
        stuck = yield from revisit(
            (_id(row) for row in eligible if row.deps_needed > 0),
            [EndedStep(_id(row), TaskStatus(row.status)) for row in locked],
        )
        able = [row for row in eligible if _id(row) not in stuck]
        if not able:
            break
        yield from _check_slots(able, done)
        chosen = Uuids(map(_id, able))
        skipped = yield from reopen([_id(row) for row in able if row.workflow_id is not None])
        if choice.fresh:
            yield Statement("delete_checkpoints", {"ids": chosen})
        found = yield Statement(
            "resubmit",
            {
                "ids": chosen,
                "keep_retries": choice.keep_retries,
                "good_until": None if choice.good_until is None else At(choice.good_until),
                "run_at": None if choice.run_at is None else At(choice.run_at),
            },
        )
        done.update(map(_id, found))
        ready = (queue for _, status, queue in found if status == TaskStatus.PENDING)
        queues = set(rows.texts(ready))
        if queues:
            yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
        batch = (stuck | set(skipped)) - done
    refused = stuck.intersection(ids) - done
    if refused:
        yield from refuse(refused)
    return done


def _id(row: Row) -> bytes:
    return rows.uuid(row[0])


def _check_slots(able: Sequence[LockedTask], done: set[bytes]) -> Steps[None]:
    """Refuse before they are written if a unique key is taken, and say by whom."""
    wanted: dict[str, bytes] = {}
    for row in able:
        slot, name = row.unique_key, row.task_name
        if slot is None:
            continue
        if slot in wanted:
            raise UniqueConflict(wanted[slot], name=name, key=key_of(name, slot), rival_id=_id(row))
        wanted[slot] = _id(row)
    if not wanted:
        return
    holders = yield Statement("submitted", {"ids": Uuids(), "slots": Texts(wanted)})
    for id, _, slot, _, name in holders:
        holder = rows.uuid(id)
        if holder == wanted[slot]:
            continue  # unique until deleted: its end has not freed it
        # One of this very resubmit holds the key only if that goes through.
        rival = wanted[slot] if holder in done else None
        raise UniqueConflict(holder, name=name, key=key_of(name, slot), rival_id=rival)


@writes
def delete(ids: Sequence[bytes]) -> Steps[dict[bytes, bool]]:
    """Remove ended tasks with all that belongs to them; True for each that is gone.

    A step of a workflow stays: it goes with the whole.
    """
    found = yield Statement("deletable", {"ids": Uuids(sorted(set(ids)))})
    gone = yield from remove(found)
    return {id: id in gone for id in ids}


def remove(found: Sequence[Row]) -> Steps[set[bytes]]:
    """Delete the tasks of these (key, id) rows."""
    if not found:
        return set()
    keys = [rows.key(row[0]) for row in found]
    ids = Uuids(rows.uuids(found, 1))
    deleted = yield Statement("delete", {"keys": Keys(keys), "ids": ids})
    return set(rows.uuids(deleted))


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
    ready = (place for _, status, place, *_ in found if status == TaskStatus.PENDING)
    queues = set(rows.texts(ready)) - {queue}
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    moved = {rows.uuid(row[0]) for row in found}
    return {id: id in moved for id in ids}
