"""The store's clock: the larger of the machine's clock and the last time stored.

Owns what `:now` means on SQLite. A clock that was set back must not make time run
backwards for anyone who shares the file: so each process remembers the latest
time it gave out, and about once a second a write transaction leaves it in
`holdfast_meta` and picks up what others left there. While the machine's clock is
behind, time stands still.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from holdfast.store.sqlite import forks
from holdfast.store.sqlite.driver import Connection

_SECOND = 1_000_000
_WORTH_A_WARNING = 60 * _SECOND
_log = logging.getLogger("holdfast.store.sqlite")

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_meta' AND type = 'table'"
_EXCHANGE = """
    INSERT INTO holdfast_meta (name, at) VALUES ('clock', ?1)
    ON CONFLICT (name) DO UPDATE SET at = max(coalesce(at, 0), excluded.at)
    RETURNING at
"""
_READ = "SELECT at FROM holdfast_meta WHERE name = 'clock'"


class Clock:
    """Microseconds since 1970 UTC that never go back. Thread-safe."""

    def __init__(self, machine: Callable[[], int] | None = None) -> None:
        self._machine = machine or _machine
        self._mutex = threading.Lock()
        self._latest = 0
        self._exchanged = -_SECOND
        self._exchanged_real = float("-inf")
        self._stored = False
        forks.join(self)

    def now(self) -> int:
        read = self._machine()
        with self._mutex:
            if read > self._latest:
                self._latest = read
            return self._latest

    def exchange(self, connection: Connection) -> int:
        """Begin a write transaction: the time it has, exchanged with the others' if it is due.

        Due by the clock itself, and by real time for when the clock stands still.
        """
        now = self.now()
        real = time.monotonic()
        if now - self._exchanged < _SECOND and real - self._exchanged_real < 1.0:
            return now
        if not self._has_place(connection):
            return now
        ((stored,),) = connection.execute(_EXCHANGE, (now,))
        self._learn(stored)
        self._exchanged = stored
        self._exchanged_real = real
        return self.now()

    def recall(self, connection: Connection) -> None:
        """Learn the time stored, without writing; at the opening of a file."""
        self._stored = False
        if self._has_place(connection):
            for (stored,) in connection.execute(_READ):
                self._learn(stored or 0)
                self._warn(stored or 0)

    def before_fork(self) -> None:
        """Nothing to close."""

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._mutex = threading.Lock()

    def _has_place(self, connection: Connection) -> bool:
        # Absent only before the first migration.
        self._stored = self._stored or bool(connection.execute(_EXISTS))
        return self._stored

    def _learn(self, stored: int) -> None:
        with self._mutex:
            self._latest = max(self._latest, stored)

    def _warn(self, stored: int) -> None:
        behind = stored - self._machine()
        if behind > _WORTH_A_WARNING:
            _log.warning(
                "the machine's clock is %d s behind the last time stored in the database, so "
                "time stands still for that long; if the stored time is the wrong one, stop all "
                "processes and DELETE FROM holdfast_meta WHERE name = 'clock'",
                behind // _SECOND,
            )


def _machine() -> int:
    return time.time_ns() // 1_000
