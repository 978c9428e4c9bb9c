"""What has to be given back: claims and starts whose commit was not answered, and claimed tasks
whose rows somebody holds.

Invariant: whoever does not know settles that before anything else; until then these tasks are ours
and nobody touches them. What may have landed unseen is given back at no cost. A task whose row is
held by somebody's transaction is set aside and tried again; the rest does not wait for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from holdfast.core.decide import Change
from holdfast.core.errors import StoreUnavailable
from holdfast.core.lifecycle import Verb
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.outcome_queue import SetAside
from holdfast.runtime.supervisor.task_log import named
from holdfast.store.op import Key, at_once
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import leases

log = logging.getLogger("holdfast.worker")

INTERRUPTED = Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)


@dataclass(slots=True, eq=False)
class _Open:
    token: bytes
    tasks: Sequence[ClaimedTask] | None
    """None: whatever the claim took."""


class UnknownCommits:
    """Of one duty: called from its thread only."""

    def __init__(self, store: Store, ledger: Ledger, outage: Outage) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._open: list[_Open] = []
        self._aside: SetAside[_Open] = SetAside()
        self.is_open = False
        """Whether there is anything to give back."""

    def of_claim(self, token: bytes) -> None:
        """Whether this claim took anything is not known."""
        self._open.append(_Open(token, None))
        self.is_open = True

    def of_tasks(self, tasks: Iterable[ClaimedTask]) -> None:
        """What became of these tasks, which were ours, is not known; or they are to go back."""
        by_token: dict[bytes, list[ClaimedTask]] = defaultdict(list)
        for task in tasks:
            by_token[task.token].append(task)
        self._open += [_Open(token, some) for token, some in by_token.items()]
        self.is_open = bool(self._open or self._aside)

    @property
    def until_due(self) -> float:
        """Seconds until something held is to be tried again."""
        return self._aside.until_due

    def settle(self) -> bool:
        """Give back what may have landed unseen; False while the store cannot be asked."""
        self._open += self._aside.due()
        while self._open:
            one = self._open[-1]
            keys = None if one.tasks is None else [task.key for task in one.tasks]
            held: Collection[Key] | None = None
            try:
                done = self._store.run(at_once(leases.give_up(one.token, INTERRUPTED, keys=keys)))
                held = done.held
            except StoreUnavailable as error:
                self._outage.noted(error)
                if not error.locked:
                    self._outage.wait()
                    return False
                # Something that one of them has to write, further away.
                held = keys
            except RowRefused as error:
                log.error(
                    "tasks that this worker does not run cannot be given back: the store refuses "
                    "to have them written (%s); they stay claimed until their lease has run out",
                    one_line(str(error)),
                )
                self._open.pop()
                self._aside.settled(one)
                self._ledger.give_up(one.tasks or ())
                self._ledger.set_held_back(self._held_back())
                continue
            self._outage.over()
            self._open.pop()
            self._settled(one, held)
        self.is_open = bool(self._aside)
        return True

    def _settled(self, one: _Open, held: Collection[Key] | None) -> None:
        """Forget what was given back, and set aside what somebody holds."""
        given_back: list[ClaimedTask] = []
        if one.tasks is not None and held is not None:
            given_back = [task for task in one.tasks if task.key not in held]
            one.tasks = [task for task in one.tasks if task.key in held]
        if held or held is None:
            self._aside.add(one, one)
        else:
            self._aside.settled(one)
        self._ledger.forget(given_back)
        self._ledger.set_held_back(self._held_back())
        self._ledger.held_rows.free("task", (task.id for task in given_back))
        for task in one.tasks or ():
            label = f"the row of {named(task)}, which is to go back,"
            self._ledger.held_rows.held("task", task.id, label)

    def _held_back(self) -> int:
        return sum(len(other.tasks or ()) for other in self._aside)
