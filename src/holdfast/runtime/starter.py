"""The starter: claimed tasks and free children → start → hand over.

Invariant: a task is handed to a child only after its start is durable.

Works beside the claimer, on a connection of its own: while one batch is being started the next
is being claimed. A store that lets one write at a time has no starter; there the claimer starts
the last batch and claims the next in one transaction.

Failure: a start that raised is undone here; one whose commit may have landed is given back
before anything else is started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.core.outcome import NotBegun
from holdfast.core.records import Answer, Landing
from holdfast.runtime.assignment import Assignment, Finished
from holdfast.runtime.desk import Desk
from holdfast.runtime.doubts import Doubts
from holdfast.runtime.outage import Outage
from holdfast.runtime.pool.member import Member, State
from holdfast.runtime.wire import Run
from holdfast.store import claims
from holdfast.store.claims import Begin
from holdfast.store.op import Key
from holdfast.store.protocol import Store

_LONGEST_WAIT = 1.0


class Starter:
    """A duty: call `tick` from one thread only."""

    name = "starter"

    def __init__(self, store: Store, desk: Desk, outage: Outage, *, hostname: str) -> None:
        self._store = store
        self._desk = desk
        self._outage = outage
        self._hostname = hostname
        self._doubts = Doubts(store, desk, outage)

    def tick(self) -> float:
        """Wait until a claimed task has found a child, then start all that have."""
        if not self._doubts.settle():
            return 0.0
        with self._desk.lock:
            given = self._desk.fit_held() if self._desk.accepting else []
            if not given:
                self._desk.room.wait(_LONGEST_WAIT)
                return 0.0
        try:
            started = self._store.run(claims.start(begins(given), hostname=self._hostname))
        except StoreUnavailable as error:
            self._failed(given, error)
            return 0.0
        self._outage.over()
        with self._desk.lock:
            orders = Orders(self._desk, given, started)
        orders.send()
        return 0.0

    def _failed(self, given: Sequence[Assignment], error: StoreUnavailable) -> None:
        self._outage.noted(error)
        with self._desk.lock:
            tasks = self._desk.put_back(given)
            if not error.commit_unknown:
                self._desk.hold(tasks)
        if error.commit_unknown:
            self._doubts.of_tasks(tasks)
        self._outage.wait()


def begins(given: Iterable[Assignment]) -> list[Begin]:
    """What the store is told of tasks that have found their children."""
    return [
        Begin(task.key, task.token, member.pid or 0, member.name, task.attempt + 1)
        for task, member in [(assignment.task, assignment.member) for assignment in given]
    ]


class Orders:
    """Tasks whose start is durable, on their way to their children."""

    def __init__(
        self,
        desk: Desk,
        given: Iterable[Assignment],
        landings: Mapping[Key, Landing] | None = None,
    ) -> None:
        """Sort them, with the desk's lock held; without landings, they are known as started."""
        self._by_member: dict[Member, list[Assignment]] = defaultdict(list)
        now = monotonic()
        for assignment in given:
            if landings is not None:
                landing = landings[assignment.task.key]
                if landing.answer is not Answer.LANDED:
                    # Cancelled in between, or the lease is gone: there is nothing to run.
                    desk.forget(desk.put_back([assignment]))
                    continue
                assignment.attempt = landing.attempt or 0
                assignment.started = True
            assignment.given_at = assignment.beat_at = now
            if assignment.member.state is State.DEAD:
                desk.ended(Finished(assignment, NotBegun()))
                desk.announce()
            else:
                self._by_member[assignment.member].append(assignment)

    def send(self) -> None:
        """Tell the children; without the lock."""
        for member, given in self._by_member.items():
            member.say(Run([assignment.job() for assignment in given]))
