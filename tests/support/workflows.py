"""Workflows for tests of the store: plans in a line, and steps brought to their ends."""

from __future__ import annotations

from typing import Any

from holdfast.core.identity import new_id
from holdfast.core.outcome import Failed, HandedOver
from holdfast.core.records import SubmitAnswer
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, StepEdge, StepPlan, WorkflowPlan
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.verbs import dependents, resubmits, steering, workflows
from tests.support.stores import Lab
from tests.support.verbs import BOOM, submission


def plan_of(*steps: StepPlan, **fields: Any) -> WorkflowPlan:
    given: dict[str, Any] = {"id": new_id(), "name": "nightly", "digest": "d1", "sent_at": 1}
    return WorkflowPlan(steps=steps, **{**given, **fields})


def step(*parents: int | StepEdge, **fields: Any) -> StepPlan:
    task = submission(**fields.pop("task", {}))
    edges = tuple(p if isinstance(p, StepEdge) else StepEdge(p) for p in parents)
    return StepPlan(fields.pop("name", task.id.hex()), task, edges, **fields)


def begin(lab: Lab, plan: WorkflowPlan) -> list[bytes]:
    answer = lab.run(workflows.start(plan))
    assert answer == (plan.id, SubmitAnswer.CREATED)
    return [step.task.id for step in plan.steps]


def whole(lab: Lab, plan: WorkflowPlan) -> WorkflowRecord:
    return lab.run(workflows.read([plan.id]))[plan.id]


def status(lab: Lab, plan: WorkflowPlan) -> WorkflowStatus:
    return whole(lab, plan).status


def complete(lab: Lab, id: bytes) -> None:
    lab.complete(lab.run_again(id))


def fail(lab: Lab, id: bytes) -> None:
    lab.end(lab.run_again(id), Failed(BOOM))


def code(lab: Lab, id: bytes) -> str | None:
    return lab.task(id).error_code


def hand_over(lab: Lab, id: bytes, *steps: StepPlan, **fields: Any) -> list[bytes]:
    added = AddedPlan(steps=steps, **fields)
    landing = lab.end(lab.run_again(id), HandedOver(added.encode()))
    assert landing.status is TaskStatus.WAITING
    return [step.task.id for step in steps]


def stop(lab: Lab, id: bytes) -> None:
    """Cancel what has to be cancelled of a whole that winds down."""
    while lab.run(steering.stop_some(id)):
        pass


def pause(lab: Lab, id: bytes, by: str | None = None) -> list[bytes]:
    """Pause a whole with its parts, and hold their steps."""
    paused = lab.run(steering.pause(id, by=by))
    for one in paused:
        while lab.run(dependents.hold(one)):
            pass
    return paused


def unheld(lab: Lab) -> list[bytes]:
    """Paused workflows of which not all steps are held that have not begun."""
    return lab.run(steering.unheld(lab.run(steering.tended()).paused))


def resume(lab: Lab, id: bytes) -> list[bytes]:
    """Resume a whole with its parts, and release their steps."""
    resumed = lab.run(steering.resume(id))
    for one in resumed:
        while lab.run(steering.release_some(one)):
            pass
    return resumed


def resubmit(
    lab: Lab, id: bytes, *, fresh: bool = False, page: int = resubmits.PAGE
) -> list[bytes]:
    """Resubmit a whole, to the last of its steps."""
    begun = lab.run(resubmits.begin(id, fresh=fresh))
    for one in begun:
        while lab.run(resubmits.go_on(one, page=page)):
            pass
        while lab.run(steering.release_some(one)):
            pass
    return begun
