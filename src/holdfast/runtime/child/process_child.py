"""A process child: one task at a time, ended by a signal.

Owns the loop that short tasks spend their time in. Reports are kept back while more tasks
wait, and sent when none does, when `MOST_DELAY_NS` have passed, or before a task that may be
long: a finished task does not wait for one that runs.

SIGTERM means the task that the shared page names, if it is the one that runs; then `EndRun`
is raised in its code, so that its `finally` blocks run, and this process exits after it.

And owns the reading of what a run cost (`Meter`), from the kernel's counters. Reading them takes
longer than a short task, so a run under `SHORT_NS` is charged its own wall time, and its peak is
the one last seen. The kernel keeps the highest memory use of a process forever; it is told to
forget it after a run that needed much, so that the next one is not charged for it. Where that
cannot be told, a peak is known only when it is a new one.
"""

from __future__ import annotations

import contextvars
import os
import resource
import signal
import sys
import threading
from collections import deque
from queue import SimpleQueue
from time import monotonic_ns
from types import FrameType

from holdfast.core.outcome import Why
from holdfast.runtime.child import stack_trace, task_run
from holdfast.runtime.child.child import Birth, Child
from holdfast.runtime.child.context import EndRun, TaskContext
from holdfast.runtime.child.process_state import ProcessState
from holdfast.runtime.child.task_run import TaskRun
from holdfast.runtime.wire.messages import (
    EXIT_ENDED,
    EXIT_LEFT,
    Done,
    Job,
    RunReport,
    Tell,
    Where,
)

MOST_DELAY_NS = 2_000_000
"""How long a finished task may wait for the next ones to finish."""
SHORT_NS = 200_000
_GROWTH_KB = 1024
_SCALE = 1024 if sys.platform == "darwin" else 1

task_run.hide(__file__)


class ProcessChild(Child):
    """Runs one task at a time in its main thread (`run`), and reports their outcomes in batches."""

    def __init__(self, birth: Birth) -> None:
        super().__init__(birth)
        self._inbox: deque[Job | Tell | None] = deque()
        self._urgent: deque[Job] = deque()
        """Jobs that go before all in the inbox."""
        self._bell: SimpleQueue[None] = SimpleQueue()
        """Rings when something has come into an empty inbox."""
        self._context: TaskContext | None = None
        self._stopped = 0
        """The last task that was asked to stop by itself."""
        self._plain = contextvars.copy_context()
        self._meter = Meter()
        self._reports: list[RunReport] = []
        self._oldest_ns = 0
        self._slot = 0
        """Whose code may be ended: not 0 exactly while it runs."""
        self._was_at: str | None = None
        """Where the code was that is being ended, if that is for a time limit."""
        self._signalled: tuple[int, Why] = (0, "cancel")
        """What the last SIGTERM was for, if that was not running: it may be about to."""
        self._marked = 0
        self._state: ProcessState
        self._is_spoiled = False
        """Whether a task left this process in a state that no other should find."""
        self._main = threading.get_ident()

    def run(self) -> int:
        """Run jobs until asked to leave, or until one had to be ended."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        self.link.listen(self.hear)
        self.say_ready()
        self._state = ProcessState()
        inbox, urgent = self._inbox, self._urgent
        while True:
            try:
                work = urgent.popleft() if urgent else inbox.popleft()
            except IndexError:
                self._flush()
                self._bell.get()
                continue
            if isinstance(work, Job):
                if self.pending.pop(work.slot, None) is None:
                    continue
                self._do(work)
                if self.ended_slot:
                    self._flush()
                    return EXIT_ENDED
                if self._is_spoiled:
                    self.withdraw(list(self.pending))
                    self._flush()
                    return EXIT_LEFT
            elif work is None:
                self._flush()
                return EXIT_LEFT
            else:
                self._flush()
                self.tell(work)

    def _do(self, job: Job) -> None:
        slot = job.slot
        plan = self.plan(job)
        if plan is None:
            return
        begun_ns = monotonic_ns()
        if self._reports and (
            plan.mean_ns > MOST_DELAY_NS or begun_ns - self._oldest_ns > MOST_DELAY_NS
        ):
            self._flush()
            begun_ns = monotonic_ns()
        self.flush_streams()
        speaker = slot if plan.is_captured else 0
        if speaker or self._marked:
            self.mark(speaker)
            self._marked = speaker
        self.page.begin(0, slot, begun_ns)
        context = self._context = TaskContext(self, plan.definition, job, begun_ns)
        if self._stopped == slot:
            context.stop()
        run = TaskRun(plan, job, context)
        self._run_code(run)
        run_ns = monotonic_ns() - begun_ns
        if self.link.in_fork:
            # This process was forked by the task's code; the task belongs to its parent.
            self.exit_fork()
        if not self._state.restore():
            self._is_spoiled = True
        if run_ns > SHORT_NS:
            self._state.tidy()
        self._context = None
        if self.notes.slots:
            self.notes.settle(slot)
        plan.learn(run_ns)
        if not self._reports:
            self._oldest_ns = begun_ns + run_ns
        self._reports.append(run.report(run_ns, *self._meter.measure(run_ns)))

    def _run_code(self, run: TaskRun) -> None:
        inside = self._plain.copy()
        slot = run.job.slot
        try:
            self._slot = slot
            if self._signalled[0] == slot:
                self._end_code(*self._signalled)
            inside.run(run.perform, self.call_hooks)
            self._slot = 0
        except EndRun as signalled:
            self._slot = 0
            run.ended(signalled.why, self._was_at)
            if self._was_at is not None:
                self.link.send(Where(slot, self._was_at))
            inside.run(run.after, self.call_hooks)
        except BaseException as error:  # noqa: BLE001 - from a tracer that the code left, say
            self._slot = 0
            run.raised(error)

    def _flush(self) -> None:
        self.flush_streams()
        if not self._reports:
            return
        reports, self._reports = self._reports, []
        self.repair()
        self._state.tidy()
        self.link.send(Done(reports))
        # Not before: until the end of the last task is told, the page must say that it has begun.
        self.page.end(0)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        slot, why = self.page.asked_to_end()
        if slot != self._slot:
            self._signalled = slot, why
        elif slot and slot != self.ended_slot:
            if why in stack_trace.TIME_LIMITS:
                self._was_at = stack_trace.of_frame(frame)
            self._end_code(slot, why)

    def _end_code(self, slot: int, why: Why) -> None:
        self.ended_slot = slot
        if self._context is not None:
            self._context.stop()
        if self.link.busy:
            self.link.postponed = EndRun(why)
            return
        raise EndRun(why)

    def take(self, jobs: list[Job], *, first: bool) -> None:
        (self._urgent if first else self._inbox).extend(jobs)
        self._ring()

    def take_hooks(self, message: Tell) -> None:
        self._inbox.append(message)
        self._ring()

    def leave(self) -> None:
        self._inbox.append(None)
        self._ring()

    def _ring(self) -> None:
        # After it was put in: who takes the ring that is there already will find it.
        if self._bell.empty():
            self._bell.put(None)

    def end(self, slot: int, why: Why, where: str) -> None:
        # The code itself is ended by a signal. Noted first: a context that is made at this moment
        # looks here.
        self._stopped = slot
        context = self._context
        if context is not None and context.slot == slot:
            context.stop()
        elif slot in self.pending:
            self.withdraw([slot])

    def stack(self, slot: int) -> str:
        context = self._context
        if context is None or context.slot != slot:
            return ""
        return stack_trace.of_thread(self._main)


class Meter:
    """Measures run after run."""

    def __init__(self) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._cpu_us = _cpu_us(own) + _cpu_us(children)
        self._children_kb = children.ru_maxrss
        self._forgets = True
        self._reset()

    def measure(self, run_ns: int) -> tuple[int, int | None]:
        """Processor time (µs) and peak memory (KiB) of the run that has just ended."""
        if run_ns < SHORT_NS:
            self._cpu_us += run_ns / 1000
            return run_ns // 1000, self._peak_kb
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_us = _cpu_us(own) + _cpu_us(children)
        spent, self._cpu_us = max(0.0, cpu_us - self._cpu_us), cpu_us
        peak = own.ru_maxrss // _SCALE
        grown = peak > self._floor_kb
        if children.ru_maxrss > self._children_kb:
            # A subprocess of this run was larger than any before it.
            self._children_kb = children.ru_maxrss
            peak, grown = max(peak, children.ru_maxrss // _SCALE), True
        if peak > self._floor_kb + _GROWTH_KB:
            self._reset()
        return round(spent), peak if grown or self._forgets else None

    def _reset(self) -> None:
        self._forgets = self._forgets and _forget_peak()
        self._floor_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _SCALE
        self._peak_kb = self._floor_kb if self._forgets else None


def _forget_peak() -> bool:
    # Opened each time: a descriptor that is kept may be closed by the code, and be another's.
    try:
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, b"5")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _cpu_us(usage: resource.struct_rusage) -> float:
    return (usage.ru_utime + usage.ru_stime) * 1e6
