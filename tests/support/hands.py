"""A desk with one child of which only the socket is there: what duties do, seen from both ends."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack

from holdfast.core.ending import Outcome
from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import Member, State
from holdfast.runtime.supervisor.state.ledger import Desk
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.framing import Reader
from holdfast.runtime.wire.messages import Job, Kind, KnownTask, ToChild
from holdfast.runtime.wire.shared_page import Board
from tests.support.verbs import PID, QUEUE, TASK

LANES = 4


class Hands:
    """A desk with one child, of which only the socket is there."""

    def __init__(self, undo: ExitStack, kind: Kind = "thread") -> None:
        self.known = [KnownTask(TASK, 1, QUEUE, kind, None, None)]
        ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        memory = shared_page.create(LANES)
        self.member = Member(
            1, kind, LANES, ours, Board(memory, LANES), -1, bytes(16), lambda member: None
        )
        os.close(memory)
        undo.callback(self._theirs.close)
        undo.callback(self.member.close)
        self.member.pid = PID
        self.member.state = State.READY
        self.desk = Desk(WorkerOptions(), self.known)
        self.desk.members[1] = self.member
        self._reader = Reader(ToChild)

    def hold(self, *tasks: ClaimedTask) -> None:
        """These were claimed, and wait for a child."""
        with self.desk.lock:
            self.desk.claimed(tasks)
            self.desk.hold(tasks)

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
