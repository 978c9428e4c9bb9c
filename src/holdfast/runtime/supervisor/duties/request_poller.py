"""Requests: what operators want of running tasks, and of this worker.

Owns the reading of cancel requests and of questions where a task's code is, twice a second, and of
orders to stop, every two seconds. It has a thread of its own because a store that is slow must not
delay a time limit. An order is passed on once; a stronger one that follows is passed on as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor.children.questions import StackQueries
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.protocol import Store
from holdfast.store.verbs import cancel, stack_requests, workers
from holdfast.store.verbs.workers import WorkerOrder

_EVERY = 0.4
_ORDERS_EVERY = 2.0
_NO_ANSWER = (
    "its process does not answer: it is inside C code that holds the interpreter's lock, or stopped"
)
_RUNNING_FOR = 0.2
"""What has only just started is not asked about: it is most likely gone by the next look."""


class RequestPoller:
    """A duty: call `tick` from one thread only."""

    name = "request_poller"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        *,
        stack_queries: StackQueries,
        worker_id: str,
        obey: Callable[[WorkerOrder], None],
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._stack_queries = stack_queries
        self._worker_id = worker_id
        self._obey = obey
        self._obeyed = 0
        self._look_at = 0.0

    def tick(self) -> float:
        """Ask about the worker, and about everything that runs."""
        if monotonic() >= self._look_at and not self._outage.is_on:
            self._look_at = monotonic() + _ORDERS_EVERY
            self._read_order()
        return self._tend_tasks()

    def _read_order(self) -> None:
        try:
            order = self._store.run(workers.read_order(self._worker_id))
        except StoreUnavailable as error:
            self._outage.noted(error)
            return
        if order is not None and order > self._obeyed:
            self._obeyed = order
            self._obey(order)

    def _tend_tasks(self) -> float:
        since = monotonic() - _RUNNING_FOR
        running = {
            assignment.task.id: assignment
            for assignment in self._ledger.assignments()
            if assignment.started and assignment.given_at < since and not assignment.wanted_gone
        }
        if not running or self._outage.is_on:
            return _EVERY
        try:
            wanted = self._store.run(cancel.cancel_requests(list(running)))
            asked = self._store.run(stack_requests.stacks_asked(list(running)))
        except StoreUnavailable as error:
            self._outage.noted(error)
            return _EVERY
        for id in wanted:
            running[id].wanted_gone = True
        self._answer(running, asked)
        return _EVERY

    def _answer(self, running: dict[bytes, Assignment], asked: Sequence[bytes]) -> None:
        for id in asked:
            text = self._stack_queries.ask(running[id]) or _NO_ANSWER
            try:
                self._store.run(stack_requests.answer_stack(id, text))
            except StoreUnavailable as error:
                self._outage.noted(error)
