"""Short tasks are claimed for the child that will run them; others wait until one is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic

import pytest

from holdfast.core.ending import NotBegun
from holdfast.core.status import TaskStatus
from holdfast.runtime.costs import MOST_TASKS, SHORT_US
from tests.runtime.test_starter import Duties
from tests.support.hands import Hands
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import HOST, PID, TASK


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo, "process")


def deep(lab: Lab, hands: Hands, run_us: int) -> Duties:
    """A queue with more than was wanted so far, of tasks that take so long."""
    duties = Duties(lab, hands)
    hands.desk.costs.learn(TASK, [run_us] * 1_000)
    hands.desk.claimed([lab.claimed()])
    lab.send_many(2 * MOST_TASKS)
    duties.source.is_deep = True
    return duties


@on_each_engine
def test_short_tasks_are_claimed_and_started_in_one(lab: Lab, hands: Hands) -> None:
    duties = deep(lab, hands, 10)
    duties.claimer.tick()
    jobs = hands.told()
    assert len(jobs) == MOST_TASKS
    assert {job.attempt for job in jobs} == {1}
    assert not hands.desk.held
    for job in (jobs[0], jobs[-1]):
        task = lab.task(job.id)
        assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1)
        assert (task.worker_hostname, task.worker_pid) == (HOST, PID)
        assert task.worker_process_name == hands.member.name
    # The window is full, so nothing is claimed before some of it has ended.
    assert hands.desk.due_window() is None
    duties.end_all()
    duties.claimer.tick()
    assert len(hands.told()) == MOST_TASKS


@on_each_engine
def test_of_tasks_that_are_not_short_one_is_given_at_a_time(lab: Lab, hands: Hands) -> None:
    duties = deep(lab, hands, SHORT_US * 2)
    duties.claimer.tick()
    assert hands.told() == []
    assert hands.desk.held


@on_each_engine
def test_what_is_held_comes_first(lab: Lab, hands: Hands) -> None:
    duties = deep(lab, hands, 10)
    (held,) = lab.claim(1).tasks
    hands.hold(held)
    assert hands.desk.due_window() is None
    duties.starter.tick()
    assert [job.id for job in hands.told()] == [held.id]
    duties.end_all()
    assert hands.desk.due_window() is not None


@on_each_engine
def test_a_task_that_must_be_alone_goes_back_and_is_claimed_as_such(lab: Lab, hands: Hands) -> None:
    duties = deep(lab, hands, 10)
    (loner,) = lab.claim(1).tasks
    lab.sql("UPDATE holdfast_tasks SET crash_count = 1 WHERE id = :id", id=loner.id)
    lab.release(loner)
    duties.claimer.tick()
    assert loner.id not in {job.id for job in hands.told()}
    (back,) = hands.desk.finished
    assert back.assignment.task.id == loner.id
    assert isinstance(back.outcome, NotBegun)
    assert hands.member.hand
    assert loner.key not in {a.task.key for a in hands.member.hand.values()}
    assert not duties.source.may_share(monotonic())
