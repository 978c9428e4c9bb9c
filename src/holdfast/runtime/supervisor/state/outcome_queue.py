"""Ended runs on their way to the store.

Owns the order in which they are written: those that ended first come first. One whose row is held
by another open transaction is set aside and tried again, soon, then less often, at least once a
second; nothing waits for it.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from msgspec import Struct

from holdfast.core.outcome import Outcome
from holdfast.core.pause import growing
from holdfast.core.records import NO_USAGE, ClaimedTask, Usage
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.store.op import Key
from holdfast.store.verbs.evidence import LogPart, TaskNote

T = TypeVar("T")

_FIRST = 0.1
_LONGEST = 1.0
_LATER = 0.05


class Finished(Struct, frozen=True, gc=False):
    """A run that has ended and is not yet written."""

    assignment: Assignment
    outcome: Outcome
    usage: Usage = NO_USAGE
    run_us: int = 0
    note: TaskNote | None = None
    printed: LogPart | None = None
    orphaned: bool = False
    """Its child is dead, and has run no hook about it."""
    committed: bool = False
    """The code completed itself in its own transaction (`complete_in`); the row tells."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    item: T
    tries: int
    due_at: float


class SetAside(Generic[T]):
    """Items whose rows another transaction holds, by key, and when each is tried again.

    One that is being tried stays until it is `settled`.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry[T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter([entry.item for entry in self._entries.values()])

    def add(self, key: Hashable, item: T) -> None:
        """It is held, or still held: try it again later."""
        before = self._entries.get(key)
        tries = 1 if before is None else before.tries + 1
        longest = growing(_FIRST, tries - 1, _LONGEST)
        due_at = monotonic() + random.uniform(longest / 2, longest)
        self._entries[key] = _Entry(item, tries, due_at)

    def due(self) -> list[T]:
        """What is to be tried now; `add` or `settled` follows for each."""
        now = monotonic()
        found = [entry for entry in self._entries.values() if entry.due_at <= now]
        for entry in found:
            entry.due_at = inf
        return [entry.item for entry in found]

    def settled(self, key: Hashable) -> None:
        """It has been written, or need not be any more."""
        self._entries.pop(key, None)

    @property
    def until_due(self) -> float:
        """Seconds until something is to be tried; infinite if nothing is."""
        first = min((entry.due_at for entry in self._entries.values()), default=inf)
        return max(0.0, first - monotonic())


class OutcomeQueue:
    """Any thread adds, the finisher takes. Shares the ledger's lock; its methods take it."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._changed = threading.Condition(lock)
        self._waiting: deque[Finished] = deque()
        self._writing: Sequence[Finished] = ()
        self._aside: SetAside[Finished] = SetAside()
        """Those whose rows another transaction holds."""
        self._totals: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many wait to be written, not counting those that are set aside."""
        return len(self._waiting)

    def add(self, finished: Iterable[Finished], *, wakes: bool = True) -> None:
        """Runs have ended; without `wakes`, `wake` follows."""
        with self._lock:
            self._waiting.extend(finished)
            if wakes:
                self._changed.notify()

    def take(self, most: int, patience: float) -> tuple[list[Finished], list[Finished]]:
        """What has ended, after a wait if nothing has; and what was set aside and is due again."""
        with self._lock:
            self._writing = ()
            if not self._waiting:
                self._changed.wait(min(patience, self._aside.until_due))
            batch = list(islice(self._waiting, most))
            # New claims may go ahead while this is being written.
            for _ in batch:
                self._waiting.popleft()
            self._writing = batch
            return batch, self._aside.due() if self._aside else []

    def put_back(self, batch: Sequence[Finished]) -> None:
        """The store is away: these come first when it is back."""
        with self._lock:
            self.settled(done.assignment.task for done in batch)
            self._waiting.extendleft(reversed(batch))

    def put_off(self, batch: Iterable[Finished]) -> None:
        """Something has to happen before these can be written: a moment's patience."""
        with self._lock:
            self._waiting.extend(batch)
            self._changed.wait(_LATER)

    def set_aside(self, batch: Iterable[Finished]) -> None:
        """Another transaction holds the rows of these."""
        with self._lock:
            for done in batch:
                task = done.assignment.task
                self._aside.add((task.key, task.token), done)

    def settled(self, tasks: Iterable[ClaimedTask]) -> None:
        """These are written, or need not be any more."""
        with self._lock:
            if self._aside:
                for task in tasks:
                    self._aside.settled((task.key, task.token))

    def wake(self) -> None:
        """End the wait of whoever takes."""
        with self._lock:
            self._changed.notify_all()

    def count(self, ended: Mapping[str, int]) -> None:
        """So many more runs have ended in these ways, durably."""
        with self._lock:
            self._totals.update(ended)

    def totals(self) -> Counter[str]:
        """How many runs have ended in which way, since the worker started."""
        with self._lock:
            return self._totals.copy()

    @property
    def number_aside(self) -> int:
        """How many are set aside."""
        return len(self._aside)

    @property
    def is_writing(self) -> bool:
        """Whether some wait to be written, or are being written."""
        return bool(self._waiting or self._writing)

    def keys(self) -> set[Key]:
        """The keys of all that is not known to be written."""
        with self._lock:
            every = (*self._waiting, *self._writing, *self._aside)
            return {done.assignment.task.key for done in every}
