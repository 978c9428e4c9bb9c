"""Hooks that no child of their own can run: the worker's, and those of a task whose child died.

Owns the telling. Any ready child will do; a hook that nobody could be told of is logged. It
never changes what becomes of a task.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from holdfast.core.lifecycle import Verb
from holdfast.core.outcome import Change
from holdfast.core.payload.failure import encode_error
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Job, Tell, Told

log = logging.getLogger("holdfast.worker")

_AFTER = {
    TaskStatus.FAILED: "on_failure",
    TaskStatus.STALLED: "on_failure",
    TaskStatus.CANCELLED: "on_cancel",
    TaskStatus.PENDING: "on_retry",
    TaskStatus.SCHEDULED: "on_retry",
}


class RemoteHooks:
    """Any thread may tell; answers come from the message loop."""

    def __init__(self, ledger: Ledger, of_worker: Sequence[str]) -> None:
        self._ledger = ledger
        self._of_worker = frozenset(of_worker)
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, threading.Event] = {}

    def worker(self, hook: str, patience: float = 0.0) -> None:
        """Run a hook of the worker itself, and wait for it so long."""
        if hook in self._of_worker:
            told = self._tell([hook])
            if told is not None and patience:
                told.wait(patience)

    def orphaned(self, assignment: Assignment, change: Change, status: TaskStatus) -> None:
        """Run the hooks of a task whose child is dead and can run none."""
        if change.verb is Verb.INTERRUPT:
            return
        known = set(self._ledger.hooks_of(assignment.task))
        hook = _AFTER.get(status)
        wanted = [name for name in (hook, "after_finish") if name in known]
        if wanted:
            error = None if change.error is None else encode_error(change.error)
            self._tell(wanted, assignment.job(), error, change.delay_us)

    def told(self, message: Told) -> None:
        """A child has run what it was told."""
        with self._lock:
            event = self._waiting.pop(message.ticket, None)
        if event is not None:
            event.set()

    def _tell(
        self,
        hooks: list[str],
        job: Job | None = None,
        error: str | None = None,
        delay_us: int | None = None,
    ) -> threading.Event | None:
        with self._ledger.lock:
            ready = [m for m in self._ledger.children.values() if m.state is ChildState.READY]
        if not ready:
            log.warning("no child could be told to run the hook(s) %s", ", ".join(hooks))
            return None
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            event = self._waiting[ticket] = threading.Event()
        child = min(ready, key=lambda m: (m.slow, m.load_us, len(m.hand)))
        child.say(Tell(ticket, hooks, job, error, delay_us))
        return event
