"""Rows of workflows that somebody wrote by hand: they are named, and stop nothing else."""

from __future__ import annotations

import pytest

from holdfast.core.status import TaskStatus
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.verbs import dependents, operate, resubmits, steering, workflows
from tests.support.stores import Kind, Lab, Labs, on_each_engine
from tests.support.workflows import (
    begin,
    complete,
    fail,
    pause,
    plan_of,
    resume,
    status,
    step,
    unheld,
)

S = TaskStatus


def look(lab: Lab) -> int:
    """What lists, and what maintenance, ask all the time; how many rows could not be read."""
    found = lab.run(workflows.find(WorkflowFilter()))
    unreadable = len(found.unreadable)
    for whole in found.workflows:
        aside = list(found.unreadable)
        steps, _ = lab.run(workflows.steps(whole.id, unreadable=aside))
        unreadable += len(aside) - len(found.unreadable)
        lab.run(workflows.edges([each.id for each in steps]))
    needs = lab.run(steering.tended())
    for id in (*needs.late, *needs.stopping):
        lab.run(steering.stop_some(id))
    for id in needs.resubmitting:
        lab.run(resubmits.go_on(id))
    for id in needs.resumed:
        lab.run(steering.release_some(id))
    for id in unheld(lab):
        lab.run(dependents.hold(id))
    lab.run(steering.resolve_later())
    lab.run(workflows.count())
    return unreadable


@on_each_engine
@pytest.mark.parametrize(
    "change",
    [
        "holdfast_workflows SET tags = 'no json'",
        "holdfast_workflows SET arguments = '{'",
        "holdfast_workflows SET on_failure = 'odd'",
        "holdfast_workflows SET workflow_name = ''",
        "holdfast_scopes SET body_open = -5",
        "holdfast_scopes SET body_open = 1000000",
        "holdfast_step_counts SET open = -7",
        "holdfast_step_counts SET bad = -7",
        "holdfast_tasks SET parked = 'odd' WHERE step_number = 0",
        "holdfast_tasks SET step_tail = 'odd'",
        "holdfast_tasks SET step_part = 99",
        "holdfast_tasks SET step_number = NULL",
        "holdfast_tasks SET inputs = 'no json'",
    ],
)
def test_odd_values_stop_no_other_workflow(lab: Lab, change: str) -> None:
    odd = plan_of(step(), step(0), step(tail="ended", handler=True, cleanup=True))
    first, *_ = begin(lab, odd)
    lab.sql(f"UPDATE {change}")
    good = plan_of(step(task={"queue_name": "good"}), step(0, task={"queue_name": "good"}))
    begin(lab, good)
    look(lab)
    fail(lab, first)
    look(lab)
    lab.run(operate.resubmit([first]))
    pause(lab, odd.id)
    resume(lab, odd.id)
    lab.run(steering.cancel(odd.id))
    look(lab)
    lab.run(resubmits.begin(odd.id))
    look(lab)
    for each in good.steps:
        lab.complete(lab.run_again(each.task.id, "good"))
    assert status(lab, good).is_terminal


@pytest.mark.parametrize(
    "change",
    [
        "holdfast_workflows SET parent_id = 'zz'",
        "holdfast_workflows SET root_id = 'zz'",
        "holdfast_workflows SET step_id = 'zz'",
        "holdfast_scopes SET workflow_id = 'zz'",
        "holdfast_scopes SET error_id = 'zz'",
        "holdfast_scopes SET ended_gate = 'zz'",
        "holdfast_scopes SET error_gate = 'zz'",
        "holdfast_workflows SET created_at = 9223372036854775807",
    ],
)
def test_ids_that_are_none_stop_no_other_workflow(labs: Labs, change: str) -> None:
    with labs.open(Kind.SQLITE_MEMORY) as lab:
        odd = plan_of(step(), step(tail="ended", handler=True), step(tail="error", handler=True))
        first, *_ = begin(lab, odd)
        lab.sql(f"UPDATE {change}")
        good = plan_of(step(task={"queue_name": "good"}))
        begin(lab, good)
        look(lab)
        fail(lab, first)
        lab.run(operate.resubmit([first]))
        look(lab)
        if lab.status(first) is S.PENDING:
            complete(lab, first)
        look(lab)
        lab.complete(lab.run_again(good.steps[0].task.id, "good"))
        assert status(lab, good).is_terminal


def test_a_step_whose_id_is_none_keeps_no_other_from_being_stopped(labs: Labs) -> None:
    with labs.open(Kind.SQLITE_MEMORY) as lab:
        plan = plan_of(step(), step())
        odd, other = begin(lab, plan)
        lab.sql("UPDATE holdfast_tasks SET id = :odd WHERE id = :id", odd="0" * 36, id=odd)
        lab.run(steering.cancel(plan.id))
        assert lab.run(steering.stop_some(plan.id)) == 1
        assert lab.status(other) is S.CANCELLED
        # What cannot be stopped is not tried again and again.
        assert lab.run(steering.stop_some(plan.id)) == 0
