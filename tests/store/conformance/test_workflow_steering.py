"""Workflows that change on their way: steps that add steps, pauses, resubmits."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import CancelAcknowledged, Crashed, HandedOver
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, SubWorkflow
from holdfast.store.verbs import (
    cancel,
    dependents,
    operate,
    retention,
    steering,
    timing,
    workflows,
)
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.workflows import (
    begin,
    code,
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
    unheld,
    whole,
)

S, W = TaskStatus, WorkflowStatus


# Steps that add steps.


@on_each_engine
def test_a_step_that_handed_over_ends_with_what_it_added(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    first, second = hand_over(lab, adder, step(), step(0), returns="r")
    task = lab.task(adder)
    assert (task.status, task.handed_over, task.attempt) == (S.WAITING, True, 1)
    assert [a.outcome for a in lab.attempts(adder)] == ["COMPLETED"]
    complete(lab, first)
    assert (lab.status(adder), lab.status(below)) == (S.WAITING, S.WAITING)
    complete(lab, second)
    assert (lab.status(adder), lab.task(adder).result) == (S.COMPLETED, None)
    found = lab.run(workflows.scope(adder))
    assert found is not None
    assert found.returns == "r"
    (value,) = lab.run(workflows.values(plan.id, [0], child_id=below))
    assert (value.handed_over, value.satisfied) == (True, True)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_step_fails_with_the_first_error_of_what_it_added(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    added, skipped = hand_over(lab, adder, step(), step(0))
    fail(lab, added)
    assert (lab.status(skipped), lab.status(adder), code(lab, adder)) == (
        S.CANCELLED,
        S.FAILED,
        "BOOM",
    )
    assert (lab.status(below), status(lab, plan)) == (S.CANCELLED, W.FAILED)


@on_each_engine
@pytest.mark.parametrize("which", ["adder", "added"])
def test_resubmit_runs_what_was_added_and_not_the_adder(lab: Lab, which: str) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    (added,) = hand_over(lab, adder, step())
    fail(lab, added)
    assert status(lab, plan) is W.FAILED
    lab.run(operate.resubmit([adder if which == "adder" else added]))
    assert [lab.status(id) for id in (adder, added, below)] == [S.WAITING, S.PENDING, S.WAITING]
    assert status(lab, plan) is W.RUNNING
    complete(lab, added)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED
    assert lab.task(adder).attempt == 1


@on_each_engine
def test_a_sub_workflow_has_a_row_of_its_own(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    part = SubWorkflow(name="part", on_failure="fail_fast")
    inner, other = hand_over(lab, adder, step(), step(), workflow=part)
    record = lab.run(workflows.read([adder]))[adder]
    assert (record.name, record.parent_id, record.step_id) == ("part", plan.id, adder)
    assert len(lab.run(workflows.steps(adder))[0]) == 2
    fail(lab, inner)
    assert lab.run(workflows.read([adder]))[adder].stopping == "fail_fast"
    assert whole(lab, plan).stopping is None
    stop(lab, adder)
    assert lab.status(other) is S.CANCELLED
    assert lab.run(workflows.read([adder]))[adder].status is W.FAILED
    assert [lab.status(id) for id in (adder, below)] == [S.FAILED, S.CANCELLED]
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_cancel_goes_down_into_what_was_added(lab: Lab) -> None:
    plan = plan_of(step(), step())
    sub, adder = begin(lab, plan)
    (inner,) = hand_over(lab, sub, step(), workflow=SubWorkflow(name="part"))
    lab.clock.advance(0.001)
    case = next(t for t in lab.claim().tasks if t.id == adder)
    lab.start(case)
    added = step()
    lab.end(case, HandedOver(AddedPlan(steps=(added,)).encode()))
    lab.run(steering.cancel(plan.id))
    for id in (plan.id, sub):
        stop(lab, id)
    assert [lab.status(id) for id in (added.task.id, adder, sub)] == [S.CANCELLED] * 3
    assert lab.status(inner) is S.CANCELLED
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
def test_cancel_of_a_step_that_handed_over_cancels_what_it_added(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    (added,) = hand_over(lab, adder, step())
    lab.run(cancel.cancel([adder]))
    assert [lab.status(id) for id in (adder, added)] == [S.CANCELLED, S.CANCELLED]


@on_each_engine
def test_who_was_told_to_stop_adds_nothing(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    case = lab.run_again(adder)
    lab.run(steering.cancel(plan.id))
    landing = lab.end(case, HandedOver(AddedPlan(steps=(step(),)).encode()))
    assert landing.status is S.CANCELLED
    assert len(lab.run(workflows.steps(plan.id))[0]) == 1
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
def test_only_a_step_can_add_steps(lab: Lab) -> None:
    case = lab.running()
    lab.end(case, HandedOver(AddedPlan(steps=(step(),)).encode()))
    assert (lab.status(case.id), code(lab, case.id)) == (S.FAILED, "RESULT_INVALID")


@on_each_engine
def test_nonsense_fails_its_own_task(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    lab.end(lab.run_again(adder), HandedOver(AddedPlan(steps=(step(0),)).encode()))
    assert code(lab, adder) == "RESULT_INVALID"


# Pausing, and what is done later.


@on_each_engine
def test_a_pause_holds_what_has_not_begun_until_it_is_resumed(lab: Lab) -> None:
    plan = plan_of(step(), step(), step(0))
    a, b, c = begin(lab, plan)
    case = lab.run_again(a)
    assert pause(lab, plan.id, by="ada")
    assert not pause(lab, plan.id)
    record = whole(lab, plan)
    assert (record.status, record.paused_by, record.paused_at) == (W.PAUSED, "ada", lab.clock.now)
    lab.complete(case)
    assert [lab.status(id) for id in (b, c)] == [S.WAITING, S.WAITING]
    assert resume(lab, plan.id)
    assert [lab.status(id) for id in (b, c)] == [S.PENDING, S.PENDING]
    assert not resume(lab, plan.id)
    for id in (b, c):
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_weekends_pause_expires_nothing(lab: Lab) -> None:
    plan = plan_of(step(task={"good_for_us": SECOND}))
    (only,) = begin(lab, plan)
    pause(lab, plan.id)
    lab.clock.advance(60)
    lab.run(timing.expire())
    resume(lab, plan.id)
    assert (lab.status(only), lab.task(only).good_until) == (S.PENDING, lab.clock.now + SECOND)


@on_each_engine
def test_a_step_that_came_back_as_the_pause_began_is_held_later(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    case = lab.run_again(only)
    pause(lab, plan.id)
    assert unheld(lab) == []
    # Its transaction has not seen the pause.
    lab.sql("UPDATE holdfast_workflows SET status = 'RUNNING'")
    lab.end(case, Crashed())
    lab.sql("UPDATE holdfast_workflows SET status = 'PAUSED'")
    assert unheld(lab) == [plan.id]
    lab.run(dependents.hold(plan.id))
    assert lab.status(only) is S.WAITING
    resume(lab, plan.id)
    complete(lab, only)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_failure_that_pauses_skips_nothing_until_it_is_accepted(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    first, below = begin(lab, plan)
    fail(lab, first)
    record = whole(lab, plan)
    assert (record.status, record.paused_by, lab.status(below)) == (W.PAUSED, None, S.WAITING)
    resume(lab, plan.id)
    assert (lab.status(below), status(lab, plan)) == (S.CANCELLED, W.FAILED)
    assert whole(lab, plan).error_id == first


@on_each_engine
def test_a_failure_that_pauses_is_taken_back_by_resubmit(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    first, below = begin(lab, plan)
    fail(lab, first)
    resubmit(lab, plan.id)
    resume(lab, plan.id)
    complete(lab, first)
    complete(lab, below)
    assert (status(lab, plan), lab.task(below).attempt) == (W.COMPLETED, 1)


@on_each_engine
def test_cancel_of_a_paused_workflow_releases_its_cleanups(lab: Lab) -> None:
    plan = plan_of(
        step(), step(0), step(tail="ended", handler=True, cleanup=True), on_failure="pause"
    )
    first, below, clean = begin(lab, plan)
    fail(lab, first)
    lab.run(dependents.hold(plan.id))
    lab.run(steering.cancel(plan.id))
    stop(lab, plan.id)
    assert lab.status(below) is S.CANCELLED
    complete(lab, clean)
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
def test_a_pause_goes_down_into_parts(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    pause(lab, plan.id)
    assert [lab.status(id) for id in (adder, inner, below)] == [S.WAITING] * 3
    resume(lab, plan.id)
    assert [lab.status(id) for id in (adder, inner, below)] == [S.WAITING, S.PENDING, S.WAITING]
    complete(lab, inner)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_long_chain_is_skipped_a_part_at_a_time(lab: Lab) -> None:
    plan = plan_of(step(), *(step(number) for number in range(49)))
    ids = begin(lab, plan)
    fail(lab, ids[0])
    assert (lab.status(ids[1]), lab.status(ids[-1])) == (S.CANCELLED, S.WAITING)
    assert status(lab, plan) is W.RUNNING
    while lab.run(steering.resolve_later()):
        pass
    assert {lab.status(id) for id in ids[1:]} == {S.CANCELLED}
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_resubmit_of_the_whole_runs_what_ended_badly_and_what_was_skipped(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1))
    a, b, c = begin(lab, plan)
    complete(lab, a)
    fail(lab, b)
    assert resubmit(lab, plan.id) == [plan.id]
    assert [lab.status(id) for id in (a, b, c)] == [S.COMPLETED, S.PENDING, S.WAITING]
    complete(lab, b)
    complete(lab, c)
    assert status(lab, plan) is W.COMPLETED
    assert resubmit(lab, plan.id) == []


@on_each_engine
def test_a_completed_workflow_stays_completed(lab: Lab) -> None:
    plan = plan_of(step(required=False))
    (only,) = begin(lab, plan)
    fail(lab, only)
    assert status(lab, plan) is W.COMPLETED
    assert lab.run(operate.resubmit([only])) == {only: False}
    assert (lab.status(only), status(lab, plan)) == (S.FAILED, W.COMPLETED)


@on_each_engine
def test_nothing_is_resubmitted_while_the_whole_winds_down(lab: Lab) -> None:
    plan = plan_of(step(), step())
    first, _ = begin(lab, plan)
    case = lab.run_again(first)
    lab.run(steering.cancel(plan.id))
    stop(lab, plan.id)
    assert resubmit(lab, plan.id) == []
    lab.end(case, CancelAcknowledged())
    assert status(lab, plan) is W.CANCELLED
    assert resubmit(lab, plan.id) == [plan.id]
    assert (status(lab, plan), whole(lab, plan).stopping) == (W.RUNNING, None)


# Retention.


@on_each_engine
def test_a_workflow_is_forgotten_as_a_whole(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    complete(lab, inner)
    late = lab.clock.now + 3600 * SECOND
    assert lab.run(retention.prune_workflow(before=late, dead_before=None)) == 0
    complete(lab, below)
    assert lab.run(retention.prune(before=late)).removed == 0
    assert lab.run(retention.prune_workflow(before=lab.clock.now, dead_before=None)) == 0
    assert lab.run(retention.prune_workflow(before=late, dead_before=None)) == 3
    assert lab.run(retention.prune_workflow(before=late, dead_before=None)) == 2
    assert lab.run(retention.prune_workflow(before=late, dead_before=None)) == 0
    for table in ("tasks", "workflows", "scopes", "step_counts", "task_dependencies"):
        assert lab.sql(f"SELECT count(*) FROM holdfast_{table}") == [(0,)], table


@on_each_engine
def test_a_dead_step_keeps_its_workflow(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    fail(lab, only)
    late = lab.clock.now + 3600 * SECOND
    assert lab.run(retention.prune(before=late, dead_before=late)).removed == 0
    assert lab.run(retention.prune_workflow(before=late, dead_before=None)) == 0
    assert lab.run(retention.prune_workflow(before=late, dead_before=late)) == 2


@on_each_engine
def test_a_retry_sees_the_values_that_released_it(lab: Lab) -> None:
    plan = plan_of(step(), step(), step(0, 1, needed=1))
    slow, quick, first = begin(lab, plan)
    slow_run = lab.run_again(slow)
    complete(lab, quick)
    lab.complete(slow_run)
    found = lab.run(workflows.values(plan.id, [0, 1], child_id=first))
    assert [value.satisfied for value in found] == [None, True]
    assert (lab.status(first), lab.task(first).deps_needed) == (S.PENDING, 0)
    fail(lab, first)
    lab.run(operate.resubmit([first]))
    assert lab.status(first) is S.PENDING
    complete(lab, first)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_whether_anything_is_to_be_steered_is_one_look(lab: Lab) -> None:
    def is_needed() -> bool:
        return lab.run(steering.is_needed())

    assert not is_needed()
    plan = plan_of(step(), step(0))
    first, second = begin(lab, plan)
    assert not is_needed()
    pause(lab, plan.id)
    assert is_needed()
    resume(lab, plan.id)
    assert not is_needed()
    lab.sql("UPDATE holdfast_tasks SET parked = 'CANCELLED' WHERE deps_open = 1")
    assert is_needed()
    lab.sql("UPDATE holdfast_tasks SET parked = NULL")
    lab.sql("UPDATE holdfast_workflows SET deadline_at = created_at")
    assert is_needed()
    lab.sql("UPDATE holdfast_workflows SET deadline_at = NULL")
    complete(lab, first)
    complete(lab, second)
    assert not is_needed()
