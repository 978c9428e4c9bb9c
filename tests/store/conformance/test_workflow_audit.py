"""Counts of workflows that somebody damaged by hand: the audit counts anew, and nothing hangs."""

from __future__ import annotations

import pytest

from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.store.op import at_once
from holdfast.store.verbs import step_audit
from tests.support.stores import Lab, on_each_engine
from tests.support.workflows import (
    begin,
    complete,
    fail,
    hand_over,
    pause,
    plan_of,
    resume,
    status,
    step,
)

S, W = TaskStatus, WorkflowStatus

DAMAGE = [
    "holdfast_step_counts SET open = open + 1",
    "holdfast_step_counts SET open = 0",
    "holdfast_step_counts SET open = -7, bad = -7",
    "holdfast_step_counts SET bad = 2147483647",
    "holdfast_scopes SET body_open = body_open + 1",
    "holdfast_scopes SET body_open = -5",
    "holdfast_scopes SET body_open = 0, tail_open = 0",
    "holdfast_scopes SET tail_open = 1000000",
]


def audit(lab: Lab, *, page: int = 500) -> int:
    """The whole walk; how many scopes were counted anew."""
    after: bytes | None = bytes(16)
    mended = 0
    while after is not None:
        found = lab.run(step_audit.look(after, page=page))
        mended += sum(lab.run(at_once(step_audit.recount(scope))) for scope in found.scopes)
        after = found.next
    return mended


@on_each_engine
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_live_workflow_with_damaged_counts_ends_as_it_should(lab: Lab, damage: str) -> None:
    plan = plan_of(
        *(step() for _ in range(3)), step(0), step(tail="error"), step(tail="ended", cleanup=True)
    )
    first, second, third, below, on_error, at_end = begin(lab, plan)
    complete(lab, first)
    assert audit(lab) == 0, "healthy"
    lab.sql(f"UPDATE {damage}")
    assert audit(lab) == 1
    assert audit(lab) == 0
    complete(lab, second)
    complete(lab, third)
    assert status(lab, plan) is W.RUNNING
    complete(lab, below)
    assert lab.status(on_error) is S.CANCELLED
    complete(lab, at_end)
    assert status(lab, plan) is W.COMPLETED
    assert audit(lab) == 0


@on_each_engine
@pytest.mark.parametrize("damage", DAMAGE[2:9:3])
def test_one_whose_steps_have_all_ended_ends_with_the_audit(lab: Lab, damage: str) -> None:
    plan = plan_of(step(), step(), step(tail="ended", cleanup=True))
    first, second, at_end = begin(lab, plan)
    fail(lab, first)
    lab.sql("UPDATE holdfast_step_counts SET open = open + 10")
    complete(lab, second)
    assert lab.status(at_end) is S.WAITING, "it hangs"
    lab.sql(f"UPDATE {damage}")
    assert audit(lab) == 1
    complete(lab, at_end)
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_a_step_that_handed_over_is_settled_by_the_audit(lab: Lab) -> None:
    plan = plan_of(step(), step(0))
    adder, below = begin(lab, plan)
    added = hand_over(lab, adder, step(), step())
    lab.sql("UPDATE holdfast_step_counts SET open = 40 WHERE scope_id = :id", id=adder)
    for id in added:
        complete(lab, id)
    assert lab.status(adder) is S.WAITING
    assert audit(lab, page=1) == 1
    assert lab.status(adder) is S.COMPLETED
    complete(lab, below)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_rows_that_were_deleted_are_made_up_for(lab: Lab) -> None:
    plan = plan_of(*(step() for _ in range(70)))
    ids = begin(lab, plan)
    lab.sql("DELETE FROM holdfast_step_counts WHERE part = 1")
    lab.sql("DELETE FROM holdfast_tasks WHERE id = :id", id=ids[0])
    assert audit(lab) == 1
    for id in ids[1:]:
        complete(lab, id)
    assert status(lab, plan) is W.COMPLETED


@on_each_engine
def test_what_a_pause_set_aside_is_open(lab: Lab) -> None:
    plan = plan_of(step(), step(0), on_failure="pause")
    first, _ = begin(lab, plan)
    fail(lab, first)
    assert status(lab, plan) is W.PAUSED
    assert audit(lab) == 0
    lab.sql("UPDATE holdfast_step_counts SET open = 0")
    assert audit(lab) == 1
    assert status(lab, plan) is W.PAUSED
    resume(lab, plan.id)
    assert status(lab, plan) is W.FAILED


@on_each_engine
def test_workflows_that_have_ended_are_left_alone(lab: Lab) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    complete(lab, only)
    lab.sql("UPDATE holdfast_step_counts SET open = 5")
    assert audit(lab) == 0
    held = plan_of(step())
    begin(lab, held)
    pause(lab, held.id)
    assert audit(lab, page=1) == 0


@on_each_engine
def test_the_walk_goes_on_behind_a_page_that_is_full(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_audit, "_MOST_ROWS", 2)
    plans = [plan_of(step()) for _ in range(5)]
    for plan in plans:
        begin(lab, plan)
    lab.sql("UPDATE holdfast_step_counts SET open = 2")
    assert audit(lab) == 5
    for plan in plans:
        complete(lab, plan.steps[0].task.id)
        assert status(lab, plan) is W.COMPLETED
