"""Rows that are passed over, because the store refuses to have them written.

Owns their keys. A row that somebody wrote by hand may break a constraint that every change of it
breaks again, or a trigger of somebody's may refuse it: whatever batch it is in fails as a whole.
Once found it is named in the log and passed over by this worker, and the batch succeeds without it.
It stays in the store as it is, for an operator to correct or delete.

Whether it was corrected, or the trigger was, nobody tells us. So it is tried again after half a
minute, and then ever less often: one that is still refused costs its batch one more round.

The number is bounded: past it the oldest is forgotten, and found again when it is met. Each is
named once, and not more than a bounded number of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

from holdfast.core.pause import growing
from holdfast.core.text import one_line
from holdfast.store import rows
from holdfast.store.op import Key

log = logging.getLogger("holdfast.worker")

MOST = 1_000
FIRST_S = 30.0
LONGEST_S = 3600.0


@dataclass(slots=True)
class _Entry:
    tries: int
    until: float
    """When it may be tried again (monotonic)."""


class RefusedRows:
    """Shared by all duties (any thread)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, _Entry] = {}
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
            known = self._entries.pop(key, None)
            tries = 0 if known is None else known.tries + 1
            pause = growing(FIRST_S, tries, LONGEST_S)
            self._entries[key] = _Entry(tries, monotonic() + pause)
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
        waiting = {key: entry for key, entry in self._entries.items() if entry.until > now}
        self._snapshot = tuple(waiting)
        self._outdated_at = min((entry.until for entry in waiting.values()), default=inf)
