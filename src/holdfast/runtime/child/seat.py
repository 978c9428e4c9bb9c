"""What every child is, whatever its kind: a seat for user code, and a line to the supervisor.

Owns a child's beginning and end. From its birth on it is the leader of a process group of
its own, dies with the supervisor, reads nothing from stdin, and has its output in a pipe; its
own descriptors are put where careless code that closes low numbers does not reach.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import resource
import signal
import threading
import traceback
from collections.abc import Sequence
from typing import NoReturn, Protocol, TypeAlias

from holdfast.core.hooks import Hook, TaskEvent, WorkerEvent
from holdfast.core.outcome import SnoozeAsked
from holdfast.core.payload.failure import decode_error
from holdfast.runtime.application import Application
from holdfast.runtime.child import exit_functions, hooks, ignored_signals, task_run
from holdfast.runtime.child.notes import Notes
from holdfast.runtime.child.remote_store import RemoteStore
from holdfast.runtime.child.stdio import StandardStreams, hurry_c, log_to_stderr
from holdfast.runtime.child.supervisor_link import SupervisorLink, identity
from holdfast.runtime.child.task_run import Plan
from holdfast.runtime.wire.framing import marker
from holdfast.runtime.wire.messages import (
    EXIT_BROKEN,
    EXIT_ENDED,
    EXIT_LEFT,
    Answer,
    Done,
    Fork,
    Hello,
    Job,
    Note,
    Rang,
    RunReport,
    Said,
    Tell,
    Told,
    Waits,
)
from holdfast.runtime.wire.shared_page import SharedPage
from holdfast.store.callers.adoption import Home

Calls: TypeAlias = tuple[Sequence[Hook], TaskEvent | WorkerEvent]

log = logging.getLogger("holdfast.worker")

_PUT_OFF_US = 10_000_000
_EXIT_PATIENCE = 5.0
_LONGEST = 2000
_HIGH = 512
"""From which number on a child keeps its own descriptors, if it may have so many."""


class Seat:
    """The parts of one child."""

    def __init__(
        self,
        fork: Fork,
        descriptors: Sequence[int],
        application: Application,
        streams: StandardStreams,
    ) -> None:
        sock, memory, output = map(_put_high, descriptors)
        self.fork = fork
        self.application = application
        self.streams = streams
        self.link = SupervisorLink(sock)
        self.page = SharedPage(memory, fork.lanes)
        os.close(memory)
        self.output = output
        self._output_identity = identity(output)
        self.store = RemoteStore(self.link, application.store_settings)
        self.notes = Notes(self._send_note)
        self._waits = (0, 0)
        """The slot that waits for other tasks, and for how many of them at a time."""
        limit = application.config.max_payload
        self._plans = {
            task.key: Plan(task, limit, hooks.hooks_for(application.hooks, task))
            for task in application.tasks
        }
        self._connect_output()
        hooks.tell_supervisor = self._complain

    @property
    def home(self) -> Home:
        return self.application.home

    @property
    def max_payload(self) -> int:
        return self.application.config.max_payload

    def note(self, note: Note, /) -> None:
        self.notes.add(note)

    def waits(self, slot: int, waiting: bool, /) -> None:
        # A thread that the code started may wait while the rest of it works.
        if self.fork.kind != "process" or threading.current_thread() is not threading.main_thread():
            return
        # Several coroutines of one task may wait; it waits until the last of them has heard.
        other, count = self._waits
        before = count if other == slot else 0
        after = before + (1 if waiting else -1)
        self._waits = slot, after
        if (before > 0) is not (after > 0):
            self.link.send(Waits(slot, after > 0))

    def _complain(self, text: str) -> None:
        self.link.send(Said(0, text.encode("utf-8", "replace")[:_LONGEST]))

    def _send_note(self, note: Note) -> None:
        self.link.send(note)

    def plan(self, job: Job) -> Plan | None:
        """How to run a job.

        The manifest named its task, but a child that was spawned has imported the application
        again, perhaps in the middle of a deploy: then there may be no such task here.
        """
        return self._plans.get((job.name, job.version))

    def put_off(self, job: Job) -> None:
        """Give back a job whose task is not known here, for a while and at no cost."""
        log.error(
            "task %s version %d is not in the application that this child has imported: "
            "restart the worker after a deploy",
            job.name,
            job.version,
        )
        self.link.send(Done([RunReport(job.slot, SnoozeAsked(_PUT_OFF_US))]))

    def mark(self, slot: int) -> None:
        """What is written to the pipe from now on belongs to this slot."""
        try:
            # The cheapest question there is; what stands in their place is looked at in `mend`.
            os.get_inheritable(1)
            os.get_inheritable(2)
        except OSError:
            self.mend()
        os.write(self.output, marker(self.fork.nonce, slot))

    def mend(self) -> None:
        """Undo what careless code did to what all tasks of this process share."""
        self.link.check()
        for descriptor in (1, 2):
            if identity(descriptor) != self._output_identity:
                os.dup2(self.output, descriptor)

    def told(self, message: Tell) -> list[Calls]:
        """The hooks that a `Tell` wants called."""
        job = message.job
        if job is None:
            return self.worker_hooks(*message.hooks)
        plan = self.plan(job)
        functions = (plan.hooks if plan is not None else None) or {}
        error = None if message.error is None else decode_error(message.error)
        delay = None if message.delay_us is None else message.delay_us / 1e6
        return [
            (functions[name], task_run.event_of(job, name, error=error, delay=delay))
            for name in message.hooks
            if name in functions
        ]

    def worker_hooks(self, *names: str) -> list[Calls]:
        """Hooks of the worker itself, and what to tell them."""
        return [
            (
                self.application.hooks.functions(name),
                WorkerEvent(hook=name, process=self.fork.name, pid=os.getpid()),
            )
            for name in names
        ]

    def tell(self, message: Tell) -> None:
        """Call hooks that have no run of their own here."""
        for functions, event in self.told(message):
            hooks.call(functions, event)
        self.link.send(Told(message.ticket))

    def greet(self) -> None:
        """Say that tasks may come."""
        for functions, event in self.worker_hooks("child_started"):
            hooks.call(functions, event)
        self.hello()

    def call_hooks(self, functions: Sequence[Hook], event: TaskEvent) -> None:
        """Call the hooks of a run, which are not those of a process that its code has forked."""
        if not self.link.severed:
            hooks.call(functions, event)

    def vanish(self) -> NoReturn:
        """End a process that a task's code has forked, and that has come back out of it."""
        self.streams.flush()
        os._exit(0)

    def hello(self) -> None:
        self.link.send(Hello())

    def heard(self, message: Answer | Rang) -> None:
        """What the supervisor says to the store."""
        if isinstance(message, Answer):
            self.store.answered(message)
        else:
            self.store.rang(message)

    def _connect_output(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.streams.flush()
        for descriptor in (1, 2):
            os.dup2(self.output, descriptor)
        self.mark(0)
        hurry_c()


class Kind(Protocol):
    """A kind of child."""

    def __init__(self, seat: Seat) -> None: ...

    def run(self) -> int:
        """Work until asked to leave; the exit status."""
        ...


def live(
    fork: Fork,
    descriptors: Sequence[int],
    application: Application,
    streams: StandardStreams,
) -> NoReturn:
    """Be a child; never returns."""
    status = EXIT_BROKEN
    try:
        try:
            os.setpgid(0, 0)
        except PermissionError:
            pass
        random.seed()
        _settle_signals()
        seat = Seat(fork, descriptors, application, streams)
        application.borrow(seat.store)
        log_to_stderr()
        status = _kind(fork)(seat).run()
        streams.flush()
        if status in (EXIT_LEFT, EXIT_ENDED):
            exit_functions.run(_EXIT_PATIENCE, status)
            streams.flush()
    except BaseException:  # noqa: BLE001 - nothing may return into the template's code
        traceback.print_exc()
        streams.flush()
    finally:
        os._exit(status)


def _kind(fork: Fork) -> type[Kind]:
    match fork.kind:
        case "process":
            from holdfast.runtime.child.process_child import ProcessChild

            return ProcessChild
        case "thread":
            from holdfast.runtime.child.thread_child import ThreadChild

            return ThreadChild
        case "async":
            from holdfast.runtime.child.async_child import AsyncChild

            return AsyncChild


def _settle_signals() -> None:
    ignored_signals.settle()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.register_at_fork(after_in_child=ignored_signals.release)


def _put_high(descriptor: int) -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = _HIGH if limit == resource.RLIM_INFINITY or limit > 2 * _HIGH else limit // 2
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved
