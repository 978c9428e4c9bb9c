"""A process child: one task at a time, ended by a signal.

Owns the loop that short tasks spend their time in. Outcomes are kept back while more tasks
wait, and sent when none does, when `HOSTAGE_NS` have passed, or before a task that may be
long: a finished task must not be hostage to one that runs.

A thread of the link hears the supervisor while the main thread runs code. A job that was
withdrawn and a job that begins are told apart by who takes it out of `_pending` first.

SIGTERM means the task that the shared page calls doomed, if it is the one that runs; then `EndRun`
is raised in its code, so that its `finally` blocks run, and this process makes room.
"""

from __future__ import annotations

import contextvars
import signal
import threading
from queue import Empty, SimpleQueue
from time import monotonic_ns
from types import FrameType
from typing import Any

from holdfast.core.outcome import Why
from holdfast.runtime.child import stack_trace, task_run
from holdfast.runtime.child.context import EndRun, TaskContext
from holdfast.runtime.child.process_state import ProcessState
from holdfast.runtime.child.seat import Seat
from holdfast.runtime.child.task_run import TaskRun
from holdfast.runtime.child.usage import SHORT_NS, Meter
from holdfast.runtime.wire.messages import (
    EXIT_ENDED,
    EXIT_LEFT,
    Answer,
    Cancel,
    Done,
    Job,
    Leave,
    Rang,
    Run,
    RunReport,
    Stack,
    Stacked,
    Tell,
    Where,
    Withdraw,
    Withdrawn,
)

HOSTAGE_NS = 2_000_000
"""How long a finished task may wait for the next ones to finish."""

task_run.hide(__file__)


class ProcessChild:
    """The main thread runs `run`; the link's thread calls `_heard`."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._inbox: SimpleQueue[list[Job] | Tell | None] = SimpleQueue()
        self._pending: dict[int, Job] = {}
        self._context: TaskContext | None = None
        self._stopped = 0
        """The last task that was asked to stop by itself."""
        self._plain = contextvars.copy_context()
        self._meter = Meter()
        self._reports: list[RunReport] = []
        self._oldest_ns = 0
        self._slot = 0
        """Whose code may be ended: not 0 exactly while it runs."""
        self._ended_slot = 0
        self._was_at: str | None = None
        """Where the code was that is being ended, if that is for a time limit."""
        self._doomed: tuple[int, Why] = (0, "cancel")
        """What the last SIGTERM was for, if that was not running: it may be about to."""
        self._marked = 0
        self._state: ProcessState
        self._is_spoiled = False
        """Whether a task left this process in a state that no other should find."""
        self._main = threading.get_ident()

    def run(self) -> int:
        """Run jobs until asked to leave, or until one had to be ended."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        self._seat.link.hear(self._heard)
        self._seat.greet()
        self._state = ProcessState()
        inbox = self._inbox
        while True:
            try:
                work = inbox.get_nowait()
            except Empty:
                self._flush()
                work = inbox.get()
            if work is None:
                self._flush()
                return EXIT_LEFT
            if isinstance(work, Tell):
                self._flush()
                self._seat.tell(work)
                continue
            for job in work:
                if self._pending.pop(job.slot, None) is not None:
                    self._do(job)
                    if self._ended_slot:
                        self._flush()
                        return EXIT_ENDED
                    if self._is_spoiled:
                        self._withdraw(list(self._pending))
                        self._flush()
                        return EXIT_LEFT

    def _do(self, job: Job) -> None:
        seat, slot = self._seat, job.slot
        plan = seat.plan(job)
        if plan is None:
            seat.put_off(job)
            return
        begun_ns = monotonic_ns()
        if self._reports and (plan.mean_ns > HOSTAGE_NS or begun_ns - self._oldest_ns > HOSTAGE_NS):
            self._flush()
            begun_ns = monotonic_ns()
        seat.streams.flush()
        speaker = slot if plan.is_captured else 0
        if speaker or self._marked:
            seat.mark(speaker)
            self._marked = speaker
        seat.page.begin(0, slot, begun_ns)
        context = self._context = TaskContext(seat, plan.definition, job, begun_ns)
        if self._stopped == slot:
            context.stop()
        run = TaskRun(plan, job, context)
        self._run_code(run)
        run_ns = monotonic_ns() - begun_ns
        if seat.link.severed:
            # The task is not its own.
            seat.vanish()
        if not self._state.restore():
            self._is_spoiled = True
        if run_ns > SHORT_NS:
            self._state.tidy()
        self._context = None
        seat.notes.settle(slot)
        plan.learn(run_ns)
        if not self._reports:
            self._oldest_ns = begun_ns + run_ns
        self._reports.append(run.report(run_ns, *self._meter.measure(run_ns)))

    def _run_code(self, run: TaskRun) -> None:
        inside = self._plain.copy()
        slot = run.job.slot
        try:
            self._slot = slot
            if self._doomed[0] == slot:
                self._end_code(*self._doomed)
            inside.run(run.perform, self._seat.call_hooks)
            self._slot = 0
        except EndRun as signalled:
            self._slot = 0
            run.ended(signalled.why, self._was_at)
            if self._was_at is not None:
                self._seat.link.send(Where(slot, self._was_at))
            inside.run(run.after, self._seat.call_hooks)
        except BaseException as error:  # noqa: BLE001 - from a tracer that the code left, say
            self._slot = 0
            run.raised(error)

    def _flush(self) -> None:
        seat = self._seat
        seat.streams.flush()
        if not self._reports:
            return
        reports, self._reports = self._reports, []
        seat.mend()
        self._state.tidy()
        seat.link.send(Done(reports))
        # Not before: the last task has begun, as far as anybody knows, until its end is told.
        seat.page.end(0)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        doomed, why = self._seat.page.doomed()
        if doomed != self._slot:
            self._doomed = doomed, why
        elif doomed and doomed != self._ended_slot:
            if why in stack_trace.TIME_LIMITS:
                self._was_at = stack_trace.of_frame(frame)
            self._end_code(doomed, why)

    def _end_code(self, slot: int, why: Why) -> None:
        self._ended_slot = slot
        if self._context is not None:
            self._context.stop()
        if self._seat.link.busy:
            self._seat.link.postponed = EndRun(why)
            return
        raise EndRun(why)

    # The link's thread.

    def _heard(self, message: Any) -> None:
        match message:
            case Run(jobs):
                for job in jobs:
                    self._pending[job.slot] = job
                self._inbox.put(jobs)
            case Withdraw(slots):
                self._withdraw(slots)
            case Cancel(slot, why):
                where = self._stack(slot) if why in stack_trace.TIME_LIMITS else ""
                # In case that its code is out of reach of signals, and must be killed. If the
                # signal was quicker, it has seen better where the code was.
                if where and self._ended_slot != slot:
                    self._seat.link.send(Where(slot, where))
                self._stop(slot)
            case Stack(ticket, slot):
                self._seat.link.send(Stacked(ticket, self._stack(slot)))
            case Answer() | Rang():
                self._seat.heard(message)
            case Tell():
                self._inbox.put(message)
            case Leave():
                self._withdraw(list(self._pending))
                self._inbox.put(None)

    def _stop(self, slot: int) -> None:
        # Noted first: a context that is made at this moment looks here.
        self._stopped = slot
        context = self._context
        if context is not None and context.slot == slot:
            context.stop()
        elif slot in self._pending:
            self._withdraw([slot])

    def _withdraw(self, slots: list[int]) -> None:
        taken = [slot for slot in slots if self._pending.pop(slot, None) is not None]
        self._seat.link.send(Withdrawn(taken))

    def _stack(self, slot: int) -> str:
        context = self._context
        if context is None or context.slot != slot:
            return ""
        return stack_trace.of_thread(self._main)
