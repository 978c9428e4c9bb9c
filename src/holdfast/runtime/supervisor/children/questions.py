"""What children are asked, and their answers waited for.

Owns the tickets. Where the code of a running task is; and hooks that no child of their own can
run: the worker's, and those of a task whose child died. For these any ready child will do; a hook
that nobody could be told of is logged, and never changes what becomes of a task.

Any thread may ask; answers come from the message loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from holdfast.core.decide import Change
from holdfast.core.hooks import hooks_after
from holdfast.core.lifecycle import Verb
from holdfast.core.payload.failure import encode_error
from holdfast.core.status import TaskStatus
from holdfast.core.text import clean
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Job, KnownTask, Stack, Stacked, Tell, Told

log = logging.getLogger("holdfast.worker")

_LONGEST = 256 * 1024


class _Question:
    """One that is under way."""

    def __init__(self, child: ChildHandle) -> None:
        self.child = child
        self.is_answered = threading.Event()
        self.text: str | None = None


class _Tickets:
    """Questions that are under way, each answered only by the child that it was put to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, _Question] = {}

    def open(self, child: ChildHandle) -> tuple[int, _Question]:
        question = _Question(child)
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            self._waiting[ticket] = question
        return ticket, question

    def close(self, ticket: int) -> None:
        with self._lock:
            self._waiting.pop(ticket, None)

    def answered(self, child: ChildHandle, ticket: int, text: str | None = None) -> None:
        with self._lock:
            question = self._waiting.get(ticket)
            if question is None or question.child is not child:
                return
            del self._waiting[ticket]
        question.text = text
        question.is_answered.set()


class StackQueries:
    """Stacks on demand."""

    def __init__(self) -> None:
        self._tickets = _Tickets()

    def ask(self, assignment: Assignment, patience: float = 2.0) -> str | None:
        """The stack of a running task; None if its child cannot answer now."""
        ticket, question = self._tickets.open(assignment.child)
        try:
            assignment.child.say(Stack(ticket, assignment.slot))
            question.is_answered.wait(patience)
        finally:
            self._tickets.close(ticket)
        return question.text

    def answered(self, child: ChildHandle, message: Stacked) -> None:
        """An answer came in."""
        self._tickets.answered(child, message.ticket, clean(message.text, _LONGEST))


class RemoteHooks:
    """Hooks that any child may run."""

    def __init__(
        self, ledger: Ledger, of_worker: Sequence[str], tasks: Sequence[KnownTask]
    ) -> None:
        self._ledger = ledger
        self._of_worker = frozenset(of_worker)
        self._of_tasks = {(task.name, task.version): task.hooks for task in tasks}
        self._tickets = _Tickets()

    def worker(self, hook: str, patience: float) -> None:
        """Run a hook of the worker itself, and wait for it so long."""
        if hook in self._of_worker:
            told = self._tell([hook])
            if told is not None:
                told.wait(patience)

    def orphaned(self, assignment: Assignment, change: Change, status: TaskStatus) -> None:
        """Run the hooks of a task whose child is dead and can run none."""
        if change.verb is Verb.INTERRUPT:
            return
        task = assignment.task
        known = self._of_tasks.get((task.task_name, task.version), ())
        wanted = [name for name in hooks_after(change.verb, status) if name in known]
        if wanted:
            error = None if change.error is None else encode_error(change.error)
            self._tell(wanted, assignment.job(), error, change.delay_us)

    def told(self, child: ChildHandle, message: Told) -> None:
        """A child has run what it was told."""
        self._tickets.answered(child, message.ticket)

    def _tell(
        self,
        hooks: list[str],
        job: Job | None = None,
        error: str | None = None,
        delay_us: int | None = None,
    ) -> threading.Event | None:
        ready = self._ledger.roster.ready()
        if not ready:
            log.warning("no child could be told to run the hook(s) %s", ", ".join(hooks))
            return None
        child = min(ready, key=lambda m: (m.slow, m.load_us, len(m.hand)))
        ticket, question = self._tickets.open(child)
        child.say(Tell(ticket, hooks, job, error, delay_us))
        return question.is_answered
