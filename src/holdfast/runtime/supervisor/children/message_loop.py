"""The switchboard: one thread that hears the template and all children.

Owns the reading of every socket and pipe. It decides nothing: a message is passed to whom
it concerns, under the desk's lock. A death is told by the template, after the child was
reaped; before that, everything the child had still said is read.
"""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
    TimedOut,
)
from holdfast.core.payload.failure import decode_error
from holdfast.core.records import Usage
from holdfast.runtime.supervisor.children.pool import Crew
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import Member, State
from holdfast.runtime.supervisor.state.ledger import Desk
from holdfast.runtime.supervisor.wake_pipe import Bell
from holdfast.runtime.wire import messages
from holdfast.runtime.wire.messages import Why
from holdfast.store.verbs.evidence import LogPart, TaskNote

log = logging.getLogger("holdfast.worker")

_CHUNK = 256 * 1024
_LONGEST_WAIT = 1.0
_REST = 0.05


class Evidence(Protocol):
    """Where output and notes of running tasks go."""

    def printed(self, member: Member, data: bytes) -> bool: ...
    def said(self, assignment: Assignment, data: bytes) -> None: ...
    def noted(self, assignment: Assignment, note: messages.Note) -> None: ...
    def close(self, assignment: Assignment) -> tuple[TaskNote | None, LogPart | None]: ...
    def gone(self, member: Member) -> None: ...


class Relay(Protocol):
    """Who answers what code asks of the store."""

    def asked(self, member: Member, question: messages.Ask) -> None: ...
    def listens(self, member: Member, message: messages.Listen) -> None: ...
    def gone(self, member: Member) -> None: ...


class Switchboard:
    """A duty with a thread of its own: `tick` waits for something to read."""

    name = "switchboard"

    def __init__(
        self,
        desk: Desk,
        *,
        evidence: Evidence,
        relay: Relay,
        stacked: Callable[[messages.Stacked], None],
        told: Callable[[messages.Told], None],
        template_ended: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._evidence = evidence
        self._relay = relay
        self._stacked = stacked
        self._told = told
        self._template_ended = template_ended
        self._selector = selectors.DefaultSelector()
        self._bell = Bell()
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._unflushed: set[Member] = set()
        self._newcomers: list[Member] = []
        self._resting: dict[Member, float] = {}
        self.crew: Crew

    def attach(self, crew: Crew) -> None:
        """Begin to hear the template."""
        self.crew = crew
        crew.template.sock.setblocking(False)
        self._selector.register(crew.template.sock, selectors.EVENT_READ, "template")

    def detach(self) -> None:
        """Stop hearing a template that is gone."""
        try:
            self._selector.unregister(self.crew.template.sock)
        except (KeyError, ValueError):
            pass

    def close(self) -> None:
        """Let go of every socket and pipe; nothing may be heard or said any more."""
        self._selector.close()
        for member in self._desk.members.values():
            os.close(member.output)
            member.close()

    def joined(self, member: Member) -> None:
        """A child was made (any thread)."""
        self._newcomers.append(member)
        self.wake()

    def stuck(self, member: Member) -> None:
        """A child's socket is full (any thread): send the rest when it is not."""
        self._unflushed.add(member)
        self.wake()

    def wake(self) -> None:
        """End the wait of `tick` (any thread)."""
        self._bell.ring()

    def tick(self) -> float:
        """Wait for something to read, and read it."""
        for key, _ in self._selector.select(self._wake_resting()):
            if key.data is None:
                self._bell.hush()
            elif key.data == "template":
                self._hear_template()
            else:
                member, what = key.data
                if what == "socket":
                    self._hear(member)
                else:
                    self._read_output(member)
        self._welcome()
        self._flush()
        return 0.0

    def _rest(self, member: Member) -> None:
        """Do not listen to a pipe for a while that holds markers only.

        Each short task writes one; to be woken for every one would cost more than the task.
        """
        if member not in self._resting and member.state is not State.DEAD:
            self._unregister(member.output)
            self._resting[member] = monotonic() + _REST

    def _wake_resting(self) -> float:
        """Listen again to pipes that have rested; seconds until the next has."""
        if not self._resting:
            return _LONGEST_WAIT
        now = monotonic()
        for member, until in list(self._resting.items()):
            if until <= now:
                del self._resting[member]
                self._listen(member)
        return max(0.0, min(self._resting.values(), default=now + _LONGEST_WAIT) - now)

    def _listen(self, member: Member) -> None:
        self._selector.register(member.output, selectors.EVENT_READ, (member, "output"))

    def _welcome(self) -> None:
        while self._newcomers:
            member = self._newcomers.pop()
            if member.state is not State.DEAD:
                self._selector.register(member.sock, selectors.EVENT_READ, (member, "socket"))
                self._listen(member)

    def _flush(self) -> None:
        for member in list(self._unflushed):
            # A socket that is full is tried again with whatever happens next, or in a while;
            # its child reads all the time, so this is rare and short.
            if member.state is State.DEAD or member.flush():
                self._unflushed.discard(member)
            else:
                self.wake()

    # --- the template ----------------------------------------------------------------------

    def _hear_template(self) -> None:
        template = self.crew.template
        try:
            data = template.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(template.sock)
            self._template_ended()
            return
        for message in template.reader.feed(data):
            if isinstance(message, messages.Forked):
                with self._desk.lock:
                    member = self._desk.members.get(message.child)
                    if member is not None:
                        member.pid = message.pid
            elif isinstance(message, messages.Died):
                with self._desk.lock:
                    member = self._desk.members.get(message.child)
                if member is not None:
                    self.bury(member, message.exit_code, message.exit_signal)

    def bury(self, member: Member, exit_code: int | None, exit_signal: int | None) -> None:
        """A child is dead and reaped: what it had in hand ends, each task in its own way."""
        self._hear(member)
        self._read_output(member)
        self._resting.pop(member, None)
        self._unregister(member.sock)
        self._unregister(member.output)
        with self._desk.lock:
            begun = {entry.slot for entry in member.board.begun()}
            member.state = State.DEAD
            for assignment in list(member.hand.values()):
                if assignment.started:
                    outcome = _after_death(assignment, member, begun, exit_code, exit_signal)
                    note, printed = self._evidence.close(assignment)
                    self._desk.ended(
                        Finished(assignment, outcome, note=note, printed=printed, orphaned=True)
                    )
            self.crew.buried(member)
            self.crew.fill()
            self._desk.announce()
        self._relay.gone(member)
        self._evidence.gone(member)
        os.close(member.output)
        member.close()

    # --- children --------------------------------------------------------------------------

    def _hear(self, member: Member) -> None:
        while True:
            try:
                data = member.sock.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._unregister(member.sock)
                return
            for message in member.reader.feed(data):
                self._pass_on(member, message)
            if len(data) < _CHUNK:
                return

    def _unregister(self, what: object) -> None:
        try:
            self._selector.unregister(what)  # type: ignore[arg-type]
        except (KeyError, ValueError):
            pass

    def _pass_on(self, member: Member, message: messages.ToSupervisor) -> None:
        if isinstance(message, messages.Done):
            self._done(member, message)
        elif isinstance(message, messages.Note):
            assignment = self._desk.assignments.get(message.slot)
            if assignment is not None:
                self._evidence.noted(assignment, message)
        elif isinstance(message, messages.Said):
            assignment = self._desk.assignments.get(message.slot)
            if assignment is not None:
                self._evidence.said(assignment, message.data)
        elif isinstance(message, messages.Ask):
            self._relay.asked(member, message)
        elif isinstance(message, messages.Hello):
            with self._desk.lock:
                member.pid = message.pid
                if member.state is State.STARTING:
                    member.state = State.READY
                self._desk.stir()
        elif isinstance(message, messages.Withdrawn):
            with self._desk.lock:
                for slot in message.slots:
                    assignment = self._desk.assignments.get(slot)
                    if assignment is not None:
                        self._desk.ended(Finished(assignment, NotBegun()))
                self._desk.announce()
        elif isinstance(message, messages.Listen):
            self._relay.listens(member, message)
        elif isinstance(message, messages.Stacked):
            self._stacked(message)
        else:
            self._told(message)

    def _done(self, member: Member, message: messages.Done) -> None:
        if member.captured:
            # What a task printed belongs to it, so it is read before the task is let go.
            self._read_output(member)
        limit = self._desk.options.max_tasks_per_child
        ended: list[Finished] = []
        with self._desk.lock:
            for told in message.outcomes:
                assignment = self._desk.assignments.get(told.slot)
                if assignment is None:
                    continue
                ended.append(
                    Finished(
                        assignment,
                        _outcome(told, assignment),
                        Usage(told.peak_memory_kb, told.cpu_time_us),
                        told.run_us,
                        *self._evidence.close(assignment),
                        committed=told.kind == "committed",
                    )
                )
                if assignment.doomed is not None and member.kind == "process":
                    # It leaves after a task that it was told to end; nothing more is for it.
                    member.state = State.LEAVING
            self._desk.ended(*ended)
            self._desk.announce()
            if (limit is not None and member.served >= limit) or member.state is State.LEAVING:
                self.crew.retire(member)

    def _read_output(self, member: Member) -> None:
        # Bounded: a child that prints without end must not keep us from the others.
        for _ in range(64):
            try:
                data = os.read(member.output, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._resting.pop(member, None)
                self._unregister(member.output)
                return
            if not self._evidence.printed(member, data):
                self._rest(member)
            if len(data) < 4096:
                return


def _outcome(told: messages.Outcome, assignment: Assignment) -> Outcome:
    """What a child reports, as `decide` understands it."""
    if told.kind == "returned" or told.kind == "committed":
        return Returned(told.result or "null")
    if told.kind == "cancelled":
        return _after_doom(assignment.doomed or "cancel", assignment)
    if told.kind == "snooze":
        return SnoozeAsked(told.delay_us or 0)
    error = decode_error(told.error or "{}")
    if told.kind == "retry":
        return RetryAsked(error, told.delay_us)
    if told.kind == "abort":
        return AbortAsked(error)
    if assignment.doomed is not None and error.exception is not None:
        # What code raises when it is told to end is that end, by another name.
        return _after_doom(assignment.doomed, assignment)
    return Failed(error, told.listed)


def _after_doom(why: Why, assignment: Assignment) -> Outcome:
    """The outcome of code that we ended."""
    policy = assignment.policy
    if why == "cancel":
        return CancelAcknowledged()
    if why == "timeout":
        return TimedOut(policy.timeout or 0.0)
    if why == "silence":
        return StalledBySilence(policy.max_heartbeat_interval or 0.0)
    return StoppedByShutdown()


def _after_death(
    assignment: Assignment,
    member: Member,
    begun: set[int],
    exit_code: int | None,
    exit_signal: int | None,
) -> Outcome:
    """The outcome of a task whose child is dead."""
    if assignment.slot not in begun:
        return NotBegun()
    if assignment.doomed is not None:
        return _after_doom(assignment.doomed, assignment)
    if member.killed:
        # We killed the child on account of a neighbour.
        return NotBegun()
    return Crashed(exit_code, exit_signal)
