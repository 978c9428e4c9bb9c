"""Steps that wait for ever, because somebody wrote their rows: the audit finds and tells them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.core.outcome import Failed
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import SubWorkflow
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.op import at_once
from holdfast.store.verbs import leases, steering
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import begin, complete, fail, hand_over, pause, plan_of, status, step

S, W = TaskStatus, WorkflowStatus


def audit(lab: Lab) -> int:
    """The whole walk, and what workers do after it; how many steps it told."""
    found = lab.run(at_once(leases.audit()))
    assert found.next is None
    WorkflowSteering(lab.store, lambda: 0.0).round()
    return found.stuck


def healthy(lab: Lab) -> None:
    assert not lab.run(leases.suspects()).keys


def opened(lab: Lab, parent: bytes, child: bytes) -> None:
    """Somebody opens an edge that has been resolved."""
    false = "false" if lab.engine == "postgresql" else "0"
    lab.sql(
        f"UPDATE holdfast_task_dependencies SET resolved = {false}, satisfied = NULL "
        "WHERE parent_id = :parent AND child_id = :child",
        parent=parent,
        child=child,
    )
    lab.sql(
        "UPDATE holdfast_tasks SET status = 'WAITING', ready = "
        f"{false}, deps_open = deps_open + 1, deps_needed = deps_needed + 1 WHERE id = :id",
        id=child,
    )


@on_each_engine
def test_of_an_end_that_it_was_not_told(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1))
    first, second, third = begin(lab, plan)
    complete(lab, first)
    opened(lab, first, second)
    assert audit(lab) == 1
    healthy(lab)
    complete(lab, second)
    complete(lab, third)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_of_a_failure_that_it_was_not_told(lab: Lab) -> None:
    plan = plan_of(step(required=False), step(task={"queue_name": "other"}), step(0, 1))
    first, other, join = begin(lab, plan)
    running = lab.run_again(other, "other")
    fail(lab, first)
    assert lab.status(join) is S.CANCELLED
    lab.complete(running)
    assert status(lab, plan) is W.FAILED
    healthy(lab)


@on_each_engine
def test_of_a_step_that_is_gone(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(task={"queue_name": "other"}))
    first, below, other = begin(lab, plan)
    complete(lab, first)
    opened(lab, first, below)
    lab.sql("DELETE FROM holdfast_tasks WHERE id = :id", id=first)
    assert audit(lab) == 1
    assert (lab.status(below), lab.task(below).error_code) == (S.CANCELLED, "UPSTREAM_FAILED")
    lab.complete(lab.run_again(other, "other"))


@on_each_engine
@pytest.mark.parametrize("part", [True, False])
def test_of_a_pause_that_is_over(lab: Lab, part: bool) -> None:
    plan = plan_of(step())
    (first,) = begin(lab, plan)
    held, whole_id = first, plan.id
    if part:
        (held,) = hand_over(lab, first, step(), workflow=SubWorkflow(name="part"))
        whole_id = first
    pause(lab, plan.id)
    lab.sql("UPDATE holdfast_workflows SET status = 'RUNNING', paused_at = NULL")
    false = "false" if lab.engine == "postgresql" else "0"
    lab.sql(f"UPDATE holdfast_workflows SET held = {false} WHERE workflow_id = :id", id=whole_id)
    assert audit(lab) == 1
    healthy(lab)
    complete(lab, held)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_of_a_failure_that_was_accepted(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    first, below = begin(lab, plan)
    fail(lab, first)
    healthy(lab)
    lab.run(steering.resume(plan.id))
    false = "false" if lab.engine == "postgresql" else "0"
    lab.sql(f"UPDATE holdfast_workflows SET held = {false}")
    assert audit(lab) == 1
    assert (lab.status(below), status(lab, plan)) == (S.CANCELLED, W.FAILED)


@on_each_engine
@pytest.mark.parametrize("tail", ["error", "ended"])
def test_of_a_gate_that_is_open(lab: Lab, tail: str) -> None:
    plan = plan_of(
        step(task={"queue_name": "body"}), step(tail=tail, handler=True, cleanup=tail == "ended")
    )
    body, handler = begin(lab, plan)
    lab.end(lab.run_again(body, "body"), Failed(BOOM))
    healthy(lab)
    false = "false" if lab.engine == "postgresql" else "0"
    lab.sql(f"UPDATE holdfast_task_dependencies SET resolved = {false}, satisfied = NULL")
    lab.sql(
        f"UPDATE holdfast_tasks SET status = 'WAITING', ready = {false}, deps_open = 1, "
        "deps_needed = 1 WHERE id = :id",
        id=handler,
    )
    assert audit(lab) == 1
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED


def _as_counted(lab: Lab, join: bytes) -> None:
    """Its edges are resolved, and it counts one of them as open."""
    false = "false" if lab.engine == "postgresql" else "0"
    lab.sql(
        f"UPDATE holdfast_tasks SET status = 'WAITING', ready = {false}, deps_open = 1, "
        "deps_needed = 1 WHERE id = :id",
        id=join,
    )


def _needs_too_much(lab: Lab, join: bytes) -> None:
    _as_counted(lab, join)
    lab.sql("UPDATE holdfast_tasks SET deps_needed = 2 WHERE id = :id", id=join)


@on_each_engine
@pytest.mark.parametrize("damage", [_as_counted, _needs_too_much])
def test_of_nothing_at_all(lab: Lab, damage: Callable[[Lab, bytes], None]) -> None:
    plan = plan_of(step(), step(0))
    first, join = begin(lab, plan)
    complete(lab, first)
    damage(lab, join)
    assert audit(lab) == 1
    healthy(lab)
    complete(lab, join)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
@pytest.mark.parametrize(
    "how", ["paused", "paused at a failure", "winds down", "being resubmitted"]
)
def test_what_waits_as_it_should_is_left_alone(lab: Lab, how: str) -> None:
    policy = "pause" if how == "paused at a failure" else "continue"
    plan = plan_of(
        step(task={"queue_name": "a"}),
        step(task={"queue_name": "b"}),
        step(0, 1),
        step(0, 1, needed=1),
        step(tail="error", handler=True),
        step(tail="ended", handler=True, cleanup=True),
        on_failure=policy,
    )
    a, b, *_ = begin(lab, plan)
    healthy(lab)
    runs = [lab.run_again(id, name) for id, name in ((a, "a"), (b, "b"))]
    if how == "paused":
        pause(lab, plan.id)
        lab.complete(runs[0])
    elif how == "winds down":
        lab.run(steering.cancel(plan.id))
    else:
        lab.end(runs[0], Failed(BOOM))
    healthy(lab)
    assert audit(lab) == 0
