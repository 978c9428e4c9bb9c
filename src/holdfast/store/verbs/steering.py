"""Workflows that run: cancel, pause, resume, and what somebody has to see to.

Owns the winding down and the pausing of wholes. Either is two things: first the whole says so, in
a transaction that writes workflow rows alone, and then its steps follow in batches, by whoever
said so or by any worker (`tended`). So no transaction grows with the size of a workflow, none
takes a workflow's row before its tasks, and a client that dies in between leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.store import rows
from holdfast.store.op import Statement, Steps, Uuids, reads, writes
from holdfast.store.verbs.cancel import cancel_steps
from holdfast.store.verbs.dependents import (
    HOLD_BATCH,
    let_go,
    pause_down,
    resolve_parked,
    resume_down,
)
from holdfast.store.verbs.end_reasons import reason_of_stop
from holdfast.store.verbs.operate import remove

STOP_BATCH = 100
"""Steps that one transaction cancels."""


# Stopping.


@writes
def cancel(workflow_id: bytes, *, by: str | None = None, cleanup: bool = True) -> Steps[bool]:
    """Let a whole wind down; False if it has ended, or is being cancelled already.

    Its steps are cancelled by `stop_some`; with `cleanup` those that clean up are not.
    """
    return (yield from _stop(workflow_id, "cancel", by, not cleanup))


@writes
def end_late(workflow_id: bytes) -> Steps[bool]:
    """Let a whole wind down whose deadline has passed."""
    return (yield from _stop(workflow_id, "deadline", None, False))


def _stop(workflow_id: bytes, why: str, by: str | None, stop_all: bool) -> Steps[bool]:
    found = yield Statement(
        "stop_workflow", {"id": workflow_id, "why": why, "stopped_by": by, "stop_all": stop_all}
    )
    return bool(found)


@writes
def stop_some(workflow_id: bytes, *, batch: int = STOP_BATCH) -> Steps[int]:
    """Cancel steps of a workflow that winds down; how many. None: all, for now."""
    stoppable = Statement("stoppable_steps", {"id": workflow_id, "batch": batch})
    # What has no id that anybody knows cannot be stopped.
    ids = {*rows.uuids((yield stoppable))}
    done = len(ids)
    if ids:
        # It may have ended meanwhile, and have been resubmitted: what is locked and still to be
        # stopped keeps it from ending.
        yield Statement("lock_tasks", {"ids": Uuids(sorted(ids))})
        found = yield stoppable
        still = ids.intersection(rows.uuids(found))
        if still:
            yield from cancel_steps([*still], reason_of_stop(found[0][1]))
    elif (yield Statement("is_released", {"id": workflow_id})):
        # What is left of it must not wait for a pause, nor a failure for somebody to accept it.
        done = yield from let_go(workflow_id)
    parts = yield Statement("stop_parts", {"id": workflow_id})
    return done + len(parts)


# Pausing.


@writes
def pause(workflow_id: bytes, *, by: str | None = None) -> Steps[list[bytes]]:
    """Say that a whole and its parts are paused; which of them were not. `hold` does the rest."""
    return (yield from pause_down(workflow_id, by))


@writes
def resume(workflow_id: bytes) -> Steps[list[bytes]]:
    """Say that a pause is over; of which workflows. A failure that had caused it is accepted.

    `release_some` does the rest.
    """
    return (yield from resume_down(workflow_id))


@writes
def release_some(workflow_id: bytes, *, batch: int = HOLD_BATCH) -> Steps[int]:
    """Release steps of a workflow whose pause is over; how many. None: all of them."""
    resting = yield Statement("is_released", {"id": workflow_id})
    if not resting:
        return 0
    done = yield from let_go(workflow_id, batch=batch)
    if not done:
        yield Statement("note_released", {"id": workflow_id})
    return done


@reads
def unheld(among: Sequence[bytes]) -> Steps[list[bytes]]:
    """Those of these paused workflows that have steps which came back, or were added, since."""
    found = yield Statement("unheld_workflows", {"ids": Uuids(sorted(among))})
    return [*rows.uuids(found)]


@writes
def resolve_later(batch: int = 100) -> Steps[int]:
    """Tell what waits for steps that were skipped and left for later; how many of these."""
    return (yield from resolve_parked(batch=batch))


# What somebody has to see to.


class Tended(NamedTuple):
    """Workflows that need somebody."""

    late: Sequence[bytes]
    """Their deadline has passed, and they do not say so yet."""
    stopping: Sequence[bytes]
    resumed: Sequence[bytes]
    """A pause is over, and steps may still be held by it."""
    resubmitting: Sequence[bytes]
    paused: Sequence[bytes]
    steered_at: Mapping[bytes, object]
    """When something was last done to each as a whole."""
    next: bytes | None
    """Where the next page begins; None after the last one."""


@reads
def is_needed() -> Steps[bool]:
    """Whether there is anything to see to: nearly always there is not, and this is one look."""
    return bool((yield Statement("steering_needed")))


@reads
def tended(after: bytes = bytes(16), *, batch: int = 100) -> Steps[Tended]:
    """Workflows whose deadline has passed; and, a page at a time, those that wind down, are paused,
    or have been steered and not all of their steps know."""
    found = yield Statement("tended_workflows", {"after": after, "batch": batch})
    late, stopping, resumed, resubmitting, paused = (
        [*rows.uuids([row for row in found if row[place]])] for place in range(2, 7)
    )
    steered_at = {rows.uuid(row[0]): row[1] for row in found if rows.is_uuid(row[0])}
    page = [row for row in found if any(row[3:])]
    following = rows.last_id(page, 0, batch)
    return Tended(late, stopping, resumed, resubmitting, paused, steered_at, following)


# The end.


@writes
def delete(workflow_id: bytes, *, batch: int = 500) -> Steps[int]:
    """Remove steps of a workflow that has ended, and at last what there is of the whole; how much.

    None at all: it is gone, or it has not ended. Its parts are removed before it.
    """
    found = yield Statement("deletable_workflow", {"id": workflow_id})
    if not found:
        return 0
    id = rows.uuid(found[0][0])
    steps = yield Statement("removable_steps", {"id": id, "batch": batch})
    removed = yield from remove(steps)
    if len(steps) < batch:
        gone = yield Statement("delete_workflow", {"id": id})
        return len(removed) + len(gone)
    return len(removed)
