"""cancel and request_cancel: an end for what has not begun, a durable request for what runs.

Owns the operator's side only. How a worker obeys is the runtime's business; that a request
is never lost, not even with the worker, is the business of `sql/end.*`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Rows, Statement, Steps, Uuids, reads, writes
from holdfast.store.verbs import freed_slots
from holdfast.store.verbs.dependents import ended_steps, resolve
from holdfast.store.verbs.end_reasons import CANCELLED, EndReason
from holdfast.store.verbs.ended_counts import count_ended

ADDED_BATCH = 100
"""Of the steps that one has added, how many a transaction cancels."""
_MOST_LEVELS = 16
"""How far down one transaction follows steps that added steps that added steps."""
_PARKED = "cancel"


@writes
def cancel(ids: Sequence[bytes]) -> Steps[dict[bytes, TaskStatus | None]]:
    """Cancel tasks; the state each has afterwards.

    CANCELLED: it ended here (or had been cancelled before). RUNNING: the wish is noted
    and its worker will hear of it. Another terminal state: too late. None: no such task.
    """
    return (yield from cancel_steps(ids, CANCELLED))


def cancel_steps(ids: Sequence[bytes], why: EndReason) -> Steps[dict[bytes, TaskStatus | None]]:
    """The steps of `cancel`, for whoever cancels for a reason of its own."""
    known: dict[bytes, TaskStatus] = {}
    batch, levels = Uuids(sorted(set(ids))), 0
    while batch:
        # Locked first, also those that have ended: one that is being resubmitted this instant would
        # otherwise be passed over and live on.
        locked = yield Statement("lock_tasks", {"ids": batch})
        changed = yield Statement(
            "cancel",
            {
                "ids": batch,
                "cancel_error": why.error,
                "cancel_reason": why.reason,
                "cancel_code": why.code,
            },
            hint=Hint(Channel.DONE),
        )
        ended = [row for row in changed if row[1] == TaskStatus.CANCELLED]
        yield from count_ended(rows.uuids(ended))
        yield from resolve(ended_steps(changed))
        yield from freed_slots.say(
            (slots, queue, name) for _, _, _, slots, queue, name, *_ in ended
        )
        known |= {
            rows.uuid(id): TaskStatus(status)
            for id, status, *_ in (*locked, *changed)
            if rows.is_status(status)
        }
        # What has handed over ends with what it added.
        adders = Uuids(rows.uuids([row for row in changed if row[1] == TaskStatus.WAITING]))
        levels += 1
        batch = yield from _to_cancel(adders, looks=levels < _MOST_LEVELS)
    return {id: known.get(id) for id in ids}


def _to_cancel(adders: Uuids, *, looks: bool = True) -> Steps[Uuids]:
    """Some of what these have added, which is to be cancelled too; who has more is noted."""
    added: Rows = ()
    if adders and looks:
        added = yield Statement(
            "added_steps", {"scopes": adders, "bad": False, "batch": ADDED_BATCH}
        )
    if adders and (not looks or len(added) == ADDED_BATCH):
        yield Statement("park_added", {"ids": adders, "why": _PARKED})
    return Uuids(rows.uuids(added))


@writes
def cancel_added() -> Steps[int]:
    """Go on with a step that was cancelled when it had handed over to many; 0: there is none."""
    found = yield Statement("parked_adders", {"workflow_id": None})
    adders = Uuids(rows.uuids(found))
    if not adders:
        return 0
    yield Statement("unpark", {"id": adders[0], "why": _PARKED})
    added = yield from _to_cancel(adders)
    yield from cancel_steps(added, CANCELLED)
    return len(adders)


@reads
def cancel_requests(ids: Sequence[bytes]) -> Steps[set[bytes]]:
    """Which of these running tasks have a cancel request."""
    found = yield Statement("cancel_requests", {"ids": Uuids(ids)})
    return {rows.uuid(row[0]) for row in found}
