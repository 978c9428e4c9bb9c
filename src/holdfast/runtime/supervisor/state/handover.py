"""Handover: tasks whose start is durable, on their way to their children.

Invariant: a task is handed to a child only after its start is durable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from time import monotonic

from holdfast.core.outcome import NotBegun
from holdfast.core.records import Answer, Landing
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Run
from holdfast.store.op import Key
from holdfast.store.verbs.claims import Begin


def begins(given: Iterable[Assignment]) -> list[Begin]:
    """What the store is told of tasks that have found their children."""
    return [
        Begin(task.key, task.token, child.pid or 0, child.name, task.attempt + 1)
        for task, child in [(assignment.task, assignment.child) for assignment in given]
    ]


class Handover:
    """Tasks whose start is durable, on their way to their children."""

    def __init__(
        self,
        ledger: Ledger,
        given: Iterable[Assignment],
        landings: Mapping[Key, Landing] | None = None,
    ) -> None:
        """Sort them, with the ledger's lock held; without landings, they are known as started."""
        self._by_child: dict[ChildHandle, list[Assignment]] = defaultdict(list)
        now = monotonic()
        for assignment in given:
            if landings is not None:
                landing = landings[assignment.task.key]
                if landing.answer is not Answer.LANDED:
                    # Cancelled in between, or the lease is gone: there is nothing to run.
                    ledger.forget(ledger.put_back([assignment]))
                    continue
                assignment.attempt = landing.attempt or 0
                assignment.started = True
            assignment.given_at = assignment.beat_at = now
            if assignment.child.state is ChildState.DEAD:
                ledger.ended(Finished(assignment, NotBegun()))
                ledger.announce()
            else:
                self._by_child[assignment.child].append(assignment)

    def send(self) -> None:
        """Tell the children; without the lock."""
        for child, given in self._by_child.items():
            child.say(Run([assignment.job() for assignment in given]))
