"""A ledger with one child of which only the socket is there: what duties do, seen from both
ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TypeVar

from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Outcome
from holdfast.core.records import ClaimedTask
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.outcome_queue import Finished
from holdfast.runtime.supervisor.state.queue_source import sources
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.framing import Reader
from holdfast.runtime.wire.messages import Job, Kind, KnownTask, ToChild
from holdfast.runtime.wire.shared_page import SharedPage
from tests.support.verbs import PID, QUEUE, TASK

LANES = 4
M = TypeVar("M")


class Hands:
    """A ledger with one child, of which only the socket is there."""

    def __init__(
        self, undo: ExitStack, kind: Kind = "thread", queues: Sequence[str] = (QUEUE,)
    ) -> None:
        self.known = [KnownTask(TASK, 1, QUEUE, kind, None, None)]
        ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        memory = shared_page.create(LANES)
        self.child = ChildHandle(
            1, kind, LANES, ours, SharedPage(memory, LANES), -1, bytes(16), lambda child: None
        )
        os.close(memory)
        undo.callback(self._theirs.close)
        undo.callback(self.child.close)
        self.child.pid = PID
        self.child.state = ChildState.READY
        self.sources = sources([QueueChoice(queue) for queue in queues], self.known)
        self.ledger = Ledger(WorkerOptions(), self.known, self.sources)
        self.ledger.roster.add(self.child)
        self._reader = Reader(ToChild)

    def hold(self, *tasks: ClaimedTask) -> None:
        """These were claimed, and wait for a child."""
        self.ledger.hold_claimed(tasks)

    @property
    def held(self) -> list[ClaimedTask]:
        """What was claimed, and waits for a child."""
        return [task for task, _ in self.ledger._placement.held]

    @property
    def tokens(self) -> dict[bytes, int]:
        """How many tasks of ours each lease covers."""
        return dict(self.ledger._tokens)

    @property
    def spent(self) -> set[bytes]:
        """Leases whose rows can go."""
        return set(self.ledger._spent)

    def told(self) -> list[Job]:
        """What the child was told to run."""
        try:
            data = self._theirs.recv(1_000_000)
        except BlockingIOError:
            return []
        return [job for run in self._reader.feed(data) for job in run.jobs]

    def heard(self, kind: type[M]) -> list[M]:
        """What the child was told of this kind."""
        try:
            data = self._theirs.recv(1_000_000)
        except BlockingIOError:
            return []
        return [message for message in self._reader.feed(data) if isinstance(message, kind)]

    def ended(self, task: ClaimedTask, outcome: Outcome, given_at: float = 0.0) -> None:
        """The child has run this task, which was claimed and started, to this end."""
        slot = len(self.ledger.outcomes) + 1
        assignment = Assignment(
            slot, task, Policy(), self.child, 0, started=True, given_at=given_at
        )
        self.ledger._claimed([task])
        self.has(assignment)
        self.child.take(assignment, alone=False)
        self.ledger.ended([Finished(assignment, outcome)])

    def has(self, assignment: Assignment) -> None:
        """Some child was given this."""
        self.ledger._assignments[assignment.slot] = assignment
