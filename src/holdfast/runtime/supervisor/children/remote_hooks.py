"""Hooks that no child of their own can run: the worker's, and those of a task whose child died.

Owns the telling. Any ready child will do; a hook that nobody could be told of is logged. It
never changes what becomes of a task.
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
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Job, Tell, Told

log = logging.getLogger("holdfast.worker")


class RemoteHooks:
    """Any thread may tell; answers come from the message loop."""

    def __init__(self, ledger: Ledger, of_worker: Sequence[str]) -> None:
        self._ledger = ledger
        self._of_worker = frozenset(of_worker)
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, tuple[ChildHandle, threading.Event]] = {}

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
        wanted = [name for name in hooks_after(change.verb, status) if name in known]
        if wanted:
            error = None if change.error is None else encode_error(change.error)
            self._tell(wanted, assignment.job(), error, change.delay_us)

    def told(self, child: ChildHandle, message: Told) -> None:
        """A child has run what it was told."""
        with self._lock:
            waiting = self._waiting.get(message.ticket)
            if waiting is None or waiting[0] is not child:
                return
            del self._waiting[message.ticket]
        waiting[1].set()

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
        child = min(ready, key=lambda m: (m.slow, m.load_us, len(m.hand)))
        event = threading.Event()
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            self._waiting[ticket] = child, event
        child.say(Tell(ticket, hooks, job, error, delay_us))
        return event
