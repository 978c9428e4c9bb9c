"""resubmit, of workflows and their steps: each child starts once, and nothing hangs on the way."""

from __future__ import annotations

import pytest

from holdfast.core.errors import UpstreamEnded
from holdfast.core.outcome import CancelAcknowledged, Failed
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import StepEdge, SubWorkflow
from holdfast.store.verbs import cancel, operate, resubmits, steering, workflows
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import (
    begin,
    code,
    complete,
    fail,
    hand_over,
    plan_of,
    resubmit,
    resume,
    status,
    step,
    stop,
    whole,
)

S, W = TaskStatus, WorkflowStatus


@on_each_engine
@pytest.mark.parametrize("whole_of_it", [True, False])
def test_in_the_middle_of_a_diamond_each_child_starts_once(lab: Lab, whole_of_it: bool) -> None:
    plan = plan_of(step(), *(step(0) for _ in range(4)), step(1, 2, 3, 4), step(5))
    first, *middle, join, last = begin(lab, plan)
    complete(lab, first)
    complete(lab, middle[0])
    fail(lab, middle[1])
    complete(lab, middle[2])
    assert (lab.status(join), lab.status(last)) == (S.CANCELLED, S.CANCELLED)
    if whole_of_it:
        assert resubmit(lab, plan.id) == [plan.id]
    else:
        lab.run(operate.resubmit([middle[1]]))
    assert [lab.status(id) for id in (join, last)] == [S.WAITING, S.WAITING]
    complete(lab, middle[1])
    complete(lab, middle[3])
    complete(lab, join)
    complete(lab, last)
    assert status(lab, plan) is W.COMPLETED
    attempts = [lab.task(id).attempt for id in (first, *middle, join, last)]
    assert attempts == [1, 1, 2, 1, 1, 1, 1]


@on_each_engine
@pytest.mark.parametrize("page", [1, 3, 200])
def test_a_whole_is_resubmitted_a_page_at_a_time(lab: Lab, page: int) -> None:
    plan = plan_of(step(), *(step(number) for number in range(9)), step(0, 4), step(*range(1, 10)))
    ids = begin(lab, plan)
    fail(lab, ids[0])
    while lab.run(steering.resolve_later()):
        pass
    assert {lab.status(id) for id in ids[1:]} == {S.CANCELLED}
    resubmit(lab, plan.id, page=page)
    assert [lab.status(id) for id in ids] == [S.PENDING, *[S.WAITING] * (len(ids) - 1)]
    for id in ids:
        complete(lab, id)
    assert (status(lab, plan), whole(lab, plan).error_id) == (W.COMPLETED, None)


@on_each_engine
def test_nothing_finishes_before_all_of_it_has_been_looked_at(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1))
    a, b, c = begin(lab, plan)
    fail(lab, a)
    assert status(lab, plan) is W.FAILED
    lab.run(resubmits.begin(plan.id))
    assert lab.run(resubmits.go_on(plan.id, page=1)) == 1
    # It ends while its children still stand skipped: the whole does not end with it.
    complete(lab, a)
    assert [lab.status(id) for id in (a, b, c)] == [S.COMPLETED, S.CANCELLED, S.CANCELLED]
    assert status(lab, plan) is W.RUNNING
    assert lab.run(steering.tended()).resubmitting == [plan.id]
    while lab.run(resubmits.go_on(plan.id, page=1)):
        pass
    assert [lab.status(id) for id in (b, c)] == [S.PENDING, S.WAITING]
    assert lab.run(steering.tended()).resubmitting == []
    complete(lab, b)
    complete(lab, c)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_one_that_fails_again_at_once_is_not_run_again_and_again(lab: Lab) -> None:
    plan = plan_of(step(), step())
    a, b = begin(lab, plan)
    fail(lab, a)
    fail(lab, b)
    lab.clock.advance(1)
    lab.run(resubmits.begin(plan.id))
    lab.run(resubmits.go_on(plan.id, page=1))
    lab.clock.advance(1)
    fail(lab, a)
    while lab.run(resubmits.go_on(plan.id, page=1)):
        pass
    assert (lab.status(a), lab.task(a).attempt, lab.status(b)) == (S.FAILED, 2, S.PENDING)
    complete(lab, b)
    assert (status(lab, plan), whole(lab, plan).error_id) == (W.FAILED, a)


@on_each_engine
def test_a_step_below_many_pages_goes_on_in_the_background(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resubmits, "PAGE", 2)
    plan = plan_of(step(), *(step(number) for number in range(12)))
    ids = begin(lab, plan)
    fail(lab, ids[0])
    while lab.run(steering.resolve_later()):
        pass
    lab.run(operate.resubmit([ids[0]]))
    assert {lab.status(id) for id in ids[1:]} == {S.WAITING, S.CANCELLED}
    assert lab.run(steering.tended()).resubmitting == [plan.id]
    while lab.run(resubmits.go_on(plan.id)):
        pass
    for id in ids:
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_another_step_that_failed_stays_as_it_is(lab: Lab) -> None:
    plan = plan_of(step(), step(), step(0), step(1), step(0, 1))
    a, b, below_a, below_b, both = begin(lab, plan)
    fail(lab, a)
    fail(lab, b)
    lab.run(operate.resubmit([a]))
    assert lab.status(below_a) is S.WAITING
    assert [lab.status(id) for id in (b, below_b, both)] == [S.FAILED, S.CANCELLED, S.CANCELLED]
    assert whole(lab, plan).error_id == b
    complete(lab, a)
    complete(lab, below_a)
    assert status(lab, plan) is W.FAILED
    resubmit(lab, plan.id)
    assert [lab.status(id) for id in (below_b, both)] == [S.WAITING, S.WAITING]
    for id in (b, below_b, both):
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_handlers_that_completed_stay_and_the_end_is_waited_for_again(lab: Lab) -> None:
    plan = plan_of(
        step(tail="ended", handler=True, cleanup=True),
        step(tail="error", handler=True),
        step(),
        step(StepEdge(2, "failure"), handler=True),
    )
    clean, alert, work, undo = begin(lab, plan)
    fail(lab, work)
    complete(lab, alert)
    complete(lab, undo)
    fail(lab, clean)
    assert status(lab, plan) is W.FAILED
    resubmit(lab, plan.id)
    assert [lab.status(id) for id in (clean, alert, work, undo)] == [
        S.WAITING,
        S.COMPLETED,
        S.PENDING,
        S.COMPLETED,
    ]
    complete(lab, work)
    complete(lab, clean)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_cleanup_that_was_cancelled_runs_at_last(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True))
    work, clean = begin(lab, plan)
    complete(lab, work)
    lab.run(steering.cancel(plan.id, cleanup=False))
    stop(lab, plan.id)
    assert (lab.status(clean), status(lab, plan)) == (S.CANCELLED, W.CANCELLED)
    resubmit(lab, plan.id)
    complete(lab, clean)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_failure_handler_that_failed_waits_for_a_failure_again(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="error", handler=True))
    work, alert = begin(lab, plan)
    fail(lab, work)
    fail(lab, alert)
    resubmit(lab, plan.id)
    assert lab.status(alert) is S.WAITING
    complete(lab, work)
    assert (lab.status(alert), code(lab, alert)) == (S.CANCELLED, "UPSTREAM_SUCCEEDED")
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_what_was_cancelled_as_a_whole_runs_again_as_a_whole(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1), step(0, 2))
    ids = begin(lab, plan)
    case = lab.run_again(ids[0])
    lab.run(steering.cancel(plan.id))
    stop(lab, plan.id)
    lab.end(case, CancelAcknowledged())
    assert status(lab, plan) is W.CANCELLED
    resubmit(lab, plan.id)
    assert [lab.status(id) for id in ids] == [S.PENDING, S.WAITING, S.WAITING, S.WAITING]
    for id in ids:
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_parts_run_again_with_the_whole(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    one, two = hand_over(lab, adder, step(), step(0), workflow=SubWorkflow(name="part"))
    fail(lab, one)
    assert [lab.status(id) for id in (adder, two, below)] == [S.FAILED, S.CANCELLED, S.CANCELLED]
    assert set(resubmit(lab, plan.id)) == {plan.id, adder}
    assert [lab.status(id) for id in (adder, one, two, below)] == [
        S.WAITING,
        S.PENDING,
        S.WAITING,
        S.WAITING,
    ]
    for id in (one, two, below):
        complete(lab, id)
    assert (status(lab, plan), lab.task(adder).attempt) == (W.COMPLETED, 1)


@on_each_engine
@pytest.mark.parametrize("what", ["part", "step"])
def test_the_whole_runs_again_with_a_part(lab: Lab, what: str) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    fail(lab, inner)
    assert status(lab, plan) is W.FAILED
    if what == "part":
        resubmit(lab, adder)
    else:
        lab.run(operate.resubmit([inner]))
    while again := lab.run(steering.tended()).resubmitting:
        for id in again:
            lab.run(resubmits.go_on(id))
    assert status(lab, plan) is W.RUNNING
    assert [lab.status(id) for id in (adder, below)] == [S.WAITING, S.WAITING]
    complete(lab, inner)
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_whole_that_paused_at_a_failure_goes_on(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(), on_failure="pause")
    first, below, other = begin(lab, plan)
    fail(lab, first)
    assert status(lab, plan) is W.PAUSED
    resubmit(lab, plan.id)
    assert [lab.status(id) for id in (first, below, other)] == [S.PENDING, S.WAITING, S.PENDING]
    for id in (first, below, other):
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_step_that_can_never_run_is_refused_with_its_parent(lab: Lab) -> None:
    plan = plan_of(step(), step(StepEdge(0, "failure"), handler=True), step(0))
    first, handler, after = begin(lab, plan)
    complete(lab, first)
    with pytest.raises(UpstreamEnded, match="which has completed: it is not needed"):
        lab.run(operate.resubmit([handler]))
    lab.run(cancel.cancel([after]))
    assert lab.run(operate.resubmit([after])) == {after: True}
    complete(lab, after)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_part_that_failed_pauses_a_whole_that_pauses_at_failures(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    adder, below = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    fail(lab, inner)
    assert (status(lab, plan), lab.status(below)) == (W.PAUSED, S.WAITING)
    assert lab.run(workflows.read([adder]))[adder].status is W.FAILED
    resume(lab, plan.id)
    assert (status(lab, plan), lab.status(below)) == (W.FAILED, S.CANCELLED)


# What has completed, or winds down, lets nothing below it run again.


@on_each_engine
def test_a_later_failure_stops_one_that_stops_at_failures(lab: Lab) -> None:
    plan = plan_of(*(step(task={"queue_name": name}) for name in "abc"), on_failure="fail_fast")
    ids = begin(lab, plan)
    for run in [lab.run_again(id, name) for id, name in zip(ids, "abc", strict=True)]:
        lab.end(run, Failed(BOOM))
    assert status(lab, plan) is W.FAILED
    # The first one stays as it is, and is still the first.
    lab.run(operate.resubmit(ids[1:]))
    lab.end(lab.run_again(ids[1], "b"), Failed(BOOM))
    assert (whole(lab, plan).stopping, whole(lab, plan).error_id) == ("fail_fast", ids[0])
    stop(lab, plan.id)
    assert (code(lab, ids[2]), status(lab, plan)) == ("TASK_CANCELLED", W.FAILED)


@on_each_engine
@pytest.mark.parametrize("whole_of_it", [True, False])
def test_a_step_that_its_adder_has_completed_without(lab: Lab, whole_of_it: bool) -> None:
    plan = plan_of(step(), step(task={"queue_name": "other"}))
    adder, other = begin(lab, plan)
    optional, needed = hand_over(
        lab, adder, step(required=False), step(task={"queue_name": "needed"})
    )
    fail(lab, optional)
    lab.complete(lab.run_again(needed, "needed"))
    assert lab.status(adder) is S.COMPLETED
    lab.end(lab.run_again(other, "other"), Failed(BOOM))
    assert status(lab, plan) is W.FAILED
    if not whole_of_it:
        assert lab.run(operate.resubmit([optional])) == {optional: False}
        assert status(lab, plan) is W.FAILED
        return
    resubmit(lab, plan.id)
    assert [lab.status(id) for id in (optional, other)] == [S.FAILED, S.PENDING]
    lab.complete(lab.run_again(other, "other"))
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
@pytest.mark.parametrize("how", ["completed", "winds down"])
@pytest.mark.parametrize("what", ["part", "step"])
def test_a_part_of_one_that_lets_nothing_run_again(lab: Lab, how: str, what: str) -> None:
    cleans = step(tail="ended", handler=True, cleanup=True, task={"queue_name": "cleans"})
    other = step(task={"queue_name": "other"})
    plan = plan_of(step(required=False), *([other, cleans] if how == "winds down" else []))
    adder, *_ = begin(lab, plan)
    (inner,) = hand_over(lab, adder, step(), workflow=SubWorkflow(name="part"))
    fail(lab, inner)
    if how == "winds down":
        lab.run(steering.cancel(plan.id))
        stop(lab, plan.id)
    assert status(lab, plan) is (W.RUNNING if how == "winds down" else W.COMPLETED)
    if what == "part":
        assert resubmit(lab, adder) == []
    else:
        assert lab.run(operate.resubmit([inner])) == {inner: False}
    assert [lab.status(id) for id in (inner, adder)] == [S.FAILED, S.FAILED]
    assert lab.run(workflows.read([adder]))[adder].status is W.FAILED
