"""What once made a workflow wait for ever, or would have: each way in its simplest form."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import Failed
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import StepEdge, SubWorkflow
from holdfast.store.verbs import cancel, operate, resubmits, steering, timing, workflows
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import (
    begin,
    complete,
    fail,
    hand_over,
    pause,
    plan_of,
    resubmit,
    resume,
    status,
    step,
    stop,
)

S, W = TaskStatus, WorkflowStatus


@on_each_engine
@pytest.mark.parametrize("whole_of_it", [True, False])
def test_a_part_that_was_paused_once_runs_again(lab: Lab, whole_of_it: bool) -> None:
    """The pause of a part has the id of the step that added it, and is no edge to that step."""
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    ids = hand_over(lab, adder, step(), step(0), workflow=SubWorkflow(name="part"))
    pause(lab, plan.id)
    resume(lab, plan.id)
    fail(lab, ids[0])
    assert [lab.status(id) for id in (*ids, adder)] == [S.FAILED, S.CANCELLED, S.FAILED]
    lab.clock.advance(1)
    if whole_of_it:
        resubmit(lab, plan.id)
    else:
        lab.run(operate.resubmit([adder]))
    for id in (*ids, below):
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_a_step_that_ended_while_it_was_held_runs_again(lab: Lab, how: str) -> None:
    """Nobody releases it any more: the pause was over before."""
    late = lab.clock.now + SECOND
    plan = plan_of(step(task={"good_until": late}), step(0))
    held, below = begin(lab, plan)
    pause(lab, plan.id)
    if how == "cancelled":
        lab.run(cancel.cancel([held]))
    else:
        lab.clock.advance(2)
        lab.run(timing.expire())
    resume(lab, plan.id)
    assert (lab.status(held), lab.status(below)) == (getattr(S, how.upper()), S.CANCELLED)
    assert lab.run(operate.resubmit([held])) == {held: True}
    complete(lab, held)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_step_that_ended_while_it_was_held_is_held_again(lab: Lab) -> None:
    plan = plan_of(step(), step())
    one, _ = begin(lab, plan)
    pause(lab, plan.id)
    lab.run(cancel.cancel([one]))
    assert lab.run(operate.resubmit([one])) == {one: True}
    assert lab.status(one) is S.WAITING
    resume(lab, plan.id)
    assert lab.status(one) is S.PENDING


@on_each_engine
def test_what_handed_over_because_of_a_failure_that_is_taken_back(lab: Lab) -> None:
    """Its code has run: how its parents end does not matter to it any more."""
    plan = plan_of(
        step(task={"queue_name": "first"}),
        step(StepEdge(0, "failure"), handler=True),
    )
    first, handler = begin(lab, plan)
    lab.end(lab.run_again(first, "first"), Failed(BOOM))
    (added,) = hand_over(lab, handler, step())
    lab.run(operate.resubmit([first]))
    lab.complete(lab.run_again(first, "first"))
    assert (lab.task(handler).deps_needed, lab.task(handler).deps_open) == (0, 0)
    fail(lab, added)
    assert (lab.status(handler), status(lab, plan)) == (S.FAILED, W.FAILED)
    assert lab.run(operate.resubmit([added])) == {added: True}
    assert lab.status(handler) is S.WAITING
    complete(lab, added)
    assert (lab.status(handler), status(lab, plan)) == (S.COMPLETED, W.COMPLETED)


@on_each_engine
def test_a_part_that_was_deleted_is_not_waited_for(lab: Lab) -> None:
    """Who deleted the whole has gone in the middle of it, and somebody resubmits what is left."""
    plan = plan_of(step(), step(task={"queue_name": "other"}))
    adder, other = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    fail(lab, inner)
    lab.end(lab.run_again(other, "other"), Failed(BOOM))
    lab.run(steering.delete(plan.id))
    assert lab.run(workflows.read([adder])) == {}
    lab.clock.advance(1)
    resubmit(lab, plan.id)
    assert lab.status(adder) is S.FAILED
    lab.complete(lab.run_again(other, "other"))
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_very_many_that_are_skipped_at_once(lab: Lab) -> None:
    """Handlers of a failure that did not come, and an end that what they ended leads to."""
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    ids = hand_over(
        lab,
        adder,
        step(),
        step(0),
        *(step(StepEdge(1, "failure"), handler=True) for _ in range(1_100)),
        step(task={"queue_name": "bad"}),
    )
    lab.end(lab.run_again(ids[-1], "bad"), Failed(BOOM))
    complete(lab, ids[0])
    complete(lab, ids[1])
    while lab.run(steering.resolve_later()):
        pass
    assert (lab.status(adder), lab.status(below)) == (S.FAILED, S.CANCELLED)
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_late_look_at_one_that_wound_down_accepts_no_failure(lab: Lab) -> None:
    """A worker that was about to stop steps, when all had ended and it was resubmitted."""
    plan = plan_of(step(), step(0), on_failure="pause")
    first, below = begin(lab, plan)
    fail(lab, first)
    assert status(lab, plan) is W.PAUSED
    assert lab.run(steering.stop_some(plan.id)) == 0
    assert (status(lab, plan), lab.status(below)) == (W.PAUSED, S.WAITING)
    resume(lab, plan.id)
    assert (status(lab, plan), lab.status(below)) == (W.FAILED, S.CANCELLED)


@on_each_engine
def test_a_handler_of_one_that_failed_fast_while_it_was_paused_stays_held(lab: Lab) -> None:
    plan = plan_of(
        step(),
        step(StepEdge(0, "failure"), handler=True),
        step(task={"queue_name": "other"}),
        on_failure="fail_fast",
    )
    first, handler, other = begin(lab, plan)
    run = lab.run_again(first)
    pause(lab, plan.id)
    lab.end(run, Failed(BOOM))
    stop(lab, plan.id)
    assert [lab.status(id) for id in (handler, other)] == [S.WAITING, S.CANCELLED]
    resume(lab, plan.id)
    stop(lab, plan.id)
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_resubmit_ends_the_pause_of_a_part_that_winds_down(lab: Lab) -> None:
    plan = plan_of(step(), step(task={"queue_name": "other"}))
    adder, other = begin(lab, plan)
    inner, handler = hand_over(
        lab,
        adder,
        step(),
        step(StepEdge(0, "failure"), handler=True),
        workflow=SubWorkflow(name="part", on_failure="fail_fast"),
    )
    run = lab.run_again(inner)
    lab.end(lab.run_again(other, "other"), Failed(BOOM))
    pause(lab, plan.id)
    lab.end(run, Failed(BOOM))
    part = lab.run(workflows.read([adder]))[adder]
    assert (part.status, part.stopping) == (W.PAUSED, "fail_fast")
    lab.run(resubmits.begin(plan.id))
    while lab.run(resubmits.go_on(plan.id)):
        pass
    stop(lab, adder)
    complete(lab, handler)
    lab.complete(lab.run_again(other, "other"))
    assert (lab.status(adder), status(lab, plan)) == (S.FAILED, W.FAILED)
