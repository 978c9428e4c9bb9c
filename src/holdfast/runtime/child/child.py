"""What every child is, whatever its kind: a place for user code, and a link to the supervisor.

Owns what the kinds have in common: the parts of a child, the hearing of the supervisor, hooks
without a run of their own, and the repair of what careless code did to the process. A child reads
nothing from stdin and has its output in a pipe; its own descriptors are put where code that closes
low numbers does not reach. How a task's code runs, and how it is ended, is each kind's own.

A thread of the link hears the supervisor while tasks run. A job that was withdrawn and a job that
begins are told apart by who takes it out of `pending` first.

User code may close any descriptor and open another under the same number, so before outcomes are
sent the socket is asked whether it is still the same one. A child that can neither send nor hear
exits. A frame must leave whole: an exception that a signal raises in the middle of a send would
tear it, so while the main thread is sending (`busy`) such an exception is postponed.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from time import monotonic_ns
from typing import Any, NamedTuple, NoReturn, assert_never

from holdfast.core.hooks import WorkerEvent
from holdfast.core.outcome import SnoozeAsked, Why
from holdfast.core.payload.failure import decode_error
from holdfast.runtime.application import Application
from holdfast.runtime.child import hooks, stack_trace
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.child.hooks import HookCall
from holdfast.runtime.child.notes import Notes
from holdfast.runtime.child.process_state import identity, move_high
from holdfast.runtime.child.remote_store import RemoteStore
from holdfast.runtime.child.stdio import StandardStreams, TaskOutput, line_buffer_c
from holdfast.runtime.child.task_run import TaskPlan, TaskRun, event_of
from holdfast.runtime.wire.framing import Reader, frame, marker
from holdfast.runtime.wire.messages import (
    EXIT_BROKEN,
    EXIT_CUT_OFF,
    Cancel,
    Done,
    Fork,
    Hello,
    Job,
    Leave,
    Message,
    Note,
    Rang,
    Reply,
    Run,
    RunReport,
    Said,
    Stack,
    Stacked,
    Tell,
    ToChild,
    Told,
    Waits,
    Where,
    Withdraw,
    Withdrawn,
)
from holdfast.runtime.wire.shared_page import SharedPage
from holdfast.store.callers.home import Home

log = logging.getLogger("holdfast.worker")

_CHUNK = 64 * 1024
_PUT_OFF_US = 10_000_000
_LONGEST = 2000


class SupervisorLink:
    """The socket to the supervisor. Any thread may send; one thread hears."""

    def __init__(self, descriptor: int) -> None:
        self._sock = socket.socket(fileno=descriptor)
        self.descriptor = descriptor
        self._identity = identity(descriptor)
        self._lock = threading.Lock()
        self._main = threading.get_ident()
        self.busy = False
        """Whether the main thread is inside a send."""
        self.postponed: BaseException | None = None
        """What to raise in the main thread when its send is over."""
        self.in_fork = False
        """Whether this process was forked from the child, which alone may send."""
        os.register_at_fork(after_in_child=self._after_fork)

    def send(self, *messages: Message) -> bool:
        """Say it; False in a process that was forked from this one."""
        if self.in_fork:
            return False
        data = b"".join(map(frame, messages))
        main = threading.get_ident() == self._main
        with self._lock:
            if main:
                self.busy = True
            try:
                self._sock.sendall(data)
            except OSError:
                cut_off()
            finally:
                if main:
                    self.busy = False
        if main and self.postponed is not None:
            postponed, self.postponed = self.postponed, None
            raise postponed
        return True

    def check(self) -> None:
        """Exit if the socket is not what it was."""
        if identity(self.descriptor) != self._identity:
            cut_off()

    def listen(self, heard: Callable[[Any], None]) -> None:
        """Pass on what the supervisor says, from a thread of its own, until the process ends."""
        threading.Thread(
            target=self._listen, args=(heard,), name="holdfast-link", daemon=True
        ).start()

    def _listen(self, heard: Callable[[Any], None]) -> None:
        reader = Reader(ToChild)
        buffer = bytearray(_CHUNK)
        view = memoryview(buffer)
        try:
            while True:
                try:
                    size = self._sock.recv_into(buffer)
                except OSError:
                    cut_off()
                if not size:
                    cut_off()
                for message in reader.feed(view[:size]):  # type: ignore[arg-type]
                    heard(message)
        except BaseException:
            log.exception("a child of this worker failed")
            os._exit(EXIT_BROKEN)

    def _after_fork(self) -> None:
        self.in_fork = True
        self._lock = threading.Lock()
        self._sock.close()


def cut_off() -> NoReturn:
    """End this process: nobody can be told anything any more."""
    os._exit(EXIT_CUT_OFF)


class Birth(NamedTuple):
    """What the template gives a new child when it forks it."""

    fork: Fork
    descriptors: Sequence[int]
    """Its socket, its shared page, its output pipe."""
    application: Application
    streams: StandardStreams


class Child:
    """One child, of any kind."""

    ended_slot = 0
    """Of the task that was told to end and has said where it was, if that is known here."""

    def __init__(self, birth: Birth) -> None:
        fork, descriptors, application, streams = birth
        sock, memory, output = map(move_high, descriptors)
        self.fork = fork
        self.application = application
        self.streams = streams
        self.link = SupervisorLink(sock)
        self.page = SharedPage(memory, fork.lanes)
        os.close(memory)
        self.output = output
        self._output_identity = identity(output)
        self.store = RemoteStore(self.link.send, application.store_settings)
        self.notes = Notes(self.link.send)
        self._waits = (0, 0)
        """The slot that waits for other tasks, and for how many of them at a time."""
        limit = application.config.max_payload
        self._plans = {
            task.key: TaskPlan(
                task, limit, hooks.hooks_for(application.hooks, task), application.tracing
            )
            for task in application.tasks
        }
        self.pending: dict[int, Job] = {}
        self._connect_output()
        hooks.tell_supervisor = self._complain

    def run(self) -> int:
        """Work until asked to leave; the exit status."""
        raise NotImplementedError

    # What each kind does about what the supervisor says, in the link's thread.

    def take(self, jobs: list[Job], *, first: bool) -> None:
        """These are to run, before those that have not begun or after; they are among the pending
        ones."""
        raise NotImplementedError

    def take_hooks(self, message: Tell) -> None:
        """These hooks are to run."""
        raise NotImplementedError

    def end(self, slot: int, why: Why, where: str) -> None:
        """A task is to end, and for a time limit that is `where` it was."""
        raise NotImplementedError

    def stack(self, slot: int) -> str:
        """Where the code of a task is; empty if it does not run."""
        raise NotImplementedError

    def leave(self) -> None:
        """What runs is to be finished; then `run` returns."""
        raise NotImplementedError

    def hear(self, message: ToChild) -> None:
        """The supervisor has said something."""
        match message:
            case Run(jobs, first):
                for job in jobs:
                    self.pending[job.slot] = job
                self.take(jobs, first=first)
            case Withdraw(slots):
                self.withdraw(slots)
            case Cancel(slot, why):
                where = self.stack(slot) if why in stack_trace.TIME_LIMITS else ""
                # In case that its code is out of reach, and must be killed. A signal that was
                # quicker has seen better where the code was.
                if where and self.ended_slot != slot:
                    self.link.send(Where(slot, where))
                self.end(slot, why, where)
            case Stack(ticket, slot):
                self.link.send(Stacked(ticket, self.stack(slot)))
            case Reply():
                self.store.answered(message)
            case Rang():
                self.store.rang(message)
            case Tell():
                self.take_hooks(message)
            case Leave():
                self.withdraw(list(self.pending))
                self.leave()
            case _:
                assert_never(message)

    def withdraw(self, slots: list[int]) -> None:
        """Give back those of these tasks that have not begun."""
        taken = [slot for slot in slots if self.pending.pop(slot, None) is not None]
        self.link.send(Withdrawn(taken))

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

    def plan(self, job: Job) -> TaskPlan | None:
        """How to run a job; None if it is given back, for a while and at no cost.

        The manifest named its task, but a child that was spawned has imported the application
        again, perhaps in the middle of a deploy: then there may be no such task here.
        """
        plan = self._plans.get((job.name, job.version))
        if plan is None:
            log.error(
                "task %s version %d is not in the application that this child has imported: "
                "restart the worker after a deploy",
                job.name,
                job.version,
            )
            self.link.send(Done([RunReport(job.slot, SnoozeAsked(_PUT_OFF_US))]))
        return plan

    def flush_streams(self) -> None:
        """Write what is held back of the output; nearly always nothing is."""
        streams = self.streams
        if streams.out.held or streams.err.held:
            streams.flush()

    def mark(self, slot: int) -> None:
        """What is written to the pipe from now on belongs to this slot."""
        try:
            # The cheapest look there is; `repair` sees what else may stand in their place.
            os.get_inheritable(1)
            os.get_inheritable(2)
        except OSError:
            self.repair()
        os.write(self.output, marker(self.fork.nonce, slot))

    def repair(self) -> None:
        """Undo what careless code did to what all tasks of this process share."""
        self.link.check()
        for descriptor in (1, 2):
            if identity(descriptor) != self._output_identity:
                os.dup2(self.output, descriptor)

    def told(self, message: Tell) -> list[HookCall]:
        """The hooks that a `Tell` wants called."""
        job = message.job
        if job is None:
            return self.worker_hooks(*message.hooks)
        plan = self._plans.get((job.name, job.version))
        functions = (plan.hooks if plan is not None else None) or {}
        error = None if message.error is None else decode_error(message.error)
        delay = None if message.delay_us is None else message.delay_us / 1e6
        return [
            (functions[name], event_of(job, name, error=error, delay=delay))
            for name in message.hooks
            if name in functions
        ]

    def worker_hooks(self, *names: str) -> list[HookCall]:
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
        hooks.call(self.told(message))
        self.link.send(Told(message.ticket))

    def say_ready(self) -> None:
        """Say that tasks may come."""
        hooks.call(self.worker_hooks("child_started"))
        self.link.send(Hello())

    def call_hooks(self, calls: Iterable[HookCall]) -> None:
        """Call the hooks of a run, which are not those of a process that its code has forked."""
        for call in calls:
            if not self.link.in_fork:
                hooks.call([call])

    def exit_fork(self) -> NoReturn:
        """End a process that a task's code has forked, and that has come back out of it."""
        self.streams.flush()
        os._exit(0)

    def _connect_output(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.streams.flush()
        for descriptor in (1, 2):
            os.dup2(self.output, descriptor)
        self.mark(0)
        line_buffer_c()


class LaneRun(TaskRun):
    """A run in a child that has several at a time: it has a lane, and its output has a way."""

    __slots__ = ("_begun_ns", "child", "lane")

    def __init__(self, child: Child, plan: TaskPlan, job: Job, lane: int) -> None:
        self.child = child
        self.lane = lane
        self._begun_ns = monotonic_ns()
        child.page.begin(lane, job.slot, self._begun_ns)
        super().__init__(plan, job, TaskContext(child, plan.definition, job, self._begun_ns))
        if plan.is_captured:
            self.context.output = TaskOutput(child.link.send, job.slot)

    def settle(self) -> RunReport:
        """The run has ended: send what is left of its notes and output; what to report."""
        run_ns = monotonic_ns() - self._begun_ns
        self.child.notes.settle(self.job.slot)
        if self.context.output is not None:
            self.context.output.settle()
        return self.report(run_ns)
