"""Rows that cannot be written now: held by another transaction, or refused by the store.

*Held*: owns since when each has been held, and when to say so: after some seconds, then once a
minute. Those who meet a held row tell it here, and tell it again when the row was free; they do not
wait meanwhile.

*Refused*: owns the keys to pass over. A row that somebody wrote by hand may break a constraint that
every change of it breaks again, or a trigger of somebody's may refuse it: whatever batch it is in
fails as a whole. Once found it is named in the log and passed over by this worker, and the batch
succeeds without it. It stays in the store as it is, for an operator to correct or delete.

Whether it was corrected, or the trigger was, nobody tells us. So it is tried again after half a
minute, and then ever less often: one that is still refused costs its batch one more round. The
number is bounded: past it the oldest is forgotten, and found again when it is met. Each is named
once, and not more than a bounded number of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal, TypeAlias

from holdfast.core.pause import growing
from holdfast.core.text import one_line
from holdfast.store import rows
from holdfast.store.op import Key

log = logging.getLogger("holdfast.worker")

SAY_AFTER = 5.0
_SAY_EVERY = 60.0
_FORGET_AFTER = 10.0
"""Of a row that nobody has met for so long nothing is said any more."""

Kind: TypeAlias = Literal["task", "lease", "unique key", "table"]


@dataclass(slots=True)
class HeldRow:
    """A row that another transaction holds."""

    kind: Kind
    key: bytes
    """The id of a task, the token of a lease."""
    label: str
    since: float
    met_at: float
    say_at: float


class HeldRows:
    """Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[Kind, bytes], HeldRow] = {}
        self.has_any = False
        """Whether any row is known to be held; ask it before `free`, which is seldom needed."""

    def held(self, kind: Kind, key: bytes, label: str) -> None:
        """Another transaction holds a table, or this row: a task (id), a lease (token) or a key."""
        now = monotonic()
        with self._lock:
            known = self._held.get((kind, key))
            if known is not None:
                known.met_at = now
                return
            self._held[kind, key] = HeldRow(kind, key, label, now, now, now + SAY_AFTER)
            self.has_any = True

    def free(self, kind: Kind, keys: Iterable[bytes]) -> None:
        """These rows could be written, or need not be any more."""
        with self._lock:
            for key in keys:
                self._held.pop((kind, key), None)
            self.has_any = bool(self._held)

    def due(self) -> list[HeldRow]:
        """What is to be said now."""
        now = monotonic()
        with self._lock:
            for key in [k for k, row in self._held.items() if now - row.met_at > _FORGET_AFTER]:
                del self._held[key]
            self.has_any = bool(self._held)
            found = [row for row in self._held.values() if row.say_at <= now]
            for row in found:
                row.say_at = now + _SAY_EVERY
        return found

    @property
    def until_due(self) -> float:
        """Seconds until there is something to say; infinite if nothing is held."""
        with self._lock:
            first = min((row.say_at for row in self._held.values()), default=inf)
        return max(0.0, first - monotonic())


MOST = 1_000
FIRST_S = 30.0
LONGEST_S = 3600.0


class RefusedRows:
    """Shared by all duties (any thread)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, tuple[int, float]] = {}
        """How often each has been tried again, and until when it is passed over (monotonic)."""
        self.has_any = False
        """Whether any row has been refused; if not, there are no keys to ask for."""
        self._snapshot: Sequence[Key] = ()
        self._outdated_at = inf
        self._said: set[Key] = set()

    @property
    def keys(self) -> Sequence[Key]:
        """Those to pass over; the same object as long as they are the same."""
        if monotonic() >= self._outdated_at:
            with self._lock:
                self._look()
        return self._snapshot

    def add(self, key: Key, error: Exception, doing: str) -> None:
        """Pass a row over for a while."""
        with self._lock:
            is_said = key in self._said or len(self._said) > MOST
            if not is_said:
                self._said.add(key)
            was_last = not is_said and len(self._said) > MOST
            tries = self._entries.pop(key, (-1, 0.0))[0] + 1
            self._entries[key] = tries, monotonic() + growing(FIRST_S, tries, LONGEST_S)
            self.has_any = True
            if len(self._entries) > MOST:
                del self._entries[next(iter(self._entries))]
            self._look()
        if was_last:
            log.error(
                "INVALID_ROW: more than %d task rows were set aside; no further ones are named "
                "here (`holdfast tasks list` shows them)",
                MOST,
            )
        elif not is_said:
            log.error(
                "INVALID_ROW: task row %s is set aside, because the store refuses to %s it: %s; "
                "correct or delete it (`holdfast tasks delete --unreadable %s`)",
                one_line(rows.named(key), 100),
                doing,
                one_line(str(error), 300),
                one_line(rows.named(key), 100),
            )

    def _look(self) -> None:
        now = monotonic()
        waiting = {key: until for key, (_, until) in self._entries.items() if until > now}
        self._snapshot = tuple(waiting)
        self._outdated_at = min(waiting.values(), default=inf)
