"""Steering whole workflows: none is forgotten among many, and those that rest cost little."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.core.outcome import Failed
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import WorkflowPlan
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.op import Op
from holdfast.store.verbs import dependents, resubmits, steering
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import begin, pause, plan_of, status, step

MANY = 120
"""More than a page."""


class Duty:
    """Steers, and counts what is asked of the store."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.asked: Counter[str] = Counter()
        self._steering = WorkflowSteering(lab.store, lambda: self.now)
        run = lab.store.run

        def counted(op: Op[object]) -> object:
            self.asked[op.name] += 1
            return run(op)

        monkeypatch.setattr(lab.store, "run", counted)

    def work(self, seconds: int) -> int:
        done = 0
        for _ in range(seconds):
            self.now += 1
            done += self._steering.round()
        return done


def winding_down(lab: Lab) -> WorkflowPlan:
    """A workflow whose cleanup nobody runs."""
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True))
    begin(lab, plan)
    lab.run(steering.cancel(plan.id))
    return plan


@on_each_engine
def test_none_is_forgotten_behind_many_that_wind_down(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan_of(step(), on_failure="pause")
    begin(lab, before)
    many = [winding_down(lab) for _ in range(MANY)]
    last, again = winding_down(lab), plan_of(step(task={"queue_name": "again"}))
    (failed,) = begin(lab, again)
    lab.end(lab.run_again(failed, "again"), Failed(BOOM))
    lab.run(resubmits.begin(again.id))
    Duty(lab, monkeypatch).work(2)
    for plan in (*many, last):
        assert lab.task(plan.steps[0].task.id).error_code == "TASK_CANCELLED"
    lab.complete(lab.run_again(failed, "again"))
    assert status(lab, again) is WorkflowStatus.COMPLETED


@on_each_engine
def test_those_that_rest_are_looked_at_ever_more_seldom(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = winding_down(lab)
    held = plan_of(step(), step())
    begin(lab, held)
    pause(lab, held.id)
    duty = Duty(lab, monkeypatch)
    assert duty.work(10) > 0
    assert (duty.asked["stop_some"], duty.asked["unheld"]) >= (10, 10)
    duty.asked.clear()
    assert duty.work(120) == 0
    assert 4 <= duty.asked["stop_some"] <= 10
    assert 4 <= duty.asked["unheld"] <= 10
    duty.asked.clear()
    # What is done to the whole wakes it.
    lab.clock.advance(1)
    lab.run(steering.cancel(plan.id, cleanup=False))
    assert duty.work(1) == 1
    assert status(lab, plan) is WorkflowStatus.CANCELLED


@on_each_engine
def test_what_came_back_to_one_that_was_paused_a_moment_ago_is_held(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(step(), step())
    first, _ = begin(lab, plan)
    lab.run(steering.pause(plan.id))
    duty = Duty(lab, monkeypatch)
    assert duty.work(3) == 2
    lab.run(steering.resume(plan.id))
    lab.clock.advance(1)
    assert duty.work(1) == 2
    assert lab.status(first) is TaskStatus.PENDING
    while lab.run(dependents.hold(plan.id)):
        pass
    assert duty.work(1) == 0
