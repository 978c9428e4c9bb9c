"""Rows that are passed over, because the store refuses to have them written.

Owns their keys. A row that somebody wrote by hand may break a constraint that every change of it
breaks again: whatever batch it is in fails as a whole. Once found it is named in the log and passed
over by this worker from then on, and the batch succeeds without it. It stays in the store as it is,
for an operator to correct or delete.

The number is bounded: past it the oldest is forgotten, and found again when it is met.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from holdfast.core.text import one_line
from holdfast.store import rows
from holdfast.store.op import Key

log = logging.getLogger("holdfast.worker")

MOST = 1_000


class RefusedRows:
    """Shared by all duties (any thread)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[Key, None] = {}
        self._snapshot: Sequence[Key] = ()

    @property
    def keys(self) -> Sequence[Key]:
        """Those to pass over; the same object as long as none is added."""
        return self._snapshot

    def add(self, key: Key, error: Exception, doing: str) -> None:
        """Pass a row over from now on."""
        with self._lock:
            known = key in self._keys
            self._keys[key] = None
            if len(self._keys) > MOST:
                del self._keys[next(iter(self._keys))]
            self._snapshot = tuple(self._keys)
        if not known:
            log.error(
                "INVALID_ROW: task row %s is set aside, because the store refuses to %s it: %s; "
                "correct or delete it (`holdfast tasks delete --unreadable %s`)",
                one_line(rows.named(key), 100),
                doing,
                one_line(str(error), 300),
                one_line(rows.named(key), 100),
            )
