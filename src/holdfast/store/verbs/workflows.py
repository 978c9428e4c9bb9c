"""Workflows: start and read.

Owns the rows of a whole. A workflow is written in one transaction with all its steps; from then on
its steps live by the verbs of tasks, and their ends count it down (`step_counts`). What is done to
one that runs is in `steering` and `resubmits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.core.errors import TaskNotFound, UnreadableRow
from holdfast.core.records import SubmitAnswer, Submitted
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, WorkflowPlan
from holdfast.core.workflows.records import (
    StepRecord,
    StepValue,
    WorkflowFilter,
    WorkflowRecord,
)
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Ints,
    Statement,
    Steps,
    Texts,
    Uuids,
    reads,
    writes,
)
from holdfast.store.verbs.scopes import add_scope
from holdfast.store.workflow_rows import step_row, workflow_row

_STATUSES = frozenset(status.value for status in WorkflowStatus)
COUNT_CAP = 10_000
"""Of how many workflows, the newest ones, it is counted how they stand."""


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
        # What hangs below a handler is one.
        found = yield Statement("step_role", {"id": adder_id})
        handler, cleanup = (bool(found[0][0]), bool(found[0][1])) if found else (False, False)
        added = [
            replace(step, handler=step.handler or handler, cleanup=step.cleanup or cleanup)
            if handler or cleanup
            else step
            for step in plan.steps
        ]
        yield from add_scope(adder_id, workflow_id, added, plan.returns)
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
def read(
    ids: Sequence[bytes], unreadable: list[UnreadableRow] | None = None
) -> Steps[dict[bytes, WorkflowRecord]]:
    """These workflows, by their ids; those that do not exist are left out."""
    found = yield Statement("read_workflows", {"ids": Uuids(ids)})
    return {record.id: record for record in rows.readable(workflow_row, found, unreadable)}


@reads
def statuses(ids: Sequence[bytes]) -> Steps[dict[bytes, WorkflowStatus]]:
    """Where these workflows stand; an unknown id is absent."""
    found = yield Statement("workflow_statuses", {"ids": Uuids(ids)})
    return {
        rows.uuid(id): WorkflowStatus(status)
        for id, status in found
        if rows.is_uuid(id) and status in _STATUSES
    }


@reads
def endings(
    ids: Sequence[bytes], others: set[bytes] | None = None
) -> Steps[dict[bytes, WorkflowStatus]]:
    """How those of these workflows that have ended did so; the rest goes into `others`."""
    found = yield from statuses(ids)
    if others is not None:
        others.update(id for id, status in found.items() if not status.is_terminal)
    return {id: status for id, status in found.items() if status.is_terminal}


class FoundWorkflows(NamedTuple):
    """Some workflows, the newest first."""

    workflows: list[WorkflowRecord]
    next: bytes | None
    """Where the next page begins; None after the last one."""
    unreadable: Sequence[UnreadableRow] = ()


@reads
def find(
    where: WorkflowFilter, *, limit: int = 100, before: bytes | None = None
) -> Steps[FoundWorkflows]:
    """Workflows, newest first; `before` the last one of the page that came before.

    `TaskNotFound` if that is gone: nobody knows any more where the page begins.
    """
    if before is not None and not (yield Statement("read_workflows", {"ids": Uuids([before])})):
        raise TaskNotFound(before, noun="workflow")
    found = yield Statement(
        "list_workflows",
        {
            "before": before,
            "statuses": Texts(sorted(where.status)),
            "name": where.name,
            "tag": where.tag,
            "created_from": _at(where.created_from),
            "created_until": _at(where.created_until),
            "with_parts": where.parts,
            "limit": limit,
        },
    )
    unreadable: list[UnreadableRow] = []
    page = [*rows.readable(workflow_row, found, unreadable)]
    return FoundWorkflows(page, rows.last_id(found, 0, limit), unreadable)


@reads
def find_ids(
    first: bytes, last: bytes, ending: str = "", *, scan: int, limit: int
) -> Steps[list[bytes]]:
    """The ids between two that end with these digits, examining no more than `scan`."""
    found = yield Statement(
        "find_workflow_ids",
        {"first": first, "last": last, "ending": ending, "scan": scan, "limit": limit},
    )
    return list(rows.uuids(found))


@reads
def count(*, cap: int = COUNT_CAP) -> Steps[dict[WorkflowStatus, int]]:
    """How many of the newest `cap` workflows are in each status."""
    found = yield Statement("count_workflows", {"cap": cap})
    return {WorkflowStatus(status): number for status, number in found if status in _STATUSES}


@reads
def steps(
    workflow_id: bytes,
    *,
    after: bytes = bytes(16),
    limit: int = 1000,
    unreadable: list[UnreadableRow] | None = None,
) -> Steps[tuple[list[StepRecord], bytes | None]]:
    """The steps of a workflow by id, those that were added too, a page at a time; and where the
    next page begins."""
    found = yield Statement("read_steps", {"id": workflow_id, "after": after, "limit": limit})
    return [*rows.readable(step_row, found, unreadable)], rows.last_id(found, 0, limit)


class EdgeRecord(NamedTuple):
    """What a step waits for."""

    child_id: bytes
    parent_id: bytes
    on: str
    resolved: bool
    satisfied: bool | None
    kind: str
    """What the parent is: "task", "pause", "error gate", "end gate"."""
    status: TaskStatus | None
    """That of the parent."""


@reads
def edges(children: Sequence[bytes]) -> Steps[list[EdgeRecord]]:
    """What these steps wait for, or waited for."""
    found = yield Statement("edges_above", {"children": Uuids(children)})
    return [
        EdgeRecord(
            rows.uuid(child),
            rows.uuid(parent),
            on,
            bool(resolved),
            None if satisfied is None else bool(satisfied),
            kind,
            TaskStatus(status) if rows.is_status(status) else None,
        )
        for child, parent, on, resolved, satisfied, kind, status in found
        if rows.is_uuid(child) and rows.is_uuid(parent)
    ]


@reads
def live_added(adder_id: bytes, *, limit: int) -> Steps[list[bytes]]:
    """Steps that one has added, and that have not ended or been told to."""
    found = yield Statement(
        "added_steps", {"scopes": Uuids([adder_id]), "bad": False, "batch": limit}
    )
    return list(rows.uuids(found))


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
def values_of(wanted: Sequence[tuple[bytes, int]]) -> Steps[dict[bytes, list[StepValue]]]:
    """How these steps, (scope, number), stand, in their order by scope."""
    found = yield Statement(
        "scope_values",
        {
            "scopes": Uuids(scope_id for scope_id, _ in wanted),
            "numbers": Ints(number for _, number in wanted),
        },
    )
    values: dict[bytes, list[StepValue]] = {}
    for scope_id, id, number, status, result, handed_over, name in found:
        value = _value(id, number, status, result, handed_over, None, name)
        values.setdefault(rows.uuid(scope_id), []).append(value)
    return values


@reads
def scopes(ids: Sequence[bytes]) -> Steps[dict[bytes, ScopeValue]]:
    """What these scopes return, and their first bad endings; absent if it does not exist."""
    found = yield Statement("read_scopes", {"ids": Uuids(ids)})
    read: dict[bytes, ScopeValue] = {}
    for scope_id, workflow_id, returns, error_id, number, status, *rest in found:
        error = None
        if status is not None:
            result, handed_over, name = rest
            error = _value(error_id, number, status, result, handed_over, None, name)
        read[rows.uuid(scope_id)] = ScopeValue(rows.uuid(workflow_id), returns, error)
    return read


@reads
def scope(scope_id: bytes) -> Steps[ScopeValue | None]:
    """What a scope returns, and its first bad ending: that of a workflow, or of a step that
    handed over."""
    return (yield from scopes([scope_id])).get(scope_id)


def _value(
    id: bytes | str,
    number: int,
    status: str,
    result: str | None,
    handed_over: bool | None,
    satisfied: bool | None,
    name: str | None = None,
) -> StepValue:
    met = None if satisfied is None else bool(satisfied)
    named = rows.optional_text(name)
    status_ = TaskStatus(status)
    return StepValue(rows.uuid(id), number, status_, result, bool(handed_over), met, named)
