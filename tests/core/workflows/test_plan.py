"""A plan crosses from a child to its supervisor as it is, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from holdfast.core.errors import PayloadError
from holdfast.core.identity import new_id
from holdfast.core.records import Submission
from holdfast.core.workflows.plan import AddedPlan, StepEdge, StepPlan, SubWorkflow


def a_step(name: str, *edges: StepEdge) -> StepPlan:
    task = Submission(new_id(), "add", 1, "default", 50, "[1]", "{}", "sha", 7)
    return StepPlan(name, task, edges, inputs="{}")


def test_added_steps_come_as_they_were_sent() -> None:
    plan = AddedPlan(
        steps=(a_step("a"), a_step("b", StepEdge(0, "always"))),
        returns="[]",
        workflow=SubWorkflow(name="nightly"),
    )
    read = AddedPlan.decode(plan.encode())
    # A sequence is read as a list.
    assert [step.name for step in read.steps] == ["a", "b"]
    assert [step.task._replace(depends_on=()) for step in read.steps] == [
        step.task for step in plan.steps
    ]
    assert read.steps[1].edges == (StepEdge(0, "always"),)
    assert (read.returns, read.workflow) == (plan.returns, plan.workflow)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x93\x01\x02\x03"])
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(PayloadError, match="cannot be read"):
        AddedPlan.decode(data)


@pytest.mark.parametrize("parent", [-1, 2**31])
def test_an_edge_to_nowhere_is_refused(parent: int) -> None:
    with pytest.raises(PayloadError):
        AddedPlan.decode(AddedPlan(steps=(a_step("a", StepEdge(parent)),)).encode())
