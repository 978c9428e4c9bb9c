"""The rules of workflows that show in no single verb: what holds whatever is done to a whole."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import (
    CancelAcknowledged,
    Crashed,
    Failed,
    HandedOver,
    NotBegun,
    Outcome,
    RetryAsked,
    SnoozeAsked,
)
from holdfast.core.records import ClaimedTask, Landing
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import AddedPlan, StepEdge, StepPlan, SubWorkflow
from holdfast.store.verbs import (
    cancel,
    dependents,
    operate,
    steering,
    timing,
    workflows,
)
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM
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


def hands(lab: Lab, task: ClaimedTask, *steps: StepPlan) -> Landing:
    """End a run by handing over."""
    return lab.end(task, HandedOver(AddedPlan(steps=steps).encode()))


def stop_all(lab: Lab) -> None:
    """Cancel what has to be cancelled, of every whole that winds down and of its parts."""
    for _ in range(3):
        for id in lab.run(steering.tended()).stopping:
            stop(lab, id)


# What has handed over has begun.


@on_each_engine
@pytest.mark.parametrize("act", ["pause", "expire", "late edge", "resubmit for a while"])
def test_what_has_handed_over_only_settles(lab: Lab, act: str) -> None:
    slow = step(task={"queue_name": "slow"}, required=False)
    plan = plan_of(slow, step(required=False), step(0, 1, needed=1), step(StepEdge(2, "always")))
    _, quick, adder, below = begin(lab, plan)
    slow_run = lab.run_again(slow.task.id, "slow")
    complete(lab, quick)
    (added,) = hand_over(lab, adder, step())
    match act:
        case "pause":
            pause(lab, plan.id)
            assert (lab.task(adder).deps_needed, lab.status(added)) == (0, S.WAITING)
            resume(lab, plan.id)
        case "expire":
            lab.clock.advance(60)
            lab.run(timing.expire())
        case "late edge":
            lab.end(slow_run, Failed(BOOM))
        case _:
            fail(lab, added)
            lab.run(operate.resubmit([adder], good_until=lab.clock.now + SECOND))
            lab.start(*lab.claim().tasks)
            lab.clock.advance(2)
            lab.run(timing.expire())
            assert [lab.status(id) for id in (added, adder)] == [S.RUNNING, S.WAITING]
            return
    assert (lab.status(adder), lab.task(adder).attempt) == (S.WAITING, 1)
    complete(lab, added)
    assert (lab.status(adder), lab.task(adder).attempt) == (S.COMPLETED, 1)
    complete(lab, below)


@on_each_engine
def test_what_is_added_to_a_paused_whole_is_held(lab: Lab) -> None:
    for workflow in (None, SubWorkflow(name="part")):
        plan = plan_of(step(), step(0))
        adder, below = begin(lab, plan)
        case = lab.run_again(adder)
        pause(lab, plan.id, by="ada")
        first, second = step(), step(0)
        added = AddedPlan(steps=(first, second), workflow=workflow)
        lab.end(case, HandedOver(added.encode()))
        assert lab.statuses([first.task.id, second.task.id]) == [S.WAITING, S.WAITING]
        if workflow is not None:
            part = lab.run(workflows.read([adder]))[adder]
            assert (part.status, part.paused_by) == (W.PAUSED, "ada")
        assert unheld(lab) == []
        resume(lab, plan.id)
        for id in (first.task.id, second.task.id, below):
            complete(lab, id)
        assert status(lab, plan) is W.COMPLETED


# Steps that come back while the whole is paused or winds down.

BACK: dict[str, Outcome] = {
    "retry": RetryAsked(BOOM, SECOND),
    "snooze": SnoozeAsked(SECOND),
    "interrupt": NotBegun(),
    "recover": Crashed(),
}


@on_each_engine
@pytest.mark.parametrize("how", [*BACK, "release"])
def test_a_step_that_comes_back_to_a_paused_whole_is_held_at_once(lab: Lab, how: str) -> None:
    plan = plan_of(step(), step(0))
    first, below = begin(lab, plan)
    case = lab.claim_of(first)
    if how != "release":
        lab.started(case)
    pause(lab, plan.id)
    assert lab.status(first) is (S.CLAIMED if how == "release" else S.RUNNING)
    if how == "release":
        lab.release(case)
    else:
        lab.end(case, BACK[how])
    assert lab.status(first) is S.WAITING
    assert unheld(lab) == []
    resume(lab, plan.id)
    lab.clock.advance(2)
    lab.run(timing.promote())
    complete(lab, first)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
@pytest.mark.parametrize("how", [*BACK, "release"])
def test_a_step_that_comes_back_to_a_whole_that_failed_fast_is_cancelled_at_once(
    lab: Lab, how: str
) -> None:
    other = step(task={"queue_name": "other"})
    plan = plan_of(step(), other, on_failure="fail_fast")
    first, _ = begin(lab, plan)
    case = lab.claim_of(first)
    if how != "release":
        lab.started(case)
    other_run = lab.run_again(other.task.id, "other")
    lab.end(other_run, Failed(BOOM))
    if how == "release":
        lab.release(case)
    else:
        lab.end(case, BACK[how])
    assert (lab.status(first), code(lab, first)) == (S.CANCELLED, "TASK_CANCELLED")
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_handler_that_comes_back_while_the_whole_winds_down_runs_again(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="error", handler=True), on_failure="fail_fast")
    first, handler = begin(lab, plan)
    fail(lab, first)
    lab.end(lab.run_again(handler), Crashed())
    assert lab.status(handler) is S.PENDING
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_step_that_is_resubmitted_in_a_paused_whole_is_held_at_once(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    first, below = begin(lab, plan)
    fail(lab, first)
    while lab.run(dependents.hold(plan.id)):
        pass
    lab.run(operate.resubmit([first]))
    assert (lab.status(first), status(lab, plan)) == (S.WAITING, W.PAUSED)
    resume(lab, plan.id)
    complete(lab, first)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


# A pause gives way to a cancel and to a deadline.


@on_each_engine
@pytest.mark.parametrize("why", ["cancel", "deadline"])
def test_what_stops_a_paused_whole_ends_its_pause_and_runs_its_cleanups(lab: Lab, why: str) -> None:
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True), deadline_us=10 * SECOND)
    first, clean = begin(lab, plan)
    pause(lab, plan.id, by="ada")
    lab.clock.advance(11)
    if why == "cancel":
        lab.run(steering.cancel(plan.id))
    else:
        assert lab.run(steering.tended()).late == [plan.id], "it counts while it is paused"
        lab.run(steering.end_late(plan.id))
    record = whole(lab, plan)
    assert (record.status, record.stopping, record.paused_by) == (W.RUNNING, why, None)
    stop(lab, plan.id)
    assert lab.status(first) is S.CANCELLED
    complete(lab, clean)
    assert status(lab, plan) is (W.CANCELLED if why == "cancel" else W.FAILED)


# Sub-workflows, and steps that were added.


@on_each_engine
@pytest.mark.parametrize("verb", ["pause", "cancel", "deadline"])
def test_what_is_done_to_a_whole_goes_down_and_never_up(lab: Lab, verb: str) -> None:
    plan = plan_of(step(), step(task={"queue_name": "beside"}), deadline_us=10 * SECOND)
    adder, beside = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    (deep,) = hand_over(lab, inner, step(), workflow=SubWorkflow(name="deep"))

    def do(id: bytes) -> None:
        match verb:
            case "pause":
                pause(lab, id)
            case "cancel":
                lab.run(steering.cancel(id))
            case _:
                lab.sql(
                    "UPDATE holdfast_workflows SET deadline_at = created_at "
                    "WHERE workflow_id = :id",
                    id=id,
                )
                lab.clock.advance(1)
                lab.run(steering.end_late(id))
        stop_all(lab)

    do(inner)
    found = lab.run(workflows.read([plan.id, adder, inner]))
    if verb == "pause":
        assert [found[id].status for id in (plan.id, adder, inner)] == [
            W.RUNNING,
            W.RUNNING,
            W.PAUSED,
        ]
        do(plan.id)
        assert {one.status for one in lab.run(workflows.read([plan.id, adder])).values()} == {
            W.PAUSED
        }
        assert [lab.status(id) for id in (deep, beside)] == [S.WAITING, S.WAITING]
        return
    # It settles, and that is an end of a step like any other: nothing above is stopped.
    assert lab.status(deep) is S.CANCELLED
    assert (found[plan.id].stopping, lab.status(beside)) == (None, S.PENDING)


@on_each_engine
def test_a_pause_at_a_failure_goes_down_too_and_so_does_its_end(lab: Lab) -> None:
    other = step(task={"queue_name": "other"})
    plan = plan_of(step(), other, on_failure="pause")
    adder, _ = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    (deep,) = hand_over(lab, inner, step(), workflow=SubWorkflow(name="deep"))
    lab.end(lab.run_again(other.task.id, "other"), Failed(BOOM))
    ids = (plan.id, adder, inner)
    assert {one.status for one in lab.run(workflows.read(ids)).values()} == {W.PAUSED}
    for id in unheld(lab):
        lab.run(dependents.hold(id))
    assert lab.status(deep) is S.WAITING
    assert set(resume(lab, plan.id)) == {*ids}
    assert lab.status(deep) is S.PENDING
    complete(lab, deep)
    assert status(lab, plan) is W.FAILED


@on_each_engine
@pytest.mark.parametrize("verb", ["cancel", "deadline"])
def test_what_stops_a_whole_stops_the_parts_of_its_parts(lab: Lab, verb: str) -> None:
    plan = plan_of(step(), deadline_us=10 * SECOND)
    (adder,) = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    (deep,) = hand_over(lab, inner, step(), workflow=SubWorkflow(name="deep"))
    lab.clock.advance(11)
    lab.run(steering.cancel(plan.id) if verb == "cancel" else steering.end_late(plan.id))
    stop_all(lab)
    ends = "TASK_CANCELLED" if verb == "cancel" else "WORKFLOW_DEADLINE"
    assert (lab.status(deep), code(lab, deep)) == (S.CANCELLED, ends)
    stands = {one.status for one in lab.run(workflows.read([plan.id, adder, inner])).values()}
    assert stands == {W.CANCELLED if verb == "cancel" else W.FAILED}


@on_each_engine
@pytest.mark.parametrize("first", ["cancel", "deadline"])
def test_a_graver_stop_goes_down_into_parts_that_wind_down(lab: Lab, first: str) -> None:
    plan = plan_of(step(), deadline_us=10 * SECOND)
    (adder,) = begin(lab, plan)
    cleans = step(tail="ended", handler=True, cleanup=True)
    inner, clean = hand_over(lab, adder, step(), cleans, workflow=SubWorkflow(name="part"))
    lab.clock.advance(11)
    lab.run(steering.cancel(plan.id) if first == "cancel" else steering.end_late(plan.id))
    stop_all(lab)
    assert lab.statuses([inner, clean]) == [S.CANCELLED, S.PENDING]
    lab.run(steering.cancel(plan.id, cleanup=False))
    stop_all(lab)
    assert (lab.status(clean), code(lab, clean)) == (S.CANCELLED, "TASK_CANCELLED")
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
@pytest.mark.parametrize("kind", ["steps", "part"])
@pytest.mark.parametrize("cleanup", [True, False])
def test_what_a_cleanup_adds_cleans_up(lab: Lab, kind: str, cleanup: bool) -> None:
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True))
    first, clean = begin(lab, plan)
    lab.run(steering.cancel(plan.id))
    stop(lab, plan.id)
    assert lab.status(first) is S.CANCELLED
    workflow = SubWorkflow(name="part") if kind == "part" else None
    one, two = hand_over(lab, clean, step(), step(0), workflow=workflow)
    stop_all(lab)
    if not cleanup:
        lab.run(steering.cancel(plan.id, cleanup=False))
        stop_all(lab)
        assert [lab.status(id) for id in (one, two, clean)] == [S.CANCELLED] * 3
        return
    assert [lab.status(id) for id in (one, two)] == [S.PENDING, S.WAITING]
    complete(lab, one)
    complete(lab, two)
    assert (lab.status(clean), status(lab, plan)) == (S.COMPLETED, W.CANCELLED)


@on_each_engine
def test_what_a_handler_adds_survives_fail_fast(lab: Lab) -> None:
    plan = plan_of(step(), step(StepEdge(0, "failure"), handler=True), on_failure="fail_fast")
    first, handler = begin(lab, plan)
    fail(lab, first)
    (added,) = hand_over(lab, handler, step())
    stop(lab, plan.id)
    assert lab.status(added) is S.PENDING
    complete(lab, added)
    assert (lab.status(handler), status(lab, plan)) == (S.COMPLETED, W.FAILED)


@on_each_engine
@pytest.mark.parametrize(
    ("why", "ends"),
    [
        ("cancel", "TASK_CANCELLED"),
        ("deadline", "WORKFLOW_DEADLINE"),
        ("fail_fast", "TASK_CANCELLED"),
    ],
)
def test_who_hands_over_too_late_is_told_why(lab: Lab, why: str, ends: str) -> None:
    other = step(task={"queue_name": "other"})
    plan = plan_of(step(), other, on_failure="fail_fast", deadline_us=10 * SECOND)
    adder, _ = begin(lab, plan)
    case = lab.run_again(adder)
    match why:
        case "cancel":
            lab.run(steering.cancel(plan.id))
        case "deadline":
            lab.clock.advance(11)
            lab.run(steering.end_late(plan.id))
        case _:
            lab.end(lab.run_again(other.task.id, "other"), Failed(BOOM))
    assert hands(lab, case, step()).status is S.CANCELLED
    task = lab.task(adder)
    assert (task.error_code, task.result is not None) == (ends, True)
    said = {"cancel": "on request", "deadline": "deadline", "fail_fast": "first failure"}
    assert said[why] in (task.failed_reason or "")
    stop(lab, plan.id)
    assert len(lab.run(workflows.steps(plan.id))[0]) == 2


# Resubmit.


@on_each_engine
def test_a_resubmit_begins_the_deadline_anew(lab: Lab) -> None:
    plan = plan_of(step(), deadline_us=10 * SECOND)
    (only,) = begin(lab, plan)
    fail(lab, only)
    lab.clock.advance(60)
    resubmit(lab, plan.id)
    assert whole(lab, plan).deadline_at == lab.clock.now + 10 * SECOND
    assert lab.run(steering.tended()).late == []


@on_each_engine
def test_a_whole_that_a_resubmitted_step_opens_has_not_ended(lab: Lab) -> None:
    plan = plan_of(*(step() for _ in range(130)))
    ids = begin(lab, plan)
    tasks = lab.claim(wanted=130).tasks
    lab.start(*tasks)
    for task in tasks:
        lab.end(task, Failed(BOOM)) if task.id in ids[:2] else lab.complete(task)
    assert whole(lab, plan).finished_at is not None
    lab.run(operate.resubmit([ids[0]]))
    record = whole(lab, plan)
    assert (record.status, record.finished_at, record.error_id) == (W.RUNNING, None, ids[1])
    counted = lab.sql("SELECT sum(open), sum(bad) FROM holdfast_step_counts")
    opened = lab.sql("SELECT body_open FROM holdfast_scopes")
    assert (counted, opened) == ([(1, 1)], [(1,)])
    complete(lab, ids[0])
    assert status(lab, plan) is W.FAILED


# Which failure counts.


@on_each_engine
def test_of_failures_that_end_together_the_lowest_step_is_the_first(lab: Lab) -> None:
    plan = plan_of(*(step() for _ in range(5)), step(tail="error", handler=True))
    *ids, alert = begin(lab, plan)
    lab.run(cancel.cancel([ids[3], ids[1], ids[4]]))
    assert whole(lab, plan).error_id == ids[1]
    assert lab.status(alert) is S.PENDING


@on_each_engine
@pytest.mark.parametrize("policy", ["fail_fast", "pause"])
def test_a_skip_is_no_failure_that_a_policy_acts_on(lab: Lab, policy: str) -> None:
    plan = plan_of(
        step(required=False), step(0), step(task={"queue_name": "other"}), on_failure=policy
    )
    first, skipped, _ = begin(lab, plan)
    fail(lab, first)
    assert code(lab, skipped) == "UPSTREAM_FAILED"
    record = whole(lab, plan)
    assert (record.status, record.stopping) == (W.RUNNING, None)


@on_each_engine
def test_what_stops_a_whole_is_no_failure_that_it_pauses_at(lab: Lab) -> None:
    plan = plan_of(step(), step(), on_failure="pause")
    first, second = begin(lab, plan)
    case = lab.run_again(first)
    lab.run(steering.cancel(plan.id))
    stop(lab, plan.id)
    assert lab.status(second) is S.CANCELLED
    lab.end(case, CancelAcknowledged())
    assert status(lab, plan) is W.CANCELLED


# Losers of any_of.


@on_each_engine
def test_losers_run_on_and_the_whole_waits_for_them(lab: Lab) -> None:
    slow = step(task={"queue_name": "slow"}, required=False)
    plan = plan_of(slow, step(required=False), step(0, 1, needed=1))
    _, quick, first = begin(lab, plan)
    complete(lab, quick)
    complete(lab, first)
    assert (lab.status(slow.task.id), status(lab, plan)) == (S.PENDING, W.RUNNING)
    lab.end(lab.run_again(slow.task.id, "slow"), Failed(BOOM))
    assert status(lab, plan) is W.COMPLETED
