"""An async child: hundreds of coroutines in one event loop.

Owns the loop. It runs in the main thread; the supervisor is heard in another, so that a
coroutine that blocks the loop delays its neighbours in this process, and nothing else:
jobs can still be withdrawn, and its stack can be read.

A task is ended by cancelling its coroutine. `CancelledError` that nobody asked for is an
exception of the code like any other, unless a neighbour is behind it (`event_loop`).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial

from holdfast.core.outcome import NEIGHBOUR, Why
from holdfast.runtime.child import event_loop, hooks, stack_trace, task_run
from holdfast.runtime.child.child import Birth, Child, LaneRun
from holdfast.runtime.child.event_loop import LoopSteps, LoopWatch, OwnedTask, TaskMaker
from holdfast.runtime.child.process_state import ProcessState
from holdfast.runtime.child.task_run import TaskPlan
from holdfast.runtime.wire.messages import EXIT_LEFT, Done, Hello, Job, RunReport, Tell, Told

task_run.hide(__file__)


class _Coroutine(LaneRun):
    """One coroutine under way."""

    __slots__ = ("task", "was_at", "why")

    def __init__(self, child: Child, plan: TaskPlan, job: Job, lane: int) -> None:
        super().__init__(child, plan, job, lane)
        self.task: OwnedTask[None] | None = None
        self.why: Why | None = None
        self.was_at: str | None = None

    def was_ended(self, error: BaseException) -> bool:
        """Whether it was cancelled, and not by itself."""
        if not isinstance(error, asyncio.CancelledError):
            return False
        if self.why is not None:
            self.ended(self.why, self.was_at)
        elif self.task is not None and self.task.cancelled_by_neighbour:
            self.outcome = NEIGHBOUR
        else:
            return False
        return True

    def code_ended(self) -> None:
        if self.child.link.in_fork:
            self.child.exit_fork()


class AsyncChild(Child):
    """Everything but what `hear` calls runs in the loop."""

    def __init__(self, birth: Birth) -> None:
        super().__init__(birth)
        self._queue: deque[Job] = deque()
        self._running: dict[int, _Coroutine] = {}
        self._free = list(range(self.fork.lanes))
        self._ended_lanes: set[int] = set()
        self._reports: list[RunReport] = []
        self._leaving = False
        self._plain = contextvars.copy_context()
        self._main = threading.get_ident()
        self._told: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        self._watch: LoopWatch
        self._tasks: TaskMaker
        self._state: ProcessState
        self._has_left = False
        self._failure: BaseException | None = None

    def run(self) -> int:
        """Run jobs until asked to leave."""
        with asyncio.Runner() as runner:
            loop = self._loop = runner.get_loop()
            steps = LoopSteps(self, loop)
            self._tasks = TaskMaker(steps)
            loop.set_task_factory(self._tasks)
            self._watch = LoopWatch(loop, self.page, steps, lambda: bool(self._running))
            start = loop.create_task(self._start())
            start.add_done_callback(self._started)
            # Not as the end of a coroutine: one that waits for it could be found, and cancelled.
            event_loop.run(loop, steps, lambda: self._has_left)
        if self._failure is not None:
            raise self._failure
        return EXIT_LEFT

    async def _start(self) -> None:
        self.streams.route()
        self.link.listen(self.hear)
        await hooks.acall(self.worker_hooks("child_started"))
        self._state = ProcessState()
        self.link.send(Hello())

    def _started(self, start: asyncio.Task[None]) -> None:
        if not start.cancelled() and start.exception() is not None:
            self._failure = start.exception()
            self._leave_loop()

    def _leave_loop(self) -> None:
        self._has_left = True
        self._loop.stop()

    def _accept(self, jobs: Sequence[Job]) -> None:
        self._queue += jobs
        self._fill()

    def _fill(self) -> None:
        while self._free and self._queue:
            job = self._queue.popleft()
            if self.pending.pop(job.slot, None) is None:
                continue
            plan = self.plan(job)
            if plan is not None:
                self._begin(job, plan, self._free.pop())
        if self._leaving and not self._running:
            self._flush()
            self._leave_loop()

    def _begin(self, job: Job, plan: TaskPlan, lane: int) -> None:
        self._ended_lanes.discard(lane)
        run = self._running[job.slot] = _Coroutine(self, plan, job, lane)
        task = run.task = self._tasks.make(
            self._loop, run.aperform(), job.slot, name=job.name, context=self._plain.copy()
        )
        task.add_done_callback(partial(self._finish, run))
        self._watch.begin()

    def _finish(self, run: _Coroutine, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # Before its first step, or in a hook.
            if not run.was_ended(asyncio.CancelledError()):
                run.ended("cancel")
        elif (error := task.exception()) is not None:
            run.raised(error)
        report = run.settle()
        del self._running[report.slot]
        if not self._reports:
            # Those that end in the same turn of the loop leave together.
            self._loop.call_soon(self._flush)
        self._reports.append(report)
        self._ended_lanes.add(run.lane)
        self._free.append(run.lane)
        if not self._running:
            # Only when no task runs: this state is shared by all of them.
            self._state.restore()
            self._state.tidy()
        self._fill()

    def _flush(self) -> None:
        if not self._reports:
            return
        reports, self._reports = self._reports, []
        self.repair()
        self.link.send(Done(reports))
        for lane in self._ended_lanes:
            self.page.end(lane)
        self._ended_lanes.clear()

    def _cancel(self, slot: int, why: Why) -> None:
        run = self._running.get(slot)
        if run is not None and run.task is not None:
            run.why = run.why or why
            run.task.cancel()
        elif slot in self.pending:
            self.withdraw([slot])

    def _tell(self, message: Tell) -> None:
        # Kept: the loop itself holds tasks only weakly.
        task = self._loop.create_task(self._call_told(message))
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def _call_told(self, message: Tell) -> None:
        await hooks.acall(self.told(message))
        self.link.send(Told(message.ticket))

    def _leave(self) -> None:
        self._leaving = True
        self._fill()

    # The link's thread.

    def take(self, jobs: list[Job], *, first: bool) -> None:
        self._loop.call_soon_threadsafe(self._accept, jobs)

    def take_hooks(self, message: Tell) -> None:
        self._loop.call_soon_threadsafe(self._tell, message)

    def leave(self) -> None:
        self._loop.call_soon_threadsafe(self._leave)

    def end(self, slot: int, why: Why, where: str) -> None:
        run = self._running.get(slot)
        if run is not None:
            # At once, for code that asks; the rest when the loop is free.
            run.context.stop()
            run.was_at = where or run.was_at
        self._loop.call_soon_threadsafe(self._cancel, slot, why)

    def stack(self, slot: int) -> str:
        run = self._running.get(slot)
        if run is None or run.task is None:
            return ""
        if asyncio.current_task(self._loop) is run.task:
            return stack_trace.of_thread(self._main)
        return stack_trace.of_coroutine(run.task.get_coro())
