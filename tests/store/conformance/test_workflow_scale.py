"""Large workflows: no transaction grows with them, and a step costs no more than in a small one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import pytest

from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.plan import WorkflowPlan
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.op import Op
from holdfast.store.verbs import cancel, finish, operate, resubmits, steering, workflows
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import PID
from tests.support.workflows import (
    begin,
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

LONGEST = 0.1
"""Seconds that one transaction may last."""


def chain(number: int) -> WorkflowPlan:
    return plan_of(step(), *(step(place) for place in range(number - 1)))


@contextmanager
def measured(lab: Lab) -> Iterator[list[float]]:
    """How long each operation of the block took."""
    took: list[float] = []
    run = lab.store.run

    def timed(op: Op[object]) -> object:
        began = perf_counter()
        try:
            return run(op)
        finally:
            took.append(perf_counter() - began)

    lab.store.run = timed  # type: ignore[method-assign, assignment]
    try:
        yield took
    finally:
        lab.store.run = run  # type: ignore[method-assign]


def drain(lab: Lab) -> int:
    done = 0
    while tasks := lab.claim(100, worker="w").tasks:
        lab.start(*tasks)
        lab.run(
            finish.complete(
                [finish.Completion(t.key, t.token, "1", PID, in_workflow=True) for t in tasks]
            )
        )
        done += len(tasks)
    return done


@on_each_engine
def test_what_is_done_to_a_large_one_is_done_a_part_at_a_time(lab: Lab) -> None:
    plan = chain(1200)
    ids = begin(lab, plan)
    assert len(pause(lab, plan.id)) == 1
    assert {lab.status(id) for id in (ids[0], ids[-1])} == {S.WAITING}
    resume(lab, plan.id)
    fail(lab, ids[0])
    with measured(lab) as took:
        while lab.run(steering.resolve_later()):
            pass
    assert len(took) >= len(ids) // 16
    assert status(lab, plan) is W.FAILED
    with measured(lab) as took:
        resubmit(lab, plan.id)
    assert len(took) >= len(ids) // resubmits.PAGE
    assert [lab.status(id) for id in (ids[0], ids[1], ids[-1])] == [S.PENDING, S.WAITING, S.WAITING]
    lab.run(steering.cancel(plan.id))
    with measured(lab) as took:
        stop(lab, plan.id)
    assert len(took) >= 3
    assert status(lab, plan) is W.CANCELLED


def no_long_one(took: list[float]) -> bool:
    # One that another process of this machine came between is no long transaction.
    return sorted(took)[max(-3, -len(took))] < LONGEST


@pytest.mark.slow
@pytest.mark.alone
@on_each_engine
def test_a_chain_of_10000_that_fails_at_its_root_holds_no_long_transaction(lab: Lab) -> None:
    plan = chain(10_000)
    ids = begin(lab, plan)
    with measured(lab) as took:
        fail(lab, ids[0])
        while lab.run(steering.resolve_later()):
            pass
    assert status(lab, plan) is W.FAILED
    assert no_long_one(took)
    resubmit(lab, plan.id)
    assert drain(lab) == len(ids)
    assert status(lab, plan) is W.COMPLETED


@pytest.mark.slow
@pytest.mark.alone
@on_each_engine
def test_a_fan_of_10000_that_fails_at_its_root_holds_no_long_transaction(lab: Lab) -> None:
    plan = plan_of(step(), *(step(0) for _ in range(9_999)))
    ids = begin(lab, plan)
    with measured(lab) as took:
        fail(lab, ids[0])
        while lab.run(steering.resolve_later()):
            pass
    assert status(lab, plan) is W.FAILED
    assert no_long_one(took)


@pytest.mark.slow
@pytest.mark.alone
@on_each_engine
@pytest.mark.parametrize("shape", ["chain", "fan"])
def test_steering_10000_steps_holds_no_long_transaction(lab: Lab, shape: str) -> None:
    fan = plan_of(step(), *(step(0) for _ in range(9_998)), step(*range(1, 9_999)))
    plan = chain(10_000) if shape == "chain" else fan
    ids = begin(lab, plan)
    with measured(lab) as took:
        pause(lab, plan.id)
        resume(lab, plan.id)
    assert no_long_one(took), sorted(took)[-5:]
    with measured(lab) as took:
        lab.run(steering.cancel(plan.id))
        stop(lab, plan.id)
    assert status(lab, plan) is W.CANCELLED
    assert no_long_one(took), sorted(took)[-5:]
    with measured(lab) as took:
        resubmit(lab, plan.id)
    assert lab.status(ids[0]) is S.PENDING
    assert {lab.status(id) for id in ids[1:]} == {S.WAITING}
    assert no_long_one(took), sorted(took)[-5:]


@pytest.mark.slow
@pytest.mark.alone
@on_each_engine
def test_one_step_that_added_3000_holds_no_long_transaction(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, _ = begin(lab, plan)
    added = hand_over(lab, adder, *(step() for _ in range(3_000)))
    with measured(lab) as took:
        lab.run(cancel.cancel([adder]))
        while lab.run(cancel.cancel_added()):
            pass
    assert {lab.status(id) for id in (adder, *added)} == {S.CANCELLED}
    assert no_long_one(took), sorted(took)[-5:]
    lab.clock.advance(1)
    with measured(lab) as took:
        lab.run(operate.resubmit([adder]))
        while lab.run(resubmits.go_on(plan.id)):
            pass
    assert {lab.status(id) for id in added} == {S.PENDING}
    assert no_long_one(took), sorted(took)[-5:]


@pytest.mark.slow
@pytest.mark.alone
@on_each_engine
def test_a_step_of_a_large_workflow_costs_no_more_than_one_of_a_small(lab: Lab) -> None:
    def run(number: int) -> float:
        plan = plan_of(step(), *(step(0) for _ in range(number - 2)), step(*range(1, number - 1)))
        began = perf_counter()
        begin(lab, plan)
        assert drain(lab) == number
        assert status(lab, plan) is W.COMPLETED
        return (perf_counter() - began) / number

    run(100)
    small = min(run(100) for _ in range(10))
    assert run(10_000) < 1.5 * small
    found = lab.run(workflows.find(WorkflowFilter()))
    assert len(found.workflows) == 12
