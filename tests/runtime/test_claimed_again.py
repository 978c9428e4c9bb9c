"""A worker that claims a task again which it still holds under an older claim.

It was taken from it unnoticed: cancelled and resubmitted, or its lease was lost.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.ending import Failed, Outcome, Returned
from holdfast.core.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.runtime import board
from holdfast.runtime.assignment import Assignment, Finished
from holdfast.runtime.board import Board
from holdfast.runtime.claimer import Claimer
from holdfast.runtime.criers import Criers
from holdfast.runtime.desk import Desk
from holdfast.runtime.finisher import Finisher
from holdfast.runtime.options import QueueChoice, WorkerOptions
from holdfast.runtime.outage import Outage
from holdfast.runtime.pool.member import Member, State
from holdfast.runtime.source import sources
from holdfast.runtime.wire import Job, KnownTask, Reader, ToChild
from holdfast.store import operate
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import BOOM, HOST, PID, QUEUE, TASK, WORKER

LANES = 4
KNOWN = [KnownTask(TASK, 1, QUEUE, "thread", None, None)]


class Hands:
    """A desk with one child, of which only the socket is there."""

    def __init__(self, undo: ExitStack) -> None:
        ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        memory = board.create(LANES)
        self.member = Member(
            1, "thread", LANES, ours, Board(memory, LANES), -1, bytes(16), lambda member: None
        )
        os.close(memory)
        undo.callback(self._theirs.close)
        undo.callback(self.member.close)
        self.member.pid = PID
        self.member.state = State.READY
        self.desk = Desk(WorkerOptions(), KNOWN)
        self.desk.members[1] = self.member
        self._reader = Reader(ToChild)

    def told(self) -> list[Job]:
        """What the child was told to run."""
        try:
            data = self._theirs.recv(1_000_000)
        except BlockingIOError:
            return []
        return [job for run in self._reader.feed(data) for job in run.jobs]

    def ended(self, task: ClaimedTask, outcome: Outcome) -> None:
        """The child has run this task, which was claimed and started, to this end."""
        slot = len(self.desk.finished) + 1
        assignment = Assignment(slot, task, Policy(), self.member, 0, started=True)
        self.desk.claimed([task])
        self.desk.assignments[slot] = assignment
        self.member.take(assignment, alone=False)
        self.desk.ended(Finished(assignment, outcome))


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def claimer(lab: Lab, desk: Desk) -> Claimer:
    found = sources([QueueChoice(QUEUE)], KNOWN)
    return Claimer(lab.store, desk, found, Outage(1.0), worker_id=WORKER, hostname=HOST)


@on_each_engine
def test_it_is_begun_once_and_under_the_newer_claim(lab: Lab, hands: Hands) -> None:
    """The very turn that would start the older claim makes the newer one."""
    old, other = lab.claimed(), lab.claimed()
    hands.desk.claimed([old, other])
    hands.desk.hold([old, other])
    lab.cancel(old.id)
    lab.run(operate.resubmit([old.id]))
    claimer(lab, hands.desk).tick()
    told = {job.id: job for job in hands.told()}
    assert len(hands.member.hand) == len(hands.desk.assignments) == len(told) == 2
    assert told[old.id].token != old.token
    assert told[old.id].attempt == lab.task(old.id).attempt == 1
    assert told[other.id].token == other.token
    assert hands.desk.tokens == {other.token: 1, told[old.id].token: 1}
    assert hands.desk.spent == {old.token}
    assert not hands.desk.held
    assert lab.statuses([old.id, other.id]) == [TaskStatus.RUNNING] * 2


@on_each_engine
def test_one_that_is_gone_and_not_claimed_again_is_forgotten(lab: Lab, hands: Hands) -> None:
    old = lab.claimed()
    hands.desk.claimed([old])
    hands.desk.hold([old])
    lab.cancel(old.id)
    claimer(lab, hands.desk).tick()
    assert hands.told() == []
    assert hands.desk.is_idle
    assert hands.desk.spent == {old.token}


@on_each_engine
@pytest.mark.parametrize("newer_first", [False, True])
def test_the_ends_of_both_claims_are_written_in_one_go(
    lab: Lab, hands: Hands, newer_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has its own answer: the older claim is lost, the newer one lands."""
    old = lab.running()
    lab.fail_and_resubmit(old)
    new, neighbour = lab.run_again(old.id), lab.running()
    runs: list[tuple[ClaimedTask, Outcome]] = [(old, Failed(BOOM)), (new, Returned("7"))]
    for task, outcome in (*(reversed(runs) if newer_first else runs), (neighbour, Returned("8"))):
        hands.ended(task, outcome)
    Finisher(
        lab.store,
        hands.desk,
        Outage(1.0),
        Criers(hands.desk, []),
        worker_id=WORKER,
        kill=lambda member: None,
        put_off=lambda: None,
    ).tick()
    assert [lab.task(task.id).result for task in (new, neighbour)] == ["7", "8"]
    assert [row.outcome for row in lab.attempts(new.id)] == ["FAILED", "COMPLETED"]
    assert hands.desk.is_idle
    assert hands.desk.spent == {old.token, new.token, neighbour.token}
    assert caplog.text.count("its lease was lost") == 1
