"""The invariants of the lifecycle, as the database itself enforces them.

Whoever writes past the verbs, by hand or by mistake, is refused.
"""

from __future__ import annotations

import pytest

from holdfast.core.errors import StoreError
from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
from holdfast.store.op import At
from tests.support.stores import MORNING, Lab, on_each_engine
from tests.support.verbs import new_token

S = TaskStatus
IN_FLIGHT = {S.CLAIMED, S.RUNNING}


def refused(lab: Lab, assignment: str, **params: object) -> None:
    """Changing tasks so is refused, and nothing is written."""
    before = lab.contents("tasks")
    with pytest.raises(StoreError):
        lab.sql(f"UPDATE holdfast_tasks SET {assignment}", **params)
    assert lab.contents("tasks") == before, assignment


@on_each_engine
@pytest.mark.parametrize("status", TaskStatus)
def test_each_state_has_the_columns_that_belong_to_it_and_no_others(
    lab: Lab, status: TaskStatus
) -> None:
    lab.reach(status)
    true, false = ("1", "0") if lab.engine == "sqlite" else ("true", "false")
    terminal = status in TASK_TERMINAL_STATES
    if status in IN_FLIGHT:
        refused(lab, "claim_token = NULL")
    else:
        refused(lab, "claim_token = :token", token=new_token())
    refused(lab, f"ready = {false if status is S.PENDING else true}")
    refused(lab, f"due_at = {'NULL' if status is S.SCHEDULED else 'created_at'}")
    refused(lab, f"finished_at = {'NULL' if terminal else 'created_at'}")
    refused(
        lab, f"error_code = {'NULL' if terminal and status is not S.COMPLETED else 'task_name'}"
    )


@on_each_engine
@pytest.mark.parametrize("status", TaskStatus)
def test_no_state_can_be_changed_alone(lab: Lab, status: TaskStatus) -> None:
    """But for states to which the same columns belong."""
    alike = [IN_FLIGHT, TASK_TERMINAL_STATES - {S.COMPLETED}]
    lab.reach(status)
    for other in set(TaskStatus) - {status}:
        if not any({status, other} <= group for group in alike):
            refused(lab, f"status = '{other}'")


def test_an_unknown_state(lab: Lab) -> None:
    lab.send()
    refused(lab, "status = 'LOST'")


@pytest.mark.parametrize("priority", [0, 101, -5])
def test_priority_is_between_1_and_100(lab: Lab, priority: int) -> None:
    lab.send()
    refused(lab, f"priority = {priority}")
    with pytest.raises(StoreError):
        lab.send(priority=priority)


@pytest.mark.parametrize("priority", [1, 100])
def test_the_ends_of_the_scale_are_priorities(lab: Lab, priority: int) -> None:
    assert lab.task(lab.send(priority=priority)).priority == priority


def test_a_unique_slot_is_held_once(lab: Lab) -> None:
    lab.send(unique_slot="a")
    lab.send(unique_slot="b")
    with pytest.raises(StoreError):
        lab.sql("UPDATE holdfast_tasks SET unique_slot = 'a'")


def test_an_attempt_is_written_once_and_has_a_known_outcome(lab: Lab) -> None:
    lab.complete(lab.running())
    key = "task_seq" if lab.engine == "sqlite" else "task_id"
    copied = (
        f"INSERT INTO holdfast_task_attempts ({key}, attempt, outcome, will_retry, claim_token, "
        f"started_at, finished_at, created_at) SELECT {key}, attempt + :more, :outcome, "
        "will_retry, claim_token, started_at, finished_at, :at FROM holdfast_task_attempts"
    )
    at = At(MORNING)
    with pytest.raises(StoreError):
        lab.sql(copied, more=0, outcome="COMPLETED", at=at)
    with pytest.raises(StoreError):
        lab.sql(copied, more=1, outcome="WENT_HOME", at=at)
    lab.sql(copied, more=1, outcome="SNOOZED", at=at)


def test_a_dependency_is_on_a_known_ending(lab: Lab) -> None:
    edge = "INSERT INTO holdfast_task_dependencies (parent_id, child_id, on_status) VALUES "
    with pytest.raises(StoreError):
        lab.sql(edge + "(:a, :b, 'sometimes')", a=new_token(), b=new_token())
