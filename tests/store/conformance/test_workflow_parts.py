"""Steps with many below them, or that added many: done a part at a time, and to the end."""

from __future__ import annotations

import inspect
import sys

import pytest

from holdfast.core.outcome import Failed
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import StepEdge, SubWorkflow
from holdfast.store.verbs import (
    cancel,
    dependents,
    operate,
    resubmits,
    steering,
    step_results,
)
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM
from tests.support.workflows import begin, code, complete, fail, hand_over, plan_of, status, step

S, W = TaskStatus, WorkflowStatus
MANY = 25


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done at once is little here."""
    monkeypatch.setattr(resubmits, "PAGE", 4)
    monkeypatch.setattr(cancel, "ADDED_BATCH", 4)
    monkeypatch.setattr(dependents, "_MOST_SKIPS", 4)


def fail_all(lab: Lab, ids: list[bytes]) -> None:
    tasks = [task for task in lab.claim().tasks if task.id in ids]
    assert len(tasks) == len(ids)
    lab.start(*tasks)
    for task in tasks:
        lab.end(task, Failed(BOOM))


def tend(lab: Lab) -> None:
    """What the duty does for whole workflows."""
    for _ in range(5):
        for id in lab.run(steering.tended()).resubmitting:
            while lab.run(resubmits.go_on(id, page=4)):
                pass
        while lab.run(steering.resolve_later()):
            pass
        while lab.run(cancel.cancel_added()):
            pass


# Skipped.


@on_each_engine
def test_a_wide_fan_is_skipped_a_part_at_a_time(lab: Lab) -> None:
    plan = plan_of(
        step(),
        *(step(0) for _ in range(MANY)),
        step(StepEdge(0, "failure"), handler=True),
        step(*range(1, MANY + 1)),
    )
    first, *fan, handler, join = begin(lab, plan)
    fail(lab, first)
    skipped = [id for id in fan if lab.status(id) is S.CANCELLED]
    assert 1 <= len(skipped) <= 4
    assert status(lab, plan) is W.RUNNING
    tend(lab)
    assert {code(lab, id) for id in (*fan, join)} == {"UPSTREAM_FAILED"}
    complete(lab, handler)
    assert status(lab, plan) is W.FAILED
    counted = lab.sql("SELECT sum(open), sum(bad) FROM holdfast_step_counts")
    assert counted == [(0, MANY + 2)]


@on_each_engine
def test_what_completed_releases_all_at_once(lab: Lab) -> None:
    plan = plan_of(step(), *(step(0) for _ in range(MANY)))
    first, *fan = begin(lab, plan)
    complete(lab, first)
    assert {lab.status(id) for id in fan} == {S.PENDING}


@on_each_engine
def test_one_that_runs_again_before_all_were_skipped(lab: Lab) -> None:
    plan = plan_of(step(), *(step(0) for _ in range(MANY)))
    first, *fan = begin(lab, plan)
    fail(lab, first)
    lab.run(operate.resubmit([first]))
    tend(lab)
    assert {lab.status(id) for id in fan} == {S.WAITING}
    complete(lab, first)
    assert {lab.status(id) for id in fan} == {S.PENDING}
    assert {lab.task(id).deps_needed for id in fan} == {0}


# Resubmitted.


@on_each_engine
@pytest.mark.parametrize("part", [False, True])
def test_one_that_added_many_runs_them_again_a_part_at_a_time(lab: Lab, part: bool) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    workflow = SubWorkflow(name="part") if part else None
    steps = [*(step() for _ in range(MANY)), step(*range(MANY))]
    *added, join = hand_over(lab, adder, *steps, workflow=workflow)
    fail_all(lab, added)
    assert (lab.status(adder), status(lab, plan)) == (S.FAILED, W.FAILED)
    lab.clock.advance(1)
    lab.run(operate.resubmit([adder], keep_retries=True))
    assert lab.status(adder) is S.WAITING
    again = [id for id in added if lab.status(id) is S.PENDING]
    assert len(again) <= 4
    lab.clock.advance(1)
    tend(lab)
    assert {lab.status(id) for id in added} == {S.PENDING}
    assert [lab.status(id) for id in (adder, join, below)] == [S.WAITING] * 3
    tasks = lab.claim().tasks
    lab.start(*tasks)
    for task in tasks:
        lab.complete(task)
    for id in (join, below):
        complete(lab, id)
    assert (lab.task(adder).attempt, status(lab, plan)) == (1, W.COMPLETED)
    assert lab.sql("SELECT count(*) FROM holdfast_tasks WHERE parked IS NOT NULL") == [(0,)]


@on_each_engine
def test_those_that_one_added_and_that_added_some_themselves(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    middle = hand_over(lab, adder, *(step() for _ in range(6)))
    inner: list[bytes] = []
    for id in middle:
        inner += hand_over(lab, id, *(step(task={"queue_name": "deep"}) for _ in range(5)))
    tasks = lab.claim(queue="deep").tasks
    lab.start(*tasks)
    for task in tasks:
        lab.end(task, Failed(BOOM))
    assert status(lab, plan) is W.FAILED
    lab.clock.advance(1)
    lab.run(operate.resubmit([adder]))
    lab.clock.advance(1)
    tend(lab)
    assert {lab.status(id) for id in inner} == {S.PENDING}
    assert {lab.status(id) for id in (adder, *middle, below)} == {S.WAITING}
    assert {lab.task(id).attempt for id in middle} == {1}


@on_each_engine
def test_one_that_fails_again_meanwhile_stays_as_it_is(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    added = hand_over(lab, adder, *(step() for _ in range(MANY)))
    fail_all(lab, added)
    lab.clock.advance(1)
    lab.run(operate.resubmit([adder]))
    assert lab.run(resubmits.go_on(plan.id, page=4)) == 5
    lab.clock.advance(1)
    (task, *_) = lab.claim().tasks
    lab.start(task)
    lab.end(task, Failed(BOOM))
    tend(lab)
    assert lab.status(task.id) is S.FAILED
    assert lab.task(task.id).attempt == 2


@on_each_engine
def test_a_stop_ends_a_resubmit_that_is_under_way(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    added = hand_over(lab, adder, *(step() for _ in range(MANY)))
    fail_all(lab, added)
    lab.clock.advance(1)
    lab.run(operate.resubmit([adder]))
    lab.run(steering.cancel(plan.id))
    while lab.run(steering.stop_some(plan.id)):
        pass
    tend(lab)
    assert status(lab, plan) is W.CANCELLED
    assert lab.sql("SELECT count(*) FROM holdfast_tasks WHERE parked IS NOT NULL") == [(0,)]


# Cancelled.


@on_each_engine
def test_one_that_added_many_is_cancelled_a_part_at_a_time(lab: Lab) -> None:
    plan = plan_of(step(), step(0), deadline_us=60 * SECOND)
    adder, below = begin(lab, plan)
    added = hand_over(lab, adder, *(step() for _ in range(MANY)))
    lab.run(cancel.cancel([adder]))
    assert [lab.status(id) for id in added].count(S.CANCELLED) == 4
    assert lab.status(adder) is S.WAITING
    tend(lab)
    assert {lab.status(id) for id in (adder, *added)} == {S.CANCELLED}
    assert (code(lab, below), status(lab, plan)) == ("UPSTREAM_CANCELLED", W.FAILED)
    assert lab.sql("SELECT count(*) FROM holdfast_tasks WHERE parked IS NOT NULL") == [(0,)]


@on_each_engine
def test_those_that_run_are_asked_once(lab: Lab) -> None:
    plan = plan_of(step())
    (adder,) = begin(lab, plan)
    added = hand_over(lab, adder, *(step() for _ in range(MANY)))
    tasks = lab.claim().tasks
    lab.start(*tasks)
    lab.run(cancel.cancel([adder]))
    tend(lab)
    assert all(lab.task(id).cancel_requested_at is not None for id in added)
    for task in tasks:
        lab.complete(task)
    assert status(lab, plan) is W.COMPLETED


# One that added one that added one.


def dig(lab: Lab, id: bytes, depth: int) -> list[bytes]:
    """Let each step hand over to one, whose value is its own; the steps, from the top down."""
    found = [id]
    for _ in range(depth):
        found += hand_over(lab, found[-1], step(), returns='[null,[[[],["result",[0],[]]]]]')
    return found


@on_each_engine
def test_a_value_that_was_left_from_deep_down(lab: Lab) -> None:
    plan = plan_of(step(), returns='[null,[[[],["result",[0],[]]]]]')
    (top,) = begin(lab, plan)
    *_, deepest = dig(lab, top, 60)
    lab.complete(lab.run_again(deepest), '"gold"')
    while lab.run(steering.resolve_later()):
        pass
    assert status(lab, plan) is W.COMPLETED
    used = len(inspect.stack())
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(used + 60)
        assert lab.run(step_results.result(plan.id)) == '"gold"'
    finally:
        sys.setrecursionlimit(limit)


@on_each_engine
def test_a_cancel_follows_them_down(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    top, below = begin(lab, plan)
    added = dig(lab, top, 40)
    lab.run(cancel.cancel([top]))
    assert lab.status(added[-1]) is S.PENDING, "not in one transaction"
    tend(lab)
    assert {lab.status(id) for id in added} == {S.CANCELLED}
    assert (code(lab, below), status(lab, plan)) == ("UPSTREAM_CANCELLED", W.FAILED)
    assert lab.sql("SELECT count(*) FROM holdfast_tasks WHERE parked IS NOT NULL") == [(0,)]
