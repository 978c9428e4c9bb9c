"""What is set aside: its row is held by somebody's open transaction, and nothing waits for it.

Owns when each is tried again: soon, then less often, at least once a second. Knows since when,
so that somebody can be told.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from holdfast.core.pause import growing

T = TypeVar("T")

_FIRST = 0.1
_LONGEST = 1.0


@dataclass(slots=True)
class _Entry(Generic[T]):
    item: T
    tries: int
    due_at: float


class SetAside(Generic[T]):
    """Things by their keys. One that is being tried again stays until it is `settled`."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry[T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

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
