"""One child, seen from the supervisor: its socket, its shared page, and the runs in its hand.

Owns what is known of a child and of each task that it was given, how much it is given ahead, and
the pace at which it is listened to: neither a child, nor what a task left running, may have the
supervisor to itself. What is not read stays in the socket or pipe, and whoever writes into it
waits.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Container, Iterable
from enum import Enum
from time import monotonic, monotonic_ns
from typing import TypeAlias

from msgspec import Struct

from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Why
from holdfast.core.records import ClaimedTask
from holdfast.runtime.wire.framing import MAX_FRAME, Reader, Splitter, frame
from holdfast.runtime.wire.messages import Cancel, Job, Kind, Message, Run, ToSupervisor
from holdfast.runtime.wire.shared_page import SharedPage
from holdfast.store.verbs.claims import Begin

WINDOW_US = 10_000
"""How much work a child is given ahead, in microseconds of its time."""
MOST_TASKS = 256
LEAST_US = WINDOW_US // MOST_TASKS
"""No task is thought to cost less, or a window would hold too many."""
Rank: TypeAlias = tuple[int, int]
"""The place of a task's queue, and its priority: what goes first has the lower one."""
_FIRST_OF_ALL: Rank = (-1, 0)
_SEND_BUFFER = 1024 * 1024
_MOST_UNREAD = 64 * 1024 * 1024
_UNREAD_FOR = 30.0
"""A child reads at all times: one that leaves so much unread, for so long, is treated as broken."""
_HEARD = 64e6
_MESSAGES = 50_000.0
_PRINTED = 32e6
_BURST = 0.1


class ChildState(Enum):
    """The life of a child."""

    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """Takes nothing more; ends when its hand is empty."""
    DEAD = "dead"


class ProtocolError(Exception):
    """A child said or did what no child may; the message completes "it …"."""


class Assignment(Struct, eq=False):
    """One claimed task placed on one child: a run, from its placement to its end.

    `attempt`, `given_at`, `started`, `told_to_end` and `told_to_end_at` are written under the
    ledger's lock. The others are written without it, by one thread each: `time_limits` (`killed`,
    `begun_at`, `excused`, `remark`), the message loop (`stack`, and `has_evidence` under the
    evidence recorder's lock), the request poller (`wanted_gone`). `beat_at` is set by the ledger
    at the start, by the message loop at a heartbeat, and moved by `time_limits` while the event
    loop is blocked; a write lost between the two is made good by the next heartbeat.
    """

    slot: int
    task: ClaimedTask
    policy: Policy
    child: ChildHandle
    cost_us: int
    attempt: int = 0
    given_at: float = 0.0
    started: bool = False
    """Whether its start is durable; before that nothing was handed over."""
    told_to_end: Why | None = None
    """Why its code has been told to end, if it has."""
    told_to_end_at: float = 0.0
    killed: bool = False
    begun_at: float = 0.0
    """When its code began, from when we first saw that on: a child may write what it likes."""
    excused: float = 0.0
    """Seconds for which others kept it from going on."""
    remark: str = ""
    """What an error about its time limit has to add."""
    beat_at: float = 0.0
    """When it last gave a sign of life, for tasks that promise to (monotonic)."""
    stack: str | None = None
    """Where its code was when it was told to end."""
    wanted_gone: bool = False
    """Whether a cancel of it has been read from the store."""
    has_evidence: bool = False
    """Whether it has printed something, or said something about itself."""
    is_urgent: bool = False
    """Whether it goes before what its child has not begun."""
    is_recalled: bool = False
    """Whether its child was asked to give it back, so that another can have it."""

    def begin(self) -> Begin:
        """What the store is told when it is to start."""
        task, child = self.task, self.child
        return Begin(task.key, task.token, child.pid or 0, child.name)

    def job(self) -> Job:
        """What the child is told."""
        return job_of(self.task, self.slot, self.attempt)


def job_of(task: ClaimedTask, slot: int, attempt: int) -> Job:
    """A claimed task, as those who run it know it."""
    return Job(
        slot,
        task.id,
        task.task_name,
        task.version,
        task.queue_name,
        task.args,
        task.kwargs,
        attempt,
        task.retry_count,
        task.task_options,
        task.parent_id,
        task.root_id,
        task.workflow_id,
        task.trace_context,
        task.key,
        task.token,
        task.scope_id,
        task.inputs,
        task.schedule_tick,
    )


class Pace:
    """A rate of bytes and of messages, with some of both allowed at once."""

    __slots__ = ("_bytes_per_s", "_ahead", "_burst_s", "_per_s")

    def __init__(self, *, bytes_per_s: float, messages_per_s: float = 1e9, burst_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._per_s = messages_per_s
        self._burst_s = burst_s
        self._ahead = 0.0
        """When the rate limit will have caught up with what was read (monotonic)."""

    def allows(self) -> bool:
        """Whether one more message may be listened to now; if so, it is spent."""
        now = monotonic()
        after = max(self._ahead, now - self._burst_s) + 1 / self._per_s
        if after > now:
            return False
        self._ahead = after
        return True

    def spend(self, size: int, messages: int = 0) -> float:
        """So much was read: how long to rest before the next time; 0.0: not at all."""
        now = monotonic()
        ahead = max(self._ahead, now - self._burst_s)
        ahead += max(size / self._bytes_per_s, messages / self._per_s)
        self._ahead = ahead
        return max(0.0, ahead - now)


class ChildHandle:
    """One child. What it has in hand, and its state, change under the ledger's lock."""

    def __init__(
        self,
        number: int,
        kind: Kind,
        lanes: int,
        sock: socket.socket,
        page: SharedPage,
        output: int,
        nonce: bytes,
        stuck: Callable[[ChildHandle], None],
        largest: int = MAX_FRAME,
    ) -> None:
        self.number = number
        self.kind: Kind = kind
        self.lanes = lanes
        self.sock = sock
        self.page = page
        self.output = output
        self.splitter = Splitter(nonce)
        """Tells whose output it is that comes out of its pipe."""
        self.name = f"{kind}-{number}"
        self.pid: int | None = None
        self.state = ChildState.STARTING
        self.hand: dict[int, Assignment] = {}
        self.load_us = 0
        self.window_us = WINDOW_US
        """How much work it may be given ahead; more while a queue is deep (see `reserve`)."""
        self.saved = False
        """Whether it gets nothing more until its hand is empty, for a task that needs it alone."""
        self.last_rank = _FIRST_OF_ALL
        """The highest rank it was given since its hand was empty."""
        self.captured = 0
        """How many of those in its hand have their output kept."""
        self.alone = False
        self.served = 0
        self.most: int | None = None
        """How many tasks it may serve in its life (process children; others have neighbours
        to finish when they have served enough)."""
        self.is_reaped = False
        """Whether its pid may be another's by now."""
        self.killed = False
        """Whether we ended it ourselves."""
        self.orphaned = False
        """Whether its template is dead, so that nobody tells us of its death."""
        self.dismissed = False
        """Whether it was told to leave because there was one too many."""
        self.waits: int | None = None
        """The slot whose code does nothing but wait for other tasks."""
        self.greeted = False
        """Whether it has said that it can take tasks."""
        self.breach: str | None = None
        """What it did that no child may do, which is why it is killed and no longer heard."""
        self.blocked_until = 0.0
        """Up to when its tasks have been excused for an event loop that is blocked (monotonic)."""
        self.blocker = 0
        """The slot that blocks it, and of which that has been logged."""
        self.slow = False
        """Whether what it runs takes longer than was guessed: nothing is put behind it."""
        self.reader = Reader(ToSupervisor, largest=largest)
        self.hearing = Pace(bytes_per_s=_HEARD, messages_per_s=_MESSAGES, burst_s=_BURST)
        self.reading = Pace(bytes_per_s=_PRINTED, burst_s=_BURST)
        self.complaining = Pace(bytes_per_s=_PRINTED, messages_per_s=10.0, burst_s=5.0)
        self._outbox = bytearray()
        self._moved_at = 0.0
        self._sending = threading.Lock()
        self._stuck = stuck
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)

    def room(self, cost_us: int, alone: bool) -> bool:
        """Whether it may be given a task of this cost now."""
        if self.state is not ChildState.READY or self.alone:
            return False
        if self.kind != "process":
            return len(self.hand) < self.lanes
        if self.most is not None and self.served + len(self.hand) >= self.most:
            return False
        if not self.hand:
            return True
        if alone or self.slow or len(self.hand) >= MOST_TASKS:
            return False
        if cost_us >= self.window_us > WINDOW_US:
            # A long one may wait behind short ones, because nothing will wait behind it.
            return self.load_us <= self.window_us // 2
        return not self.saved and self.load_us + cost_us <= self.window_us

    @property
    def is_lent(self) -> bool:
        """Whether another child may work in its place: what it runs waits for other tasks."""
        return self.kind == "process" and self.waits in self.hand

    @property
    def number_urgent(self) -> int:
        """How many in its hand go before the others."""
        return sum(run.is_urgent for run in self.hand.values())

    @property
    def is_ready(self) -> bool:
        """Whether it has come up, and has not ended."""
        return self.state in (ChildState.READY, ChildState.LEAVING)

    @property
    def places(self) -> int:
        """How many more tasks may be in its hand, if it has room for them."""
        most = MOST_TASKS if self.most is None else min(MOST_TASKS, self.most - self.served)
        return most - len(self.hand)

    def take(self, assignment: Assignment, alone: bool) -> None:
        """Put a task into its hand; it is sent with `say`."""
        self.hand[assignment.slot] = assignment
        self.load_us += assignment.cost_us
        self.captured += assignment.policy.capture_output
        self.alone = self.alone or alone

    def drop(self, slot: int) -> Assignment | None:
        """Take a task out of its hand, if it is there."""
        assignment = self.hand.pop(slot, None)
        if assignment is not None:
            self.load_us -= assignment.cost_us
            self.captured -= assignment.policy.capture_output
            if not self.hand:
                self.load_us = 0
                self.alone = self.saved = False
                self.last_rank = _FIRST_OF_ALL
        return assignment

    def holds(self, key: object, token: object) -> bool:
        """Whether it has been given this task, under this claim."""
        return any(a.task.key == key and a.task.token == token for a in list(self.hand.values()))

    def running(self, now: float) -> dict[int, float]:
        """For how many seconds those of its tasks have run whose code has begun, by their slots."""
        ahead_ns = monotonic_ns() - round(now * 1e9)
        return {
            slot: max(0.0, now - (at_ns - ahead_ns) / 1e9)
            for slot, at_ns in self.page.begun()
            if slot in self.hand
        }

    def waiting(self, begun: Container[int]) -> list[int]:
        """The slots that were handed over, of those whose code has not begun."""
        hand = list(self.hand.items())
        return [slot for slot, run in hand if run.started and slot not in begun]

    def run(self, given: Iterable[Assignment]) -> None:
        """Hand over tasks whose start is durable."""
        urgent: list[Job] = []
        others: list[Job] = []
        for assignment in given:
            (urgent if assignment.is_urgent else others).append(assignment.job())
        if urgent:
            self.say(Run(urgent, first=True))
        if others:
            self.say(Run(others))

    def tell_to_end(self, slot: int, why: Why) -> None:
        """Tell the code of this slot to end; a process is told by a signal, too."""
        if self.kind != "process":
            self.say(Cancel(slot, why))
        elif self.pid is not None and self.state is not ChildState.DEAD:
            # One that has not begun is taken back; one that runs sees `cancel_requested` too.
            self.say(Cancel(slot, why))
            self.page.ask_to_end(slot, why)
            try:
                os.kill(self.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass

    def say(self, *messages: Message) -> None:
        """Send without waiting; what the socket does not take now leaves later."""
        data = b"".join(map(frame, messages))
        with self._sending:
            if self._outbox:
                self._outbox += data
                return
            sent = self._send(data)
            if sent == len(data):
                return
            self._outbox += data[sent:]
            self._moved_at = monotonic()
        self._stuck(self)

    def flush(self) -> bool:
        """Send what is left over; whether all of it has gone."""
        with self._sending:
            if self._outbox:
                with memoryview(self._outbox) as unsent, unsent[:_SEND_BUFFER] as next_piece:
                    sent = self._send(next_piece)
                del self._outbox[:sent]
                if sent:
                    self._moved_at = monotonic()
                elif (
                    len(self._outbox) > _MOST_UNREAD and monotonic() > self._moved_at + _UNREAD_FOR
                ):
                    self._outbox.clear()
                    raise ProtocolError("did not read what it was sent")
            return not self._outbox

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # Its death is noticed where it is read from; nothing more will be needed.
            return len(data)

    def close(self) -> None:
        """Let go of its socket. Its page goes with the last who may be looking at it."""
        self.sock.close()
