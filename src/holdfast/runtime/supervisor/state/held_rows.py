"""Rows that other transactions hold, as far as this worker has met them.

Owns since when each has been held, and when to say so: after some seconds, then once a minute.
Those who meet a held row tell it here, and tell it again when the row was free; they do not wait
meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

SAY_AFTER = 5.0
_SAY_EVERY = 60.0
_FORGET_AFTER = 10.0
"""Of a row that nobody has met for so long nothing is said any more."""

Kind: TypeAlias = Literal["task", "lease", "unique key", "table"]


class HeldRow(NamedTuple):
    """A row that has been held for long enough to be spoken of."""

    kind: Kind
    key: bytes
    """The id of a task, the token of a lease."""
    label: str
    seconds: float


@dataclass(slots=True)
class _Held:
    label: str
    since: float
    met_at: float
    say_at: float


class HeldRows:
    """Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[Kind, bytes], _Held] = {}
        self.wake: Callable[[], None] = lambda: None
        """Called when there is something to watch."""

    def held(self, kind: Kind, key: bytes, label: str) -> None:
        """Somebody holds the row of this task (by id), lease (by token) or key, or a table."""
        now = monotonic()
        with self._lock:
            known = self._held.get((kind, key))
            if known is not None:
                known.met_at = now
                return
            self._held[kind, key] = _Held(label, now, now, now + SAY_AFTER)
        self.wake()

    def free(self, kind: Kind, keys: Iterable[bytes]) -> None:
        """These rows could be written, or need not be any more."""
        if not self._held:
            return
        with self._lock:
            for key in keys:
                self._held.pop((kind, key), None)

    def due(self) -> list[HeldRow]:
        """What is to be said now."""
        now = monotonic()
        found: list[HeldRow] = []
        with self._lock:
            for key in [k for k, row in self._held.items() if now - row.met_at > _FORGET_AFTER]:
                del self._held[key]
            for (kind, id), row in self._held.items():
                if row.say_at <= now:
                    row.say_at = now + _SAY_EVERY
                    found.append(HeldRow(kind, id, row.label, now - row.since))
        return found

    @property
    def until_due(self) -> float:
        """Seconds until there is something to say; infinite if nothing is held."""
        with self._lock:
            first = min((row.say_at for row in self._held.values()), default=inf)
        return max(0.0, first - monotonic())
