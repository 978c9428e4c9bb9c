"""Workflows: started once, counted down by every end of a step, finished exactly once."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import CancelAcknowledged, Crashed, StalledBySilence
from holdfast.core.records import SubmitAnswer
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import StepEdge
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.verbs import cancel, operate, steering, timing, workflows
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import ENDED
from tests.support.workflows import (
    begin,
    code,
    complete,
    fail,
    plan_of,
    status,
    step,
    whole,
)

S, W = TaskStatus, WorkflowStatus


@on_each_engine
def test_a_chain_runs_in_its_order_and_completes(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1))
    first, second, third = begin(lab, plan)
    assert [lab.status(id) for id in (first, second, third)] == [S.PENDING, S.WAITING, S.WAITING]
    for id in (first, second, third):
        assert status(lab, plan) is W.RUNNING
        complete(lab, id)
    record = whole(lab, plan)
    assert (record.status, record.finished_at, record.steps) == (W.COMPLETED, lab.clock.now, 3)
    assert record.error_id is None


@on_each_engine
def test_the_same_start_again_is_the_same_workflow(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    begin(lab, plan)
    assert lab.run(workflows.start(plan)).answer is SubmitAnswer.EXISTING
    other = plan_of(step(), id=plan.id, digest="d2")
    assert lab.run(workflows.start(other)).answer is SubmitAnswer.MISMATCH
    assert len(lab.run(workflows.steps(plan.id))) == 2


@on_each_engine
def test_a_unique_key_is_held_until_the_whole_has_ended(lab: Lab) -> None:
    plan = plan_of(step(), unique_key="k")
    (only,) = begin(lab, plan)
    again = plan_of(step(), unique_key="k")
    assert lab.run(workflows.start(again)) == (plan.id, SubmitAnswer.EXISTING)
    loud = plan_of(step(), unique_key="k", on_conflict="raise")
    assert lab.run(workflows.start(loud)) == (plan.id, SubmitAnswer.CONFLICT)
    complete(lab, only)
    begin(lab, again)


@on_each_engine
@pytest.mark.parametrize("ending", ENDED)
def test_every_end_of_a_step_is_counted(lab: Lab, ending: TaskStatus) -> None:
    until = lab.clock.now + SECOND if ending is S.EXPIRED else None
    plan = plan_of(step(task={"good_until": until}), step(0))
    first, second = begin(lab, plan)
    _bring(lab, first, ending)
    if ending is S.COMPLETED:
        assert status(lab, plan) is W.RUNNING
        complete(lab, second)
        assert status(lab, plan) is W.COMPLETED
    else:
        assert lab.status(second) is S.CANCELLED
        record = whole(lab, plan)
        assert (record.status, record.error_id) == (W.FAILED, first)


def _bring(lab: Lab, id: bytes, ending: TaskStatus) -> None:
    if ending is S.COMPLETED:
        complete(lab, id)
    elif ending is S.FAILED:
        fail(lab, id)
    elif ending is S.CANCELLED:
        lab.run(cancel.cancel([id]))
    elif ending is S.EXPIRED:
        lab.clock.advance(2)
        lab.run(timing.expire())
    elif ending is S.STALLED:
        lab.end(lab.run_again(id), StalledBySilence(1.0))
    else:
        lab.run(timing.drop("q", known=[], before=lab.clock.now + 1))
    assert lab.status(id) is ending


@on_each_engine
def test_another_run_of_a_step_is_not_its_end(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    lab.end(lab.run_again(only), Crashed())
    assert status(lab, plan) is W.RUNNING
    complete(lab, only)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_joins_count_what_they_need(lab: Lab) -> None:
    plan = plan_of(
        step(required=False), step(required=False), step(required=False),
        step(0, 1, 2, needed=1), step(0, 1, 2, needed=2),
    )  # fmt: skip
    a, b, c, any_of, at_least = begin(lab, plan)
    fail(lab, a)
    complete(lab, b)
    assert (lab.status(any_of), lab.status(at_least)) == (S.PENDING, S.WAITING)
    complete(lab, c)
    assert lab.status(at_least) is S.PENDING
    complete(lab, any_of)
    complete(lab, at_least)
    assert status(lab, plan) is W.COMPLETED
    met = lab.run(workflows.values(plan.id, [0, 1, 2], child_id=at_least))
    assert [(v.number, v.status, v.satisfied) for v in met] == [
        (0, S.FAILED, False),
        (1, S.COMPLETED, True),
        (2, S.COMPLETED, True),
    ]


@on_each_engine
def test_the_tail_runs_at_the_first_failure_and_when_the_body_has_ended(lab: Lab) -> None:
    plan = plan_of(
        step(), step(),
        step(tail="error", handler=True),
        step(tail="ended", handler=True, cleanup=True),
        step(3, tail="below", handler=True, cleanup=True),
    )  # fmt: skip
    b, a, alert, clean, after = begin(lab, plan)
    fail(lab, b)
    assert (lab.status(alert), lab.status(clean)) == (S.PENDING, S.WAITING)
    found = lab.run(workflows.scope(plan.id))
    assert found is not None
    assert found.error is not None
    assert (found.error.id, found.error.status) == (b, S.FAILED)
    complete(lab, a)
    assert lab.status(clean) is S.PENDING
    complete(lab, alert)
    complete(lab, clean)
    assert status(lab, plan) is W.RUNNING
    complete(lab, after)
    assert (status(lab, plan), whole(lab, plan).error_id) == (W.FAILED, b)


@on_each_engine
def test_a_tail_for_failures_is_skipped_when_there_was_none(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="error", handler=True))
    body, alert = begin(lab, plan)
    complete(lab, body)
    assert (lab.status(alert), code(lab, alert)) == (S.CANCELLED, "UPSTREAM_SUCCEEDED")
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_step_that_is_not_required_does_not_fail_the_whole(lab: Lab) -> None:
    plan = plan_of(step(required=False), step(StepEdge(0, "failure"), handler=True))
    first, rescue = begin(lab, plan)
    fail(lab, first)
    complete(lab, rescue)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_fail_fast_cancels_all_but_handlers(lab: Lab) -> None:
    plan = plan_of(
        step(), step(), step(), step(2), step(StepEdge(1, "failure"), handler=True, required=False),
        on_failure="fail_fast",
    )  # fmt: skip
    running, a, b, c, handler = begin(lab, plan)
    case = lab.run_again(running)
    fail(lab, a)
    assert whole(lab, plan).stopping == "fail_fast"
    tended = lab.run(steering.tended())
    assert (tended.late, tended.stopping) == ([], [plan.id])
    assert lab.run(steering.stop_some(plan.id)) == 2
    assert [lab.status(id) for id in (b, c, handler)] == [S.CANCELLED, S.CANCELLED, S.PENDING]
    assert lab.status(running) is S.RUNNING
    lab.complete(case)
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED
    needs = lab.run(steering.tended())
    assert not any(needs)


@on_each_engine
def test_cancel_ends_what_has_not_begun_and_asks_what_runs(lab: Lab) -> None:
    plan = plan_of(step(), step(), step(0, 1), step(tail="ended", handler=True, cleanup=True))
    a, b, joined, clean = begin(lab, plan)
    case = lab.run_again(a)
    assert lab.run(steering.cancel(plan.id, by="ada"))
    assert not lab.run(steering.cancel(plan.id))
    lab.run(steering.stop_some(plan.id))
    assert [lab.status(id) for id in (b, joined)] == [S.CANCELLED, S.CANCELLED]
    assert lab.task(a).cancel_requested_at is not None
    assert lab.run(steering.stop_some(plan.id)) == 0
    lab.end(case, CancelAcknowledged())
    complete(lab, clean)
    record = whole(lab, plan)
    assert (record.status, record.stopped_by) == (W.CANCELLED, "ada")


@on_each_engine
def test_cancel_without_cleanup_ends_cleanups_too(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True))
    begin(lab, plan)
    lab.run(steering.cancel(plan.id, cleanup=False))
    lab.run(steering.stop_some(plan.id))
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
def test_work_that_was_done_is_not_denied_by_a_cancel(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    case = lab.run_again(only)
    lab.run(steering.cancel(plan.id))
    lab.run(steering.stop_some(plan.id))
    lab.complete(case)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_deadline_ends_the_whole_and_says_so(lab: Lab) -> None:
    plan = plan_of(step(), step(), deadline_us=10 * SECOND)
    a, b = begin(lab, plan)
    case = lab.run_again(a)
    needs = lab.run(steering.tended())
    assert not any(needs)
    lab.clock.advance(11)
    assert lab.run(steering.tended()).late == [plan.id]
    assert lab.run(steering.end_late(plan.id))
    lab.run(steering.stop_some(plan.id))
    assert code(lab, b) == "WORKFLOW_DEADLINE"
    lab.end(case, CancelAcknowledged())
    assert code(lab, a) == "WORKFLOW_DEADLINE"
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_deadline_counts_from_run_at(lab: Lab) -> None:
    later = lab.clock.now + 3600 * SECOND
    plan = plan_of(step(), step(0), run_at=later, deadline_us=SECOND)
    first, _ = begin(lab, plan)
    assert (lab.status(first), lab.task(first).due_at) == (S.SCHEDULED, later)
    assert whole(lab, plan).deadline_at == later + SECOND


@on_each_engine
def test_resubmit_of_a_failed_step_starts_each_child_once(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(0), step(1, 2))
    top, left, right, join = begin(lab, plan)
    complete(lab, top)
    fail(lab, left)
    complete(lab, right)
    assert (lab.status(join), status(lab, plan)) == (S.CANCELLED, W.FAILED)
    assert lab.run(operate.resubmit([left])) == {left: True}
    assert (lab.status(join), status(lab, plan)) == (S.WAITING, W.RUNNING)
    complete(lab, left)
    complete(lab, join)
    assert status(lab, plan) is W.COMPLETED
    assert lab.task(join).attempt == 1


@on_each_engine
def test_many_steps_are_counted_in_rows(lab: Lab) -> None:
    plan = plan_of(*(step() for _ in range(200)), step(*range(200)))
    *body, join = begin(lab, plan)
    tasks = [*lab.claim(wanted=200).tasks]
    lab.start(*tasks)
    for task in tasks:
        lab.complete(task)
    assert len(tasks) == 200
    complete(lab, join)
    assert status(lab, plan) is W.COMPLETED
    assert len(body) == 200


@on_each_engine
def test_what_is_found_and_listed(lab: Lab) -> None:
    one = plan_of(step(name="a", inputs='[["x"]]', hidden="map"), tags='["t"]', returns="r")
    two = plan_of(step(), name="other")
    begin(lab, one)
    begin(lab, two)
    found = lab.run(workflows.find(WorkflowFilter(name="nightly", tag="t")))
    assert [(w.id, w.returns, w.tags) for w in found.workflows] == [(one.id, "r", '["t"]')]
    running = WorkflowFilter(status=frozenset({W.RUNNING}))
    assert {w.id for w in lab.run(workflows.find(running)).workflows} == {one.id, two.id}
    ((shown,), _) = lab.run(workflows.steps(one.id))
    assert (shown.name, shown.hidden, shown.number, shown.scope_id) == ("a", "map", 0, one.id)
    claimed = next(task for task in lab.claim().tasks if task.id == shown.id)
    assert (claimed.scope_id, claimed.inputs) == (one.id, '[["x"]]')
