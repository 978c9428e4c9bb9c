"""The claimer, turn by turn: what it claims, what it starts, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic

import pytest

from holdfast.core.ending import NotBegun, Returned
from holdfast.core.status import TaskStatus
from holdfast.runtime.assignment import Finished
from holdfast.runtime.claimer import Claimer
from holdfast.runtime.costs import MOST_TASKS, SHORT_US, WINDOW_US
from holdfast.runtime.options import QueueChoice
from holdfast.runtime.outage import Outage
from holdfast.runtime.source import sources
from holdfast.runtime.wire import Kind
from tests.support.hands import LANES, Hands
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import HOST, PID, QUEUE, TASK, WORKER

BEHIND = "behind"


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as undo:
        yield undo


class Bench:
    """A claimer and one child, with everything between them ticked by hand."""

    def __init__(self, lab: Lab, undo: ExitStack, kind: Kind) -> None:
        self.hands = Hands(undo, kind)
        self.desk = self.hands.desk
        choices = [QueueChoice(QUEUE), QueueChoice(BEHIND)]
        self.source, _ = found = sources(choices, self.hands.known)
        self.claimer = Claimer(
            lab.store, self.desk, found, Outage(1.0), worker_id=WORKER, hostname=HOST
        )

    def turn(self) -> bool:
        """Whether there is something to do; it is done."""
        with self.desk.lock:
            plan = self.claimer._plan()
        if plan is not None:
            self.claimer._turn(plan)
        return plan is not None

    def end_all(self) -> None:
        """Whatever runs has returned."""
        with self.desk.lock:
            self.desk.ended(
                *(Finished(run, Returned("1")) for run in [*self.desk.assignments.values()])
            )


def deep(lab: Lab, undo: ExitStack, run_us: int) -> Bench:
    """A process child, and a queue with more than was wanted so far, of tasks that take so long."""
    bench = Bench(lab, undo, "process")
    bench.desk.costs.learn(TASK, [run_us] * 1_000)
    bench.desk.claimed([lab.claimed()])
    lab.send_many(2 * MOST_TASKS)
    bench.source.is_deep = True
    return bench


@on_each_engine
def test_a_lone_task_is_claimed_and_started_at_once(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    for _ in range(2):
        lab.send()
        bench.claimer.rung(frozenset())
        bench.claimer.tick()
        assert len(bench.hands.told()) == 1


@on_each_engine
def test_no_more_than_the_lanes_of_a_child_are_claimed(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    lab.send_many(3 * LANES)
    for _ in range(3):
        bench.claimer.tick()
        assert [job.attempt for job in bench.hands.told()] == [1] * LANES
        assert not bench.desk.held
        bench.end_all()


@on_each_engine
def test_what_was_claimed_of_a_paused_queue_is_not_started(lab: Lab, undo: ExitStack) -> None:
    bench = Bench(lab, undo, "thread")
    bench.hands.hold(lab.claimed())
    bench.claimer.paused(frozenset({QUEUE}))
    with bench.desk.lock:
        assert bench.desk.fit_held() == []
    bench.claimer.tick()
    assert not bench.desk.held


@on_each_engine
def test_under_load_one_batch_is_started_and_the_next_is_claimed(lab: Lab, undo: ExitStack) -> None:
    """Of tasks that are not short it matters which child gets which."""
    cost = SHORT_US * 2
    window = WINDOW_US // cost
    bench = deep(lab, undo, cost)
    bench.claimer.tick()
    assert len(bench.hands.told()) == window
    assert [lab.status(task.id) for task, _ in bench.desk.held] == [TaskStatus.CLAIMED] * window
    bench.end_all()
    bench.claimer.tick()
    assert len(bench.hands.told()) == window
    assert len(bench.desk.held) == window


@on_each_engine
def test_short_tasks_are_claimed_for_a_child_and_so_started(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    bench.claimer.tick()
    jobs = bench.hands.told()
    assert len(jobs) == MOST_TASKS
    assert {job.attempt for job in jobs} == {1}
    assert not bench.desk.held
    for job in (jobs[0], jobs[-1]):
        task = lab.task(job.id)
        assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1)
        assert (task.worker_hostname, task.worker_pid) == (HOST, PID)
        assert task.worker_process_name == bench.hands.member.name
    # The window is full, so nothing is claimed before some of it has ended.
    assert bench.desk.due_window() is None
    assert not bench.turn()
    bench.end_all()
    bench.claimer.tick()
    assert len(bench.hands.told()) == MOST_TASKS


@on_each_engine
def test_a_queue_behind_one_that_fills_windows_waits(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    behind = lab.send(queue_name=BEHIND)
    while bench.turn():
        pass
    assert len(bench.hands.told()) == MOST_TASKS
    assert lab.status(behind) is TaskStatus.PENDING


@on_each_engine
def test_what_is_held_comes_before_what_is_claimed_for_a_child(lab: Lab, undo: ExitStack) -> None:
    bench = deep(lab, undo, 10)
    (held,) = lab.claim(1).tasks
    bench.hands.hold(held)
    assert bench.desk.due_window() is None
    bench.claimer.tick()
    assert [job.id for job in bench.hands.told()] == [held.id]
    bench.claimer.tick()
    assert len(bench.hands.told()) == MOST_TASKS - 1


@on_each_engine
def test_a_task_that_must_be_alone_goes_back_and_is_claimed_as_such(
    lab: Lab, undo: ExitStack
) -> None:
    bench = deep(lab, undo, 10)
    (loner,) = lab.claim(1).tasks
    lab.sql("UPDATE holdfast_tasks SET crash_count = 1 WHERE id = :id", id=loner.id)
    lab.release(loner)
    bench.claimer.tick()
    assert loner.id not in {job.id for job in bench.hands.told()}
    (back,) = bench.desk.finished
    assert back.assignment.task.id == loner.id
    assert isinstance(back.outcome, NotBegun)
    assert loner.key not in {run.task.key for run in bench.hands.member.hand.values()}
    assert not bench.source.may_share(monotonic())
