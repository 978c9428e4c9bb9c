"""Writers that take no turns: how we wait for them, and what we say when they are too long.

Owns the sleeping between attempts to begin a transaction while the sqlite3 shell, a
caller's own transaction or another program is writing.
"""

from __future__ import annotations

import random
from time import monotonic, sleep

from holdfast.core.errors import StoreUnavailable
from holdfast.store.sqlite.turns import lock_holder

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.02


class BusyWait:
    """Sleeps a little longer each time, and never twice the same, until a deadline."""

    def __init__(self, path: str, timeout: float, *, for_wal: bool = False) -> None:
        self._path = path
        self._for_wal = for_wal
        self._timeout = timeout
        self._deadline = monotonic() + timeout
        self._pause = _FIRST_PAUSE

    def wait(self) -> None:
        """Sleep before the next attempt; `StoreUnavailable` when the time is up."""
        if monotonic() >= self._deadline:
            raise self._ended()
        sleep(random.uniform(self._pause / 2, self._pause))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _ended(self) -> StoreUnavailable:
        if self._for_wal:
            return StoreUnavailable(
                f"{self._path} could not be put into WAL mode for {self._timeout:g} s, because a "
                "connection of this or another process is in a transaction, perhaps only reading: "
                "end that, then repeat the call (once it is in this mode, readers keep nobody)"
            )
        if lock_holder.is_this_process(self._path):
            return StoreUnavailable(
                f"this process itself is in a write transaction on {self._path}, on another "
                "connection: hand that connection to app.using(...), or commit it first"
            )
        who = lock_holder.of_write_lock(self._path) or "another program"
        return StoreUnavailable(
            f"{who} has been writing to {self._path} for more than {self._timeout:g} s without "
            "a commit: let it end its transaction, then repeat the call"
        )
