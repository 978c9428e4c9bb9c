"""Who starts what was claimed: the claimer itself while queues are shallow, then the starter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.ending import Returned
from holdfast.core.status import TaskStatus
from holdfast.runtime.assignment import Finished
from holdfast.runtime.claimer import Claimer
from holdfast.runtime.options import QueueChoice
from holdfast.runtime.outage import Outage
from holdfast.runtime.source import sources
from holdfast.runtime.starter import Starter
from tests.support.hands import LANES, Hands
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import HOST, QUEUE, WORKER


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


class Duties:
    """A claimer and a starter at one desk, each ticked by hand."""

    def __init__(self, lab: Lab, hands: Hands) -> None:
        (self.source,) = found = sources([QueueChoice(QUEUE)], hands.known)
        outage = Outage(1.0)
        self.desk = hands.desk
        self.claimer = Claimer(
            lab.store, hands.desk, found, outage, worker_id=WORKER, hostname=HOST, has_starter=True
        )
        self.starter = Starter(lab.store, hands.desk, outage, hostname=HOST)

    def end_all(self) -> None:
        """Whatever runs has returned."""
        with self.desk.lock:
            self.desk.ended(
                *(Finished(run, Returned("1")) for run in [*self.desk.assignments.values()])
            )


@on_each_engine
def test_a_lone_task_is_claimed_and_started_at_once(lab: Lab, hands: Hands) -> None:
    duties = Duties(lab, hands)
    for _ in range(2):
        lab.send()
        duties.claimer.rung(frozenset())
        duties.claimer.tick()
        assert len(hands.told()) == 1


@on_each_engine
def test_of_a_deep_queue_one_batch_is_claimed_while_the_last_is_started(
    lab: Lab, hands: Hands
) -> None:
    duties = Duties(lab, hands)
    lab.send_many(3 * LANES)
    duties.claimer.tick()
    assert len(hands.told()) == LANES
    duties.end_all()
    duties.claimer.tick()
    assert hands.told() == []
    assert [lab.status(task.id) for task, _ in hands.desk.held] == [TaskStatus.CLAIMED] * LANES
    duties.starter.tick()
    assert [job.attempt for job in hands.told()] == [1] * LANES
    assert not hands.desk.held


@on_each_engine
def test_what_was_claimed_of_a_paused_queue_is_not_started(lab: Lab, hands: Hands) -> None:
    duties = Duties(lab, hands)
    hands.hold(lab.claimed())
    duties.claimer.paused(frozenset({QUEUE}))
    with hands.desk.lock:
        assert hands.desk.fit_held() == []
    duties.claimer.tick()
    assert not hands.desk.held
