"""Workflows: start, read, stop.

Owns the rows of a whole. A workflow is written in one transaction with all its steps; from then on
its steps live by the verbs of tasks, and their ends count it down (`step_counts`). To stop one is
two things: the whole says that it winds down, and then its steps are cancelled, in batches
(`stop_some`), by whoever stopped it or by any worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

from holdfast.core.records import SubmitAnswer, Submitted
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.plan import AddedPlan, WorkflowPlan
from holdfast.core.workflows.records import (
    StepRecord,
    StepValue,
    WorkflowFilter,
    WorkflowRecord,
    WorkflowStatus,
)
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Ints,
    Row,
    Statement,
    Steps,
    Texts,
    Uuids,
    reads,
    writes,
)
from holdfast.store.verbs import operate
from holdfast.store.verbs.cancel import cancel_steps
from holdfast.store.verbs.dependents import hold, let_go, resolve_parked
from holdfast.store.verbs.end_reasons import CANCELLED, WORKFLOW_DEADLINE, WORKFLOW_STOPPED
from holdfast.store.verbs.scopes import add_scope

STOP_BATCH = 200


class ScopeValue(NamedTuple):
    """What a scope returns, and how the first of its steps that ended badly stands."""

    workflow_id: bytes
    returns: str | None
    error: StepValue | None


@writes
def start(plan: WorkflowPlan) -> Steps[Submitted]:
    """Write a workflow with all its steps, unless it is there already.

    EXISTING: the same one, or the live holder of the unique key, whose id is in the answer.
    MISMATCH: the id is taken by another one. CONFLICT: the key is, and `on_conflict` is "raise".
    """
    created = yield Statement(
        "start_workflow",
        {
            "id": plan.id,
            "name": plan.name,
            "version": plan.version,
            "on_failure": plan.on_failure,
            "deadline_us": plan.deadline_us,
            "run_at": _at(plan.run_at),
            "unique_key": plan.unique_key,
            "tags": plan.tags,
            "arguments": plan.arguments,
            "digest": plan.digest,
            "sent_at": At(plan.sent_at),
            "steps": len(plan.steps),
            "parent_id": None,
            "step_id": None,
            "root_id": plan.root_id,
            "trace_context": plan.trace_context,
        },
    )
    if not created:
        return (yield from _meet(plan))
    yield from add_scope(plan.id, plan.id, plan.steps, plan.returns, run_at=plan.run_at)
    return Submitted(plan.id, SubmitAnswer.CREATED)


def add(adder_id: bytes, workflow_id: bytes, plan: AddedPlan, sent_at: int) -> Steps[None]:
    """Write the steps that a step hands over to; those of a sub-workflow with its own row."""
    part = plan.workflow
    if part is None:
        yield from add_scope(adder_id, workflow_id, plan.steps, plan.returns)
        return
    yield Statement(
        "start_workflow",
        {
            "id": adder_id,
            "name": part.name,
            "version": part.version,
            "on_failure": part.on_failure,
            "deadline_us": part.deadline_us,
            "run_at": None,
            "unique_key": None,
            "tags": part.tags,
            "arguments": part.arguments,
            "digest": "",
            "sent_at": At(sent_at),
            "steps": len(plan.steps),
            "parent_id": workflow_id,
            "step_id": adder_id,
            "root_id": workflow_id,
            "trace_context": None,
        },
    )
    yield from add_scope(adder_id, adder_id, plan.steps, plan.returns)


def _meet(plan: WorkflowPlan) -> Steps[Submitted]:
    found = yield Statement("existing_workflow", {"id": plan.id, "slot": plan.unique_key})
    if not found:
        return Submitted(plan.id, SubmitAnswer.AGAIN)
    id, digest = rows.uuid(found[0][0]), found[0][1]
    if id == plan.id:
        same = digest == plan.digest
        return Submitted(id, SubmitAnswer.EXISTING if same else SubmitAnswer.MISMATCH)
    raises = plan.on_conflict == "raise"
    return Submitted(id, SubmitAnswer.CONFLICT if raises else SubmitAnswer.EXISTING)


def _at(time: int | None) -> At | None:
    return None if time is None else At(time)


# Reading.


@reads
def read(ids: Sequence[bytes]) -> Steps[dict[bytes, WorkflowRecord]]:
    """These workflows, by their ids; those that do not exist are left out."""
    found = yield Statement("read_workflows", {"ids": Uuids(ids)})
    return {record.id: record for record in map(_record, found)}


@reads
def find(
    where: WorkflowFilter, *, limit: int = 100, before: bytes | None = None
) -> Steps[list[WorkflowRecord]]:
    """Workflows, newest first; `before` the last one of the page that came before."""
    found = yield Statement(
        "list_workflows",
        {
            "before": before,
            "statuses": Texts(sorted(where.status)),
            "name": where.name,
            "tag": where.tag,
            "created_from": _at(where.created_from),
            "created_until": _at(where.created_until),
            "limit": limit,
        },
    )
    return [*map(_record, found)]


@reads
def steps(
    workflow_id: bytes, *, after: bytes = bytes(16), limit: int = 1000
) -> Steps[list[StepRecord]]:
    """The steps of a workflow by id, those that were added too, a page at a time."""
    found = yield Statement("read_steps", {"id": workflow_id, "after": after, "limit": limit})
    return [*map(_step, found)]


@reads
def values(
    scope_id: bytes, numbers: Sequence[int], *, child_id: bytes | None = None
) -> Steps[list[StepValue]]:
    """How these steps of a scope stand, in their order, for the step `child_id`."""
    found = yield Statement(
        "step_values", {"scope_id": scope_id, "numbers": Ints(numbers), "child_id": child_id}
    )
    return [_value(*row) for row in found]


@reads
def scope(scope_id: bytes) -> Steps[ScopeValue | None]:
    """What a scope returns, and its first bad ending: that of a workflow, or of a step that
    handed over."""
    found = yield Statement("read_scope", {"scope_id": scope_id})
    if not found:
        return None
    workflow_id, returns, error_id, number, status, result, handed_over = found[0]
    error = None if status is None else _value(error_id, number, status, result, handed_over, None)
    return ScopeValue(rows.uuid(workflow_id), returns, error)


def _value(
    id: bytes | str,
    number: int,
    status: str,
    result: str | None,
    handed_over: bool | None,
    satisfied: bool | None,
) -> StepValue:
    met = None if satisfied is None else bool(satisfied)
    return StepValue(rows.uuid(id), number, TaskStatus(status), result, bool(handed_over), met)


def _record(row: Row) -> WorkflowRecord:
    values = [*row]
    for place in _UUID_PLACES:
        values[place] = rows.optional_uuid(values[place])
    values[_STATUS_PLACE] = WorkflowStatus(values[_STATUS_PLACE])
    return WorkflowRecord(*values)


_FIELDS = [field.name for field in fields(WorkflowRecord)]
_UUID_PLACES = [
    _FIELDS.index(name) for name in ("id", "parent_id", "step_id", "root_id", "error_id")
]
_STATUS_PLACE = _FIELDS.index("status")


def _step(row: Row) -> StepRecord:
    id, workflow_id, scope_id, number, name, task_name, status, attempt, *rest = row
    required, handler, cleanup, tail, hidden, handed_over, *end = rest
    return StepRecord(
        rows.uuid(id),
        rows.uuid(workflow_id),
        rows.uuid(scope_id),
        number,
        name,
        task_name,
        TaskStatus(status),
        attempt,
        bool(required),
        bool(handler),
        bool(cleanup),
        tail,
        hidden,
        bool(handed_over),
        *end,
    )


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
    """Cancel steps of a workflow that winds down; how many. Fewer than `batch`: all for now."""
    yield Statement("stop_parts", {"id": workflow_id})
    found = yield Statement("stoppable_steps", {"id": workflow_id, "batch": batch})
    if len(found) < batch:
        # What is left of it must not wait for a pause, nor a failure for somebody to accept it.
        yield from let_go(workflow_id)
    if not found:
        return 0
    why = {"deadline": WORKFLOW_DEADLINE, "fail_fast": WORKFLOW_STOPPED}.get(found[0][1], CANCELLED)
    yield from cancel_steps([*rows.uuids(found)], why)
    return len(found)


# Pausing.


@writes
def pause(workflow_id: bytes, *, by: str | None = None) -> Steps[bool]:
    """Hold all that has not begun, also in its parts; False unless it was running."""
    paused = yield Statement("pause_workflow", {"ids": Uuids([workflow_id]), "paused_by": by})
    if not paused:
        return False
    yield from hold(workflow_id)
    parts = yield Statement("live_parts", {"id": workflow_id})
    for part in sorted(rows.uuids(parts)):
        yield from pause(part, by=by)
    return True


@writes
def resume(workflow_id: bytes) -> Steps[bool]:
    """Undo a pause; a failure that had caused it is accepted. False unless it was paused."""
    resumed = yield Statement("resume_workflow", {"id": workflow_id})
    if not resumed:
        return False
    yield from let_go(workflow_id)
    parts = yield Statement("live_parts", {"id": workflow_id})
    for part in sorted(rows.uuids(parts)):
        yield from resume(part)
    return True


@reads
def unheld(batch: int = 100) -> Steps[list[bytes]]:
    """Paused workflows with steps that came back, or were added, after the pause."""
    found = yield Statement("unheld_workflows", {"batch": batch})
    return [*rows.uuids(found)]


@writes
def resolve_later(batch: int = 100) -> Steps[int]:
    """Tell what waits for steps that were skipped and left for later; how many of these."""
    return (yield from resolve_parked(batch=batch))


@writes
def resubmit(workflow_id: bytes, *, fresh: bool = False) -> Steps[list[bytes]]:
    """Let every step run again that ended badly, and what was skipped below; which they are.

    None if the whole has completed, or is winding down.
    """
    found = yield Statement("bad_steps", {"id": workflow_id})
    ids = [*rows.uuids(found)]
    done = (yield from operate.resubmit(ids, fresh=fresh)) if ids else {}
    return [id for id, is_done in done.items() if is_done]


class Tended(NamedTuple):
    """A workflow that needs somebody."""

    id: bytes
    is_late: bool
    """Its deadline has passed, and it does not say so yet."""


@reads
def tended(batch: int = 100) -> Steps[list[Tended]]:
    """Workflows whose deadline has passed, and those that wind down."""
    found = yield Statement("tended_workflows", {"batch": batch})
    return [Tended(rows.uuid(id), bool(late)) for id, late in found if rows.is_uuid(id)]
