"""Ended runs: in which order they are written, and what waits for what."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Returned
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.runtime.supervisor.state.outcome_queue import Finished, OutcomeQueue
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.deadline import until
from tests.support.hands import Hands
from tests.support.verbs import new_token


@pytest.fixture
def ended() -> Iterator[list[Finished]]:
    with ExitStack() as undo:
        child = Hands(undo).child
        runs = [Assignment(n, claimed(n, new_token()), Policy(), child, 10) for n in range(4)]
        yield [Finished(run, Returned("1")) for run in runs]


@pytest.fixture
def queue() -> OutcomeQueue:
    return OutcomeQueue(threading.RLock())


def test_what_ended_first_comes_first(queue: OutcomeQueue, ended: list[Finished]) -> None:
    queue.add(ended[:2])
    queue.add(ended[2:])
    assert queue.take(3, 0) == (ended[:3], [])
    assert queue.take(3, 0) == (ended[3:], [])
    assert queue.take(3, 0) == ([], [])


def test_what_could_not_be_written_comes_before_what_ended_later(
    queue: OutcomeQueue, ended: list[Finished]
) -> None:
    queue.add(ended[:2])
    batch, _ = queue.take(10, 0)
    queue.add(ended[2:])
    queue.put_back(batch)
    assert queue.take(10, 0) == (ended, [])


def test_what_is_set_aside_is_tried_again_until_it_is_settled(
    queue: OutcomeQueue, ended: list[Finished]
) -> None:
    queue.set_aside(ended[:1])
    assert (queue.number_aside, len(queue)) == (1, 0)
    for _ in range(2):
        again = until(lambda: queue.take(10, 1)[1], within=5)
        assert again == ended[:1]
        assert queue.take(10, 0) == ([], []), "not before it was answered"
        queue.set_aside(again)
    queue.settled([ended[0].assignment.task])
    assert queue.number_aside == 0


def test_every_run_that_is_not_known_to_be_written_is_known(
    queue: OutcomeQueue, ended: list[Finished]
) -> None:
    queue.add(ended[:2])
    assert queue.take(1, 0) == (ended[:1], [])
    queue.set_aside(ended[2:3])
    assert queue.is_writing
    assert queue.keys() == {0, 1, 2}


def test_a_wait_ends_when_something_ends_or_the_worker_does(
    queue: OutcomeQueue, ended: list[Finished]
) -> None:
    for wake in (lambda: queue.add(ended), queue.wake):
        timer = threading.Timer(0.05, wake)
        timer.start()
        batch, _ = queue.take(10, 60)
        timer.join()
        assert batch in (ended, [])


def test_ways_to_end_are_counted(queue: OutcomeQueue) -> None:
    queue.count({"completed": 2})
    before = queue.totals()
    queue.count({"completed": 1, "failed": 1})
    assert queue.totals() - before == {"completed": 1, "failed": 1}
