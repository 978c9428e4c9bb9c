"""Every verb of whole workflows, from every state: what the table says, or an unchanged row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.lifecycle import STOPPINGS, WORKFLOW_TRANSITIONS, WorkflowVerb
from holdfast.core.workflows.plan import WorkflowPlan
from holdfast.store.op import Row, Statement, Steps, writes
from holdfast.store.verbs import resubmits, retention, steering, workflows
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.workflows import begin, plan_of, step

V, W = WorkflowVerb, WorkflowStatus

STATES = [
    *((W.RUNNING, stopping) for stopping in (None, *STOPPINGS)),
    (W.PAUSED, None),
    (W.PAUSED, "fail_fast"),
    (W.COMPLETED, None),
    (W.COMPLETED, "cancel"),
    *((W.FAILED, stopping) for stopping in (None, "fail_fast", "deadline")),
    (W.CANCELLED, "cancel"),
]
"""Those that there are: status, and why it winds down."""


@writes
def statement(name: str, **params: object) -> Steps[list[Row]]:
    return [*(yield Statement(name, params))]


WAYS: dict[WorkflowVerb, Callable[[Lab, bytes], object]] = {
    V.START: lambda lab, id: lab.run(workflows.start(plan_of(step(), id=id))),
    V.PAUSE: lambda lab, id: lab.run(steering.pause(id, by="ada")),
    V.RESUME: lambda lab, id: lab.run(steering.resume(id)),
    V.FAIL_FAST: lambda lab, id: lab.run(
        statement("stop_workflow", id=id, why="fail_fast", stopped_by=None, stop_all=False)
    ),
    V.DEADLINE: lambda lab, id: lab.run(steering.end_late(id)),
    V.CANCEL: lambda lab, id: lab.run(steering.cancel(id, by="ada")),
    V.FINISH: lambda lab, id: lab.run(statement("finish_workflow", id=id)),
    V.RESUBMIT: lambda lab, id: lab.run(resubmits.begin(id)),
    V.DELETE: lambda lab, id: lab.run(steering.delete(id)),
    V.PRUNE: lambda lab, id: lab.run(
        retention.prune_workflow(before=lab.clock.now + SECOND, dead_before=None)
    ),
}


def test_every_verb_is_tried() -> None:
    # A step that adds steps is no verb of the whole's own row: see `test_workflow_steering`.
    assert WAYS.keys() | {V.ADD} == set(V) == set(WORKFLOW_TRANSITIONS)


def put(lab: Lab, status: WorkflowStatus, stopping: str | None) -> WorkflowPlan:
    """A workflow in this state, late, and of two steps of which one failed."""
    plan = plan_of(step(), step(), on_failure="fail_fast", deadline_us=1)
    begin(lab, plan)
    lab.clock.advance(1)
    ended = "holdfast_now()" if lab.engine == "postgresql" else str(lab.clock.now)
    lab.sql(
        "UPDATE holdfast_workflows SET status = :status, stopping = :stopping, "
        f"finished_at = {ended if status.is_terminal else 'NULL'}",
        status=status.value,
        stopping=stopping,
    )
    lab.sql("UPDATE holdfast_step_counts SET bad = 1")
    return plan


@on_each_engine
@pytest.mark.parametrize("state", STATES, ids=lambda state: "-".join(map(str, state)))
@pytest.mark.parametrize("verb", WAYS)
def test_a_verb_does_what_the_table_says(
    lab: Lab, verb: WorkflowVerb, state: tuple[WorkflowStatus, str | None]
) -> None:
    status, stopping = state
    plan = put(lab, status, stopping)
    before = lab.contents("workflows")
    WAYS[verb](lab, plan.id)
    row = WORKFLOW_TRANSITIONS[verb]
    if status not in row.sources or not (status.is_terminal or stopping in row.after):
        assert lab.contents("workflows") == before
        return
    found = lab.run(workflows.read([plan.id]))
    if not row.targets:
        assert found == {}
        return
    after = found[plan.id]
    assert after.status in row.targets
    assert after.stopping == (stopping if row.stopping == "same" else row.stopping)
    assert (after.finished_at is not None) == after.status.is_terminal
    assert (after.paused_at is not None) == (after.status is W.PAUSED and status is not W.PAUSED)
    if verb is V.FAIL_FAST:
        assert after.status is status
