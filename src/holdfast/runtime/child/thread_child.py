"""A thread child: several tasks at a time, one in each lane.

Owns the lanes. A task is ended by a flag and by `EndRun`, raised at its next line of Python;
code that waits inside C is reached when it comes back. What does not end in time is the
supervisor's business: it lets this process finish the others, and replaces it.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
from queue import SimpleQueue

from holdfast.core.outcome import Why
from holdfast.runtime.child import stack_trace, task_run
from holdfast.runtime.child.child import Birth, Child, LaneRun
from holdfast.runtime.child.context import EndRun, TaskContext
from holdfast.runtime.child.process_state import ProcessState
from holdfast.runtime.child.task_run import TaskRun
from holdfast.runtime.wire.messages import EXIT_LEFT, Done, Job, Tell

task_run.hide(__file__)


class ThreadChild(Child):
    """Lanes take work from one queue."""

    def __init__(self, birth: Birth) -> None:
        super().__init__(birth)
        self.inbox: SimpleQueue[Job | Tell | None] = SimpleQueue()
        self._left = threading.Event()
        self._state: ProcessState
        self._lanes = [_Lane(self, number) for number in range(self.fork.lanes)]

    def run(self) -> int:
        """Run jobs until asked to leave."""
        self.streams.route()
        self.link.listen(self.hear)
        self.say_ready()
        self._state = ProcessState()
        for lane in self._lanes:
            lane.thread.start()
        self._left.wait()
        for lane in self._lanes:
            lane.thread.join()
        return EXIT_LEFT

    def settled(self) -> None:
        """A task has ended in a lane: if none is left, put back what they share."""
        if not any(lane.taken for lane in self._lanes):
            self._state.restore_streams()

    def take(self, jobs: list[Job], *, first: bool) -> None:
        for job in jobs:
            self.inbox.put(job)

    def take_hooks(self, message: Tell) -> None:
        self.inbox.put(message)

    def leave(self) -> None:
        for _ in self._lanes:
            self.inbox.put(None)
        self._left.set()

    def end(self, slot: int, why: Why, where: str) -> None:
        if slot in self.pending:
            self.withdraw([slot])
        for lane in self._lanes:
            lane.end(slot, why, where)

    def stack(self, slot: int) -> str:
        for lane in self._lanes:
            if lane.slot == slot and lane.thread.ident is not None:
                return stack_trace.of_thread(lane.thread.ident)
        return ""


class _Lane:
    """One thread that runs one task at a time."""

    def __init__(self, child: ThreadChild, number: int) -> None:
        self._child = child
        self._number = number
        self._lock = threading.Lock()
        self._context: TaskContext | None = None
        self._why: Why | None = None
        self._was_at: str | None = None
        self.taken = 0
        """Whose turn it is, from before it leaves the pending ones until it has ended."""
        self.slot = 0
        """Whose code may be ended: not 0 exactly while it runs."""
        self.thread = threading.Thread(
            target=self._run, name=f"holdfast-lane-{number}", daemon=True
        )

    def end(self, slot: int, why: Why, where: str = "") -> None:
        """Have the code of this slot ended, if it runs here (the link's thread)."""
        with self._lock:
            if self.taken != slot or self._why is not None:
                return
            self._why, self._was_at = why, where or None
            if self._context is not None:
                self._context.stop()
            if self.slot == slot:
                _throw(self.thread, EndRun)

    def _run(self) -> None:
        while True:
            work = self._child.inbox.get()
            if work is None:
                return
            if isinstance(work, Tell):
                self._child.tell(work)
                continue
            with self._lock:
                self.taken, self._why = work.slot, None
            if self._child.pending.pop(work.slot, None) is not None:
                self._do(work)
            self.taken = 0
            self._child.settled()

    def _do(self, job: Job) -> None:
        child = self._child
        plan = child.plan(job)
        if plan is None:
            return
        run = LaneRun(child, plan, job, self._number)
        self._run_code(run)
        if child.link.in_fork:
            # This process was forked by the task's code; the task belongs to its parent.
            child.exit_fork()
        child.link.send(Done([run.settle()]))
        child.page.end(self._number)

    def _run_code(self, run: TaskRun) -> None:
        inside = contextvars.copy_context()
        is_ended = True
        try:
            if self._open(run.context):
                inside.run(run.perform, self._child.call_hooks)
                is_ended = False
            self._shut()
        except EndRun:
            self._shut()
        except BaseException as error:  # noqa: BLE001 - from a tracer that the code left, say
            is_ended = False
            self._shut()
            run.raised(error)
        if is_ended:
            run.ended(self._why or "cancel", self._was_at)
            inside.run(run.after, self._child.call_hooks)

    def _open(self, context: TaskContext) -> bool:
        """From here on the code may be ended; False if it was to end before it began."""
        with self._lock:
            if self._why is not None:
                return False
            self._context = context
            self.slot = context.slot
            return True

    def _shut(self) -> None:
        """No `EndRun` is raised in this thread any more; a pending one is swallowed."""
        try:
            with self._lock:
                self.slot = 0
                self._context = None
                if self._why is not None:
                    _throw(self.thread, None)
        except EndRun:
            self.slot = 0


def _throw(thread: threading.Thread, what: type[BaseException] | None) -> None:
    """Raise an exception in another thread at its next line; None takes it back."""
    thrown = ctypes.py_object(what) if what is not None else ctypes.c_void_p(None)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), thrown)
