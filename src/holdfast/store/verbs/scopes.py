"""Scopes: steps written with their edges, gates and count rows.

Owns how steps become rows, those of a workflow and those that a step adds. How they are counted
down is in `step_counts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.core.identity import new_id
from holdfast.core.workflows.plan import StepPlan
from holdfast.store.op import Channel, Column, Hint, Row, Statement, Steps, Table
from holdfast.store.verbs.routes import routed

STEPS_A_ROW = 64
"""How many steps share a count row."""
_AT_ONCE = 1000
"""Rows of one statement."""
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
    "schedule_name": Column.TEXT,
    "schedule_tick": Column.TIME,
}
_EDGE_COLUMNS = {"parent_id": Column.UUID, "child_id": Column.UUID, "on_status": Column.TEXT}
_COUNT_COLUMNS = {
    "scope_id": Column.UUID,
    "part": Column.INT,
    "is_tail": Column.BOOL,
    "open": Column.INT,
}


def add_scope(
    scope_id: bytes,
    workflow_id: bytes,
    steps: Sequence[StepPlan],
    returns: str | None,
    *,
    run_at: int | None = None,
) -> Steps[None]:
    """Write steps with their edges, gates and count rows."""
    tasks = yield from routed([step.task for step in steps])
    steps = [
        step if task is step.task else replace(step, task=task)
        for step, task in zip(steps, tasks, strict=True)
    ]
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
        task.schedule_name,
        task.schedule_tick,
    )
