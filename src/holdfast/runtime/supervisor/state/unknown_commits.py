"""Unknown commits: claims and starts whose commit was not answered.

Invariant: whoever does not know settles that before anything else; until then these tasks are ours
and nobody touches them. What may have landed unseen is given back at no cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lifecycle import Verb
from holdfast.core.outcome import Change
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.protocol import Store
from holdfast.store.verbs import leases

_INTERRUPTED = Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)


class UnknownCommits:
    """Of one duty: called from its thread only."""

    def __init__(self, store: Store, ledger: Ledger, outage: Outage) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._open: list[tuple[bytes, Sequence[ClaimedTask] | None]] = []

    def of_claim(self, token: bytes) -> None:
        """Whether this claim took anything is not known."""
        self._open.append((token, None))

    def of_tasks(self, tasks: Iterable[ClaimedTask]) -> None:
        """What became of these tasks, which were ours, is not known."""
        by_token: dict[bytes, list[ClaimedTask]] = defaultdict(list)
        for task in tasks:
            by_token[task.token].append(task)
        self._open += by_token.items()

    def settle(self) -> bool:
        """Give back what may have landed unseen; False while the store cannot be asked."""
        while self._open:
            token, tasks = self._open[-1]
            keys = None if tasks is None else [task.key for task in tasks]
            try:
                self._store.run(leases.give_up(token, _INTERRUPTED, keys=keys))
            except StoreUnavailable as error:
                self._outage.noted(error)
                self._outage.wait()
                return False
            self._outage.over()
            self._open.pop()
            if tasks is not None:
                with self._ledger.lock:
                    self._ledger.forget(tasks)
        return True
