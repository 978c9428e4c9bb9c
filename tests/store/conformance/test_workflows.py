"""Workflows: started once, counted down by every end of a step, finished exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.identity import new_id
from holdfast.core.outcome import CancelAcknowledged, Crashed, Failed, HandedOver, StalledBySilence
from holdfast.core.records import SubmitAnswer
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.plan import AddedPlan, StepEdge, StepPlan, SubWorkflow, WorkflowPlan
from holdfast.core.workflows.records import WorkflowFilter, WorkflowRecord, WorkflowStatus
from holdfast.store.verbs import cancel, operate, timing, workflows
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM, ENDED, submission

S, W = TaskStatus, WorkflowStatus


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
    (tended,) = lab.run(workflows.tended())
    assert tended == (plan.id, False)
    assert lab.run(workflows.stop_some(plan.id)) == 2
    assert [lab.status(id) for id in (b, c, handler)] == [S.CANCELLED, S.CANCELLED, S.PENDING]
    assert lab.status(running) is S.RUNNING
    lab.complete(case)
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED
    assert lab.run(workflows.tended()) == []


@on_each_engine
def test_cancel_ends_what_has_not_begun_and_asks_what_runs(lab: Lab) -> None:
    plan = plan_of(step(), step(), step(0, 1), step(tail="ended", handler=True, cleanup=True))
    a, b, joined, clean = begin(lab, plan)
    case = lab.run_again(a)
    assert lab.run(workflows.cancel(plan.id, by="ada"))
    assert not lab.run(workflows.cancel(plan.id))
    lab.run(workflows.stop_some(plan.id))
    assert [lab.status(id) for id in (b, joined)] == [S.CANCELLED, S.CANCELLED]
    assert lab.task(a).cancel_requested_at is not None
    assert lab.run(workflows.stop_some(plan.id)) == 0
    lab.end(case, CancelAcknowledged())
    complete(lab, clean)
    record = whole(lab, plan)
    assert (record.status, record.stopped_by) == (W.CANCELLED, "ada")


@on_each_engine
def test_cancel_without_cleanup_ends_cleanups_too(lab: Lab) -> None:
    plan = plan_of(step(), step(tail="ended", handler=True, cleanup=True))
    begin(lab, plan)
    lab.run(workflows.cancel(plan.id, cleanup=False))
    lab.run(workflows.stop_some(plan.id))
    assert status(lab, plan) is W.CANCELLED


@on_each_engine
def test_work_that_was_done_is_not_denied_by_a_cancel(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    case = lab.run_again(only)
    lab.run(workflows.cancel(plan.id))
    lab.run(workflows.stop_some(plan.id))
    lab.complete(case)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_a_deadline_ends_the_whole_and_says_so(lab: Lab) -> None:
    plan = plan_of(step(), step(), deadline_us=10 * SECOND)
    a, b = begin(lab, plan)
    case = lab.run_again(a)
    assert lab.run(workflows.tended()) == []
    lab.clock.advance(11)
    assert lab.run(workflows.tended()) == [(plan.id, True)]
    assert lab.run(workflows.end_late(plan.id))
    lab.run(workflows.stop_some(plan.id))
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
    assert [(w.id, w.returns, w.tags) for w in found] == [(one.id, "r", '["t"]')]
    running = WorkflowFilter(status=frozenset({W.RUNNING}))
    assert {w.id for w in lab.run(workflows.find(running))} == {one.id, two.id}
    (shown,) = lab.run(workflows.steps(one.id))
    assert (shown.name, shown.hidden, shown.number, shown.scope_id) == ("a", "map", 0, one.id)
    claimed = next(task for task in lab.claim().tasks if task.id == shown.id)
    assert (claimed.scope_id, claimed.inputs) == (one.id, '[["x"]]')


# Steps that add steps.


def hand_over(lab: Lab, id: bytes, *steps: StepPlan, **fields: Any) -> list[bytes]:
    added = AddedPlan(steps=steps, **fields)
    landing = lab.end(lab.run_again(id), HandedOver(added.encode()))
    assert landing.status is S.WAITING
    return [step.task.id for step in steps]


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
    assert len(lab.run(workflows.steps(adder))) == 2
    fail(lab, inner)
    assert lab.run(workflows.read([adder]))[adder].stopping == "fail_fast"
    assert whole(lab, plan).stopping is None
    lab.run(workflows.stop_some(adder))
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
    lab.run(workflows.cancel(plan.id))
    for id in (plan.id, sub):
        lab.run(workflows.stop_some(id))
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
    lab.run(workflows.cancel(plan.id))
    landing = lab.end(case, HandedOver(AddedPlan(steps=(step(),)).encode()))
    assert landing.status is S.CANCELLED
    assert len(lab.run(workflows.steps(plan.id))) == 1
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
