"""cancel and request_cancel: an end for what has not begun, a durable request for what runs.

Owns the operator's side only. How a worker obeys is the runtime's business; that a request
is never lost, not even with the worker, is the business of `sql/end.*`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Statement, Steps, Uuids, reads, writes
from holdfast.store.verbs.dependents import ended_steps, resolve
from holdfast.store.verbs.end_reasons import CANCELLED, EndReason
from holdfast.store.verbs.ended_counts import count_ended

ADDED_BATCH = 100
"""Of the steps that one has added, how many a transaction cancels."""
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
    batch = Uuids(sorted(set(ids)))
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
    yield from count_ended(rows.uuids([row for row in changed if row[1] == TaskStatus.CANCELLED]))
    yield from resolve(ended_steps(changed))
    # What has handed over ends with what it added.
    adders = Uuids(rows.uuids([row for row in changed if row[1] == TaskStatus.WAITING]))
    if adders and (yield from _cancel_added(adders, why)):
        yield Statement("park_added", {"ids": adders, "why": _PARKED})
    known = {
        rows.uuid(id): TaskStatus(status)
        for id, status, *_ in (*locked, *changed)
        if rows.is_status(status)
    }
    return {id: known.get(id) for id in ids}


def _cancel_added(adders: Uuids, why: EndReason) -> Steps[bool]:
    """Cancel some of what these have added; whether there may be more."""
    added = yield Statement("added_steps", {"scopes": adders, "bad": False, "batch": ADDED_BATCH})
    if added:
        yield from cancel_steps([*rows.uuids(added)], why)
    return len(added) == ADDED_BATCH


@writes
def cancel_added() -> Steps[int]:
    """Go on with a step that was cancelled when it had handed over to many; 0: there is none."""
    found = yield Statement("parked_adders", {"workflow_id": None})
    adders = Uuids(rows.uuids(found))
    if not adders:
        return 0
    if not (yield from _cancel_added(adders, CANCELLED)):
        yield Statement("unpark", {"id": adders[0], "why": _PARKED})
    return len(adders)


@reads
def cancel_requests(ids: Sequence[bytes]) -> Steps[set[bytes]]:
    """Which of these running tasks have a cancel request."""
    found = yield Statement("cancel_requests", {"ids": Uuids(ids)})
    return {rows.uuid(row[0]) for row in found}
