"""Workflows: start, read, stop.

Owns the rows of a whole. A workflow is written in one transaction with all its steps; from then on
its steps live by the verbs of tasks, and their ends count it down (`step_counts`). To stop one is
two things: the whole says that it winds down, and then its steps are cancelled, in batches
(`stop_some`), by whoever stopped it or by any worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

from holdfast.core.identity import new_id
from holdfast.core.records import SubmitAnswer, Submitted
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.plan import AddedPlan, StepPlan, WorkflowPlan
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
    Channel,
    Column,
    Hint,
    Ints,
    Row,
    Statement,
    Steps,
    Table,
    Texts,
    Uuids,
    reads,
    writes,
)
from holdfast.store.verbs.cancel import cancel_steps
from holdfast.store.verbs.end_reasons import CANCELLED, WORKFLOW_DEADLINE, WORKFLOW_STOPPED

STEPS_A_ROW = 64
"""How many steps share a count row."""
_AT_ONCE = 1000
"""Rows of one statement."""
STOP_BATCH = 200

STEP_COLUMNS = {
    "id": Column.UUID,
    "task_name": Column.TEXT,
    "version": Column.INT,
    "queue_name": Column.TEXT,
    "priority": Column.INT,
    "args": Column.TEXT,
    "kwargs": Column.TEXT,
    "task_options": Column.TEXT,
    "tags": Column.TEXT,
    "enqueue_sha": Column.TEXT,
    "sent_at": Column.TIME,
    "delay_us": Column.BIGINT,
    "asked_at": Column.TIME,
    "good_until": Column.TIME,
    "good_for_us": Column.BIGINT,
    "max_retries": Column.INT,
    "workflow_id": Column.UUID,
    "deps_needed": Column.INT,
    "deps_open": Column.INT,
    "parent_id": Column.UUID,
    "root_id": Column.UUID,
    "trace_context": Column.TEXT,
    "concurrency_key": Column.TEXT,
    "scope_id": Column.UUID,
    "step_number": Column.INT,
    "step_name": Column.TEXT,
    "step_part": Column.INT,
    "step_required": Column.BOOL,
    "step_handler": Column.BOOL,
    "step_cleanup": Column.BOOL,
    "step_tail": Column.TEXT,
    "step_hidden": Column.TEXT,
    "inputs": Column.TEXT,
}
_EDGE_COLUMNS = {"parent_id": Column.UUID, "child_id": Column.UUID, "on_status": Column.TEXT}
_COUNT_COLUMNS = {
    "scope_id": Column.UUID,
    "part": Column.INT,
    "is_tail": Column.BOOL,
    "open": Column.INT,
}


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


def add_scope(
    scope_id: bytes,
    workflow_id: bytes,
    steps: Sequence[StepPlan],
    returns: str | None,
    *,
    run_at: int | None = None,
) -> Steps[None]:
    """Write steps with their edges, gates and count rows."""
    waited_for = {step.tail for step in steps}
    gates: dict[str | None, bytes] = {
        tail: new_id() for tail in ("error", "ended") if tail in waited_for
    }
    body = sum(step.tail is None for step in steps)
    rows_of_body = -(-body // STEPS_A_ROW)
    rows_of_tail = -(-(len(steps) - body) // STEPS_A_ROW)
    table: list[Row] = []
    edges: list[Row] = []
    counts: Counter[int] = Counter()
    seen: Counter[bool] = Counter()
    for number, step in enumerate(steps):
        is_tail = step.tail is not None
        part = seen[is_tail] % (rows_of_tail if is_tail else rows_of_body)
        part += rows_of_body if is_tail else 0
        seen[is_tail] += 1
        counts[part] += 1
        gate = gates.get(step.tail)
        if gate is not None:
            edges.append((gate, step.task.id, "success"))
        edges += [(steps[edge.parent].task.id, step.task.id, edge.on) for edge in step.edges]
        table.append(_row(step, number, part, scope_id, workflow_id, gate is not None, run_at))
    yield Statement(
        "add_scope",
        {
            "scope_id": scope_id,
            "workflow_id": workflow_id,
            "body_open": rows_of_body,
            "tail_open": rows_of_tail,
            "error_gate": gates.get("error"),
            "ended_gate": gates.get("ended"),
            "returns": returns,
        },
    )
    queues = sorted({step.task.queue_name for step in steps})
    for at in range(0, len(table), _AT_ONCE):
        yield Statement(
            "submit_steps",
            table=Table(STEP_COLUMNS, table[at : at + _AT_ONCE]),
            hint=Hint(Channel.READY, queues),
        )
    for at in range(0, len(edges), _AT_ONCE):
        yield Statement("add_edges", table=Table(_EDGE_COLUMNS, edges[at : at + _AT_ONCE]))
    if counts:
        counted = [(scope_id, part, part >= rows_of_body, n) for part, n in sorted(counts.items())]
        yield Statement("add_counts", table=Table(_COUNT_COLUMNS, counted))


def _row(
    step: StepPlan,
    number: int,
    part: int,
    scope_id: bytes,
    workflow_id: bytes,
    has_gate: bool,
    run_at: int | None,
) -> Row:
    task, open_ = step.task, len(step.edges) + has_gate
    needed = open_ if step.needed is None else step.needed + has_gate
    asked_at = task.run_at
    if not open_ and run_at is not None:
        asked_at = run_at if asked_at is None else max(asked_at, run_at)
    return (
        task.id,
        task.task_name,
        task.version,
        task.queue_name,
        task.priority,
        task.args,
        task.kwargs,
        task.task_options,
        task.tags,
        task.enqueue_sha,
        task.sent_at,
        task.delay_us,
        asked_at,
        task.good_until,
        task.good_for_us,
        task.max_retries,
        workflow_id,
        needed,
        open_,
        task.parent_id,
        task.root_id,
        task.trace_context,
        task.concurrency_key,
        scope_id,
        number,
        step.name,
        part,
        step.required,
        step.handler,
        step.cleanup,
        step.tail,
        step.hidden,
        step.inputs,
    )


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
    if not found:
        return 0
    why = {"deadline": WORKFLOW_DEADLINE, "fail_fast": WORKFLOW_STOPPED}.get(found[0][1], CANCELLED)
    yield from cancel_steps([*rows.uuids(found)], why)
    return len(found)


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
