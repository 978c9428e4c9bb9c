"""The message loop: one thread that hears the template and all children.

Owns the reading of every socket and pipe. It decides nothing: a message is passed to the part
that it concerns, which takes its own lock. A death is told by the template, after the child was
reaped; before that, everything the child had still said is read.

Invariant: whatever a child says or does harms only itself. What cannot be read, or is about
a task that it was not given, is a breach: the child is killed, what it ran is charged with that,
and the loop goes on. A child that says more than can be listened to is listened to at a pace, and
waits. The loop sleeps unless there is something to read, or a full socket has room again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Protocol, assert_never

from holdfast.core.outcome import NotBegun, Returned
from holdfast.core.records import Usage
from holdfast.core.text import clean, one_line
from holdfast.runtime.orphan_guard import alive
from holdfast.runtime.supervisor.children import outcomes
from holdfast.runtime.supervisor.children.listening import FOREVER, Listening
from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.children.template_keeper import TemplateKeeper
from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.supervisor.state.child_handle import (
    Assignment,
    ChildHandle,
    ChildState,
    ProtocolError,
)
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.outcome_queue import Finished
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire import messages
from holdfast.store.verbs.evidence import LogPart, TaskNote

log = logging.getLogger("holdfast.worker")

_CHUNK = 256 * 1024
_MOST_CHUNKS = 8
"""Read at a time, so that one child does not keep us from the others."""
_PIPE = 1024 * 1024
"""All that can be in a pipe or socket at one moment, about."""
_REST = 0.05
_DEATH_TOLD_WITHIN = 2.0
"""Seconds between the end of a child's socket and the news of its death, at the most."""
_LONGEST_STACK = 256 * 1024


class Evidence(Protocol):
    """Where output and notes of running tasks go."""

    def printed(self, child: ChildHandle, slot: int, data: bytes) -> None: ...
    def said(self, assignment: Assignment, data: bytes) -> None: ...
    def complained(self, child: ChildHandle, data: bytes) -> None: ...
    def noted(self, assignment: Assignment, note: messages.Note) -> None: ...
    def close(self, assignment: Assignment) -> tuple[TaskNote | None, LogPart | None]: ...
    def gone(self, child: ChildHandle) -> None: ...


class MessageLoop:
    """A duty with a thread of its own: `tick` waits for something to read."""

    name = "message_loop"

    def __init__(
        self,
        ledger: Ledger,
        listening: Listening,
        pool: ChildPool,
        template_keeper: TemplateKeeper,
        *,
        evidence: Evidence,
        relay: RelayServer,
        stacked: Callable[[ChildHandle, messages.Stacked], None],
        told: Callable[[ChildHandle, messages.Told], None],
    ) -> None:
        self._ledger = ledger
        self._listening = listening
        self._pool = pool
        self._template_keeper = template_keeper
        self._evidence = evidence
        self._relay = relay
        self._stacked = stacked
        self._told = told
        self._roster = ledger.roster
        self._orphans: dict[ChildHandle, int | None] = {}
        self._reporters: set[ChildHandle] = set()
        """Children in which something has ended, as was heard in this tick."""
        self._askers: set[ChildHandle] = set()
        """Children whose code has asked something of the store."""

    def close(self) -> None:
        """Let go of every socket and pipe; nothing may be heard or said any more."""
        self._listening.close()
        for child in self._roster.all():
            os.close(child.output)
            child.close()

    def wake(self) -> None:
        """End the wait of `tick` (any thread)."""
        self._listening.wake()

    def tick(self) -> float:
        """Wait for something to read, and read it."""
        listening = self._listening
        self._reporters.clear()
        for what, has_something in listening.wait():
            if isinstance(what, TemplateProcess):
                self._hear_template(what)
                continue
            child, place = what
            if child.state is ChildState.DEAD:
                # Since a moment ago; its descriptors' numbers may be others' by now.
                continue
            if place == "end":
                self._orphan_died(child)
            elif place == "output":
                self._read_output(child)
            elif has_something:
                self._hear(child)
        if self._reporters:
            self._ledger.heard()
            for child in self._reporters - self._askers:
                seconds = self._ledger.rest_of(child)
                if seconds:
                    listening.rest(child, "socket", seconds)
        for child, place in listening.rested():
            if place == "hung-up":
                listening.rest(child, place, FOREVER)
                if child.hand or child.state is ChildState.READY:
                    # It lives, and nothing that it does can be heard of any more.
                    self._kill_for_breach(
                        child, ProtocolError("closed its socket to the supervisor")
                    )
        listening.welcome()
        if listening.has_orphans:
            listening.has_orphans = False
            self._watch_orphans()
        for child in list(listening.unflushed):
            self._flush(child)
        return 0.0

    def _flush(self, child: ChildHandle) -> None:
        """Send a child what its socket did not take; wait for room if there is still none."""
        # Taken out first: another thread may add it again while this one is flushing.
        self._listening.unflushed.discard(child)
        try:
            if child.state is not ChildState.DEAD and not child.flush():
                self._listening.unflushed.add(child)
        except ProtocolError as error:
            self._kill_for_breach(child, error)
        self._listening.watch(child)

    def _hear_template(self, template: TemplateProcess) -> None:
        try:
            data = template.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._listening.remove(template.sock)
            self._template_keeper.ended(template)
            return
        for message in template.reader.feed(data):
            if isinstance(message, messages.Forked):
                child = self._roster.get(message.child)
                if child is not None:
                    self._roster.forked(child, message.pid)
                    if child.breach is not None:
                        self._pool.kill(child)
            elif isinstance(message, messages.Died):
                child = self._roster.get(message.child)
                if child is not None:
                    self._died(child, message.exit_code, message.exit_signal)
            else:
                self._template_keeper.heard(template, message)

    def _watch_orphans(self) -> None:
        for child in [c for c in self._roster.all() if not c.orphaned]:
            descriptor = self._orphans[child] = outcomes.watch_orphan(child)
            if descriptor is not None:
                self._listening.add(descriptor, (child, "end"))
            elif child.pid is None or not alive(child.pid):
                # Asked for, and not made any more; or dead in the same moment.
                child.killed = child.pid is None
                self._orphan_died(child)

    def _orphan_died(self, child: ChildHandle) -> None:
        descriptor = self._orphans.pop(child, None)
        if descriptor is not None:
            self._listening.remove(descriptor)
        self._died(child, *outcomes.orphan_ended(child, descriptor))

    def _died(self, child: ChildHandle, exit_code: int | None, exit_signal: int | None) -> None:
        """A child is dead and reaped: what it had in hand ends, each task in its own way."""
        child.is_reaped = True
        if child.breach is None:
            self._hear(child, last=True)
        self._read_output(child, most=2 * _PIPE)
        runs = self._roster.died(child)
        death = outcomes.Death(child, runs, exit_code, exit_signal)
        ended = []
        for run in runs:
            note, printed = self._evidence.close(run) if run.has_evidence else (None, None)
            outcome = death.outcome(run)
            ended.append(Finished(run, outcome, note=note, printed=printed, orphaned=True))
        self._ledger.ended(ended)
        self._pool.gone(child)
        self._listening.forget(child)
        self._askers.discard(child)
        self._relay.gone(child)
        self._evidence.gone(child)
        os.close(child.output)
        child.close()

    def _hear(self, child: ChildHandle, *, last: bool = False) -> None:
        """Read what a child says; what it says last, whatever the pace."""
        for _ in range(_MOST_CHUNKS):
            if child in self._askers and self._relay.is_full(child) and not last:
                self._listening.rest(child, "socket", _REST)
                return
            try:
                data = child.sock.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._hung_up(child)
                return
            count = 0
            try:
                for message in child.reader.feed(data):
                    count += 1
                    self._pass_on(child, message)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this child's doing
                self._kill_for_breach(child, error)
                return
            seconds = child.hearing.spend(len(data), count)
            if seconds and not last:
                self._listening.rest(child, "socket", seconds)
                return
            if len(data) < _CHUNK:
                return

    def _hung_up(self, child: ChildHandle) -> None:
        self._listening.rest(child, "hung-up", _DEATH_TOLD_WITHIN)
        if child.orphaned and self._orphans.get(child, 0) is None:
            # Where its process cannot be watched, this is how its end is noticed.
            self._orphan_died(child)

    def _kill_for_breach(self, child: ChildHandle, error: Exception) -> None:
        """A child did what no child may: it is killed, and its task is charged with it."""
        breach = str(error)
        if not isinstance(error, ProtocolError):
            breach = f"sent what cannot be read ({type(error).__name__}: {error})"
        ran = self._roster.mark_breach(child, one_line(clean(breach, 300)))
        if ran is None:
            return
        self._pool.kill(child)
        log.error(
            "%s is killed: it %s; it ran %s",
            child.name,
            child.breach,
            ", ".join(named(a.task) for a in ran) or "nothing",
            exc_info=None if isinstance(error, ProtocolError | ValueError) else error,
        )
        self._listening.watch(child)

    def _pass_on(self, child: ChildHandle, message: messages.ToSupervisor) -> None:
        if isinstance(message, messages.Done):
            self._done(child, message)
        elif isinstance(message, messages.Note):
            assignment = self._ledger.own(child, message.slot)
            if assignment is not None:
                self._evidence.noted(assignment, message)
        elif isinstance(message, messages.Said):
            assignment = self._ledger.own(child, message.slot)
            if assignment is not None:
                self._evidence.said(assignment, message.data)
            elif message.slot == 0:
                self._evidence.complained(child, message.data)
        elif isinstance(message, messages.Where):
            assignment = self._ledger.own(child, message.slot)
            if assignment is not None:
                assignment.stack = clean(message.text, _LONGEST_STACK)
        elif isinstance(message, messages.Ask):
            self._ledger.own(child, message.slot)
            self._askers.add(child)
            self._relay.asked(child, message, child.reader.size)
        elif isinstance(message, messages.Hello):
            self._roster.greeted(child)
        elif isinstance(message, messages.Withdrawn):
            runs = [self._held(child, slot) for slot in message.slots]
            self._ledger.ended([Finished(run, NotBegun()) for run in runs])
        elif isinstance(message, messages.Listen):
            self._relay.listens(child, message)
        elif isinstance(message, messages.Waits):
            self._ledger.own(child, message.slot)
            child.waits = message.slot if message.waiting else None
            self._pool.fill()
        elif isinstance(message, messages.Stacked):
            self._stacked(child, message)
        elif isinstance(message, messages.Told):
            self._told(child, message)
        else:
            assert_never(message)

    def _held(self, child: ChildHandle, slot: int) -> Assignment:
        """The task that a child says it is done with."""
        assignment = self._ledger.own(child, slot)
        if assignment is None:
            raise ProtocolError(f"gave an outcome for slot {slot}, which it does not have")
        return assignment

    def _done(self, child: ChildHandle, message: messages.Done) -> None:
        if child.captured:
            # What a task printed belongs to it, so it is read before the task is let go.
            self._read_output(child)
        ended: list[Finished] = []
        for report in message.reports:
            run = self._held(child, report.slot)
            note, printed = self._evidence.close(run) if run.has_evidence else (None, None)
            ended.append(
                Finished(
                    run,
                    # Nearly all of them; the others are looked at first.
                    report.outcome
                    if type(report.outcome) is Returned
                    else outcomes.reported(report.outcome, run),
                    Usage(report.peak_memory_kb, report.cpu_time_us),
                    report.run_us,
                    note,
                    printed,
                    committed=report.committed,
                )
            )
            if run.told_to_end is not None and child.kind == "process":
                # It leaves after a task that it was told to end; nothing more is for it.
                self._roster.let_go(child)
        # Those who write it and claim more are woken once, when all children have been heard.
        self._ledger.ended(ended, wakes=False)
        self._reporters.add(child)
        limit = self._ledger.options.max_tasks_per_child
        if (limit is not None and child.served >= limit) or child.state is ChildState.LEAVING:
            self._pool.retire(child)

    def _read_output(self, child: ChildHandle, most: int = _PIPE) -> None:
        """Read what is in a child's pipe, but not all that a task may go on writing into it."""
        left = most
        while left > 0:
            try:
                data = os.read(child.output, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._listening.rest(child, "output", FOREVER)
                return
            left -= len(data)
            anything = False
            try:
                for slot, piece in child.splitter.feed(data):
                    anything = True
                    self._evidence.printed(child, slot, piece)
            except ProtocolError as error:
                self._kill_for_breach(child, error)
                return
            seconds = child.reading.spend(len(data))
            if seconds:
                self._listening.rest(child, "output", seconds)
            elif not anything and not self._listening.rests(child, "output"):
                # Each short task writes a marker; to be woken for every one would cost more than
                # the task.
                self._listening.rest(child, "output", _REST)
            if len(data) < 4096:
                return
