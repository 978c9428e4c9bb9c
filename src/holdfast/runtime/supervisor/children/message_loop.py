"""The message loop: one thread that hears the template and all children.

Owns the reading of every socket and pipe. It decides nothing: a message is passed to whom
it concerns, under the ledger's lock. A death is told by the template, after the child was
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
from holdfast.runtime.orphan_guard import alive
from holdfast.runtime.supervisor.children import orphans
from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.wake_pipe import WakePipe
from holdfast.runtime.wire import messages
from holdfast.runtime.wire.messages import Why
from holdfast.store.verbs.evidence import LogPart, TaskNote

log = logging.getLogger("holdfast.worker")

_CHUNK = 256 * 1024
_LONGEST_WAIT = 1.0
_REST = 0.05


class Evidence(Protocol):
    """Where output and notes of running tasks go."""

    def printed(self, child: ChildHandle, data: bytes) -> bool: ...
    def said(self, assignment: Assignment, data: bytes) -> None: ...
    def complained(self, child: ChildHandle, data: bytes) -> None: ...
    def noted(self, assignment: Assignment, note: messages.Note) -> None: ...
    def close(self, assignment: Assignment) -> tuple[TaskNote | None, LogPart | None]: ...
    def gone(self, child: ChildHandle) -> None: ...


class Relay(Protocol):
    """Who answers what code asks of the store."""

    def asked(self, child: ChildHandle, question: messages.Ask) -> None: ...
    def listens(self, child: ChildHandle, message: messages.Listen) -> None: ...
    def gone(self, child: ChildHandle) -> None: ...


class TemplateNews(Protocol):
    """Who is told of templates."""

    def ended(self, template: TemplateProcess) -> None: ...
    def heard(
        self, template: TemplateProcess, message: messages.Manifest | messages.Broken
    ) -> None: ...


class MessageLoop:
    """A duty with a thread of its own: `tick` waits for something to read."""

    name = "message_loop"

    def __init__(
        self,
        ledger: Ledger,
        *,
        evidence: Evidence,
        relay: Relay,
        stacked: Callable[[messages.Stacked], None],
        told: Callable[[messages.Told], None],
    ) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._relay = relay
        self._stacked = stacked
        self._told = told
        self._selector = selectors.DefaultSelector()
        self._wake_pipe = WakePipe()
        self._selector.register(self._wake_pipe, selectors.EVENT_READ, None)
        self._unflushed: set[ChildHandle] = set()
        self._newcomers: list[ChildHandle] = []
        self._new_templates: list[TemplateProcess] = []
        self._newly_orphaned = False
        self._orphans: dict[ChildHandle, int | None] = {}
        self.templates: TemplateNews
        self._resting: dict[ChildHandle, float] = {}
        self.pool: ChildPool

    def attach(self, pool: ChildPool) -> None:
        """Begin to hear the template."""
        self.pool = pool
        if pool.template is not None:
            self.listen_to(pool.template)

    def listen_to(self, template: TemplateProcess) -> None:
        """Hear this template, too (any thread)."""
        template.sock.setblocking(False)
        self._new_templates.append(template)
        self.wake()

    def orphaned(self) -> None:
        """The template of all children is dead: notice their ends without it."""
        self._newly_orphaned = True
        self.wake()

    def close(self) -> None:
        """Let go of every socket and pipe; nothing may be heard or said any more."""
        self._selector.close()
        for child in self._ledger.children.values():
            os.close(child.output)
            child.close()

    def joined(self, child: ChildHandle) -> None:
        """A child was made (any thread)."""
        self._newcomers.append(child)
        self.wake()

    def stuck(self, child: ChildHandle) -> None:
        """A child's socket is full (any thread): send the rest when it is not."""
        self._unflushed.add(child)
        self.wake()

    def wake(self) -> None:
        """End the wait of `tick` (any thread)."""
        self._wake_pipe.ring()

    def tick(self) -> float:
        """Wait for something to read, and read it."""
        for key, _ in self._selector.select(self._wake_resting()):
            if key.data is None:
                self._wake_pipe.hush()
            elif isinstance(key.data, TemplateProcess):
                self._hear_template(key.data)
            else:
                child, what = key.data
                if child.state is ChildState.DEAD:
                    # Buried a moment ago; its descriptors' numbers may be others' by now.
                    continue
                if what == "socket":
                    self._hear(child)
                elif what == "end":
                    self._bury_orphan(child)
                else:
                    self._read_output(child)
        self._welcome()
        self._watch_orphans()
        self._flush()
        return 0.0

    def _rest(self, child: ChildHandle) -> None:
        """Do not listen to a pipe for a while that holds markers only.

        Each short task writes one; to be woken for every one would cost more than the task.
        """
        if child not in self._resting and child.state is not ChildState.DEAD:
            self._unregister(child.output)
            self._resting[child] = monotonic() + _REST

    def _wake_resting(self) -> float:
        """Listen again to pipes that have rested; seconds until the next has."""
        if not self._resting:
            return _LONGEST_WAIT
        now = monotonic()
        for child, until in list(self._resting.items()):
            if until <= now:
                del self._resting[child]
                self._listen(child)
        return max(0.0, min(self._resting.values(), default=now + _LONGEST_WAIT) - now)

    def _listen(self, child: ChildHandle) -> None:
        self._selector.register(child.output, selectors.EVENT_READ, (child, "output"))

    def _welcome(self) -> None:
        while self._new_templates:
            template = self._new_templates.pop()
            self._selector.register(template.sock, selectors.EVENT_READ, template)
        while self._newcomers:
            child = self._newcomers.pop()
            if child.state is not ChildState.DEAD:
                self._selector.register(child.sock, selectors.EVENT_READ, (child, "socket"))
                self._listen(child)

    def _flush(self) -> None:
        for child in list(self._unflushed):
            # A socket that is full is tried again with whatever happens next, or in a while;
            # its child reads all the time, so this is rare and short.
            if child.state is ChildState.DEAD or child.flush():
                self._unflushed.discard(child)
            else:
                self.wake()

    # --- the template ----------------------------------------------------------------------

    def _hear_template(self, template: TemplateProcess) -> None:
        try:
            data = template.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(template.sock)
            self.templates.ended(template)
            return
        for message in template.reader.feed(data):
            if isinstance(message, messages.Forked):
                with self._ledger.lock:
                    child = self._ledger.children.get(message.child)
                    if child is not None:
                        child.pid = message.pid
            elif isinstance(message, messages.Died):
                with self._ledger.lock:
                    child = self._ledger.children.get(message.child)
                if child is not None:
                    self.bury(child, message.exit_code, message.exit_signal)
            else:
                self.templates.heard(template, message)

    def _watch_orphans(self) -> None:
        if not self._newly_orphaned:
            return
        self._newly_orphaned = False
        with self._ledger.lock:
            children = [c for c in self._ledger.children.values() if not c.orphaned]
        for child in children:
            descriptor = self._orphans[child] = orphans.watch(child)
            if descriptor is not None:
                self._selector.register(descriptor, selectors.EVENT_READ, (child, "end"))
            elif child.pid is None or not alive(child.pid):
                # Asked for, and not made any more; or dead in the same moment.
                child.killed = child.pid is None
                self._bury_orphan(child)

    def _bury_orphan(self, child: ChildHandle) -> None:
        descriptor = self._orphans.pop(child, None)
        if descriptor is not None:
            self._unregister(descriptor)
        how = orphans.ended(child, descriptor)
        self.bury(child, how.exit_code, how.exit_signal)

    def bury(self, child: ChildHandle, exit_code: int | None, exit_signal: int | None) -> None:
        """A child is dead and reaped: what it had in hand ends, each task in its own way."""
        self._hear(child)
        self._read_output(child)
        self._resting.pop(child, None)
        self._unregister(child.sock)
        self._unregister(child.output)
        with self._ledger.lock:
            begun = {entry.slot for entry in child.page.begun()}
            child.state = ChildState.DEAD
            for assignment in list(child.hand.values()):
                if assignment.started:
                    outcome = _after_death(assignment, child, begun, exit_code, exit_signal)
                    note, printed = self._evidence.close(assignment)
                    self._ledger.ended(
                        Finished(assignment, outcome, note=note, printed=printed, orphaned=True)
                    )
            self.pool.buried(child)
            self.pool.fill()
            self._ledger.announce()
        self._relay.gone(child)
        self._evidence.gone(child)
        os.close(child.output)
        child.close()

    # --- children --------------------------------------------------------------------------

    def _hear(self, child: ChildHandle) -> None:
        while True:
            try:
                data = child.sock.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._unregister(child.sock)
                if child.orphaned and self._orphans.get(child, 0) is None:
                    # Where its process cannot be watched, this is how its end is noticed.
                    self._bury_orphan(child)
                return
            for message in child.reader.feed(data):
                self._pass_on(child, message)
            if len(data) < _CHUNK:
                return

    def _unregister(self, what: object) -> None:
        try:
            self._selector.unregister(what)  # type: ignore[arg-type]
        except (KeyError, ValueError):
            pass

    def _pass_on(self, child: ChildHandle, message: messages.ToSupervisor) -> None:
        if isinstance(message, messages.Done):
            self._done(child, message)
        elif isinstance(message, messages.Note):
            assignment = self._ledger.assignments.get(message.slot)
            if assignment is not None:
                self._evidence.noted(assignment, message)
        elif isinstance(message, messages.Said):
            assignment = self._ledger.assignments.get(message.slot)
            if assignment is not None:
                self._evidence.said(assignment, message.data)
            elif message.slot == 0:
                self._evidence.complained(child, message.data)
        elif isinstance(message, messages.Where):
            assignment = self._ledger.assignments.get(message.slot)
            if assignment is not None and assignment.child is child:
                assignment.stack = message.text
        elif isinstance(message, messages.Ask):
            self._relay.asked(child, message)
        elif isinstance(message, messages.Hello):
            with self._ledger.lock:
                child.pid = message.pid
                if child.state is ChildState.STARTING:
                    child.state = ChildState.READY
                self._ledger.stir()
        elif isinstance(message, messages.Withdrawn):
            with self._ledger.lock:
                for slot in message.slots:
                    assignment = self._ledger.assignments.get(slot)
                    if assignment is not None:
                        self._ledger.ended(Finished(assignment, NotBegun()))
                self._ledger.announce()
        elif isinstance(message, messages.Listen):
            self._relay.listens(child, message)
        elif isinstance(message, messages.Waits):
            with self._ledger.lock:
                child.waits = message.slot if message.waiting else None
                self.pool.fill()
        elif isinstance(message, messages.Stacked):
            self._stacked(message)
        else:
            self._told(message)

    def _done(self, child: ChildHandle, message: messages.Done) -> None:
        if child.captured:
            # What a task printed belongs to it, so it is read before the task is let go.
            self._read_output(child)
        limit = self._ledger.options.max_tasks_per_child
        ended: list[Finished] = []
        with self._ledger.lock:
            for told in message.outcomes:
                assignment = self._ledger.assignments.get(told.slot)
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
                if assignment.doomed is not None and child.kind == "process":
                    # It leaves after a task that it was told to end; nothing more is for it.
                    child.state = ChildState.LEAVING
            self._ledger.ended(*ended)
            self._ledger.announce()
            if (limit is not None and child.served >= limit) or child.state is ChildState.LEAVING:
                self.pool.retire(child)

    def _read_output(self, child: ChildHandle) -> None:
        # Bounded: a child that prints without end must not keep us from the others.
        for _ in range(64):
            try:
                data = os.read(child.output, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._resting.pop(child, None)
                self._unregister(child.output)
                return
            if not self._evidence.printed(child, data):
                self._rest(child)
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
        return TimedOut(policy.timeout or 0.0, assignment.stack)
    if why == "silence":
        return StalledBySilence(policy.max_heartbeat_interval or 0.0, assignment.stack)
    return StoppedByShutdown()


def _after_death(
    assignment: Assignment,
    child: ChildHandle,
    begun: set[int],
    exit_code: int | None,
    exit_signal: int | None,
) -> Outcome:
    """The outcome of a task whose child is dead."""
    if assignment.slot not in begun:
        return NotBegun()
    if assignment.doomed is not None:
        return _after_doom(assignment.doomed, assignment)
    if child.killed:
        # We killed the child on account of a neighbour.
        return NotBegun()
    return Crashed(exit_code, exit_signal)
