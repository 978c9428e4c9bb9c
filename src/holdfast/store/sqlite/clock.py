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

from holdfast.store import fork
from holdfast.store.sqlite.drivers.driver import Connection

_SECOND = 1_000_000
_WORTH_A_WARNING = 60 * _SECOND
_FARTHEST = 100 * 366 * 86_400 * _SECOND
_log = logging.getLogger("holdfast.store.sqlite")

_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_meta' AND type = 'table'"
_STORE = """
    INSERT INTO holdfast_meta (name, at) VALUES ('clock', ?1)
    ON CONFLICT (name) DO UPDATE SET at = CASE
        WHEN at BETWEEN excluded.at AND excluded.at + ?2 THEN at ELSE excluded.at
    END
    RETURNING at
"""
_READ = "SELECT at FROM holdfast_meta WHERE name = 'clock'"


class Clock:
    """Microseconds since 1970 UTC that never go back. Thread-safe."""

    def __init__(self, machine: Callable[[], int] | None = None) -> None:
        self._machine = machine or _machine
        self._mutex = threading.Lock()
        self._latest = 0
        self._looked_at = float("-inf")
        self._stored = -_SECOND
        self._has_place = False
        self._warned = False
        fork.inherit(self)

    def now(self) -> int:
        read = self._machine()
        with self._mutex:
            if read > self._latest:
                self._latest = read
            return self._latest

    def begin(self, connection: Connection) -> int:
        """The time of a write transaction, not before what others have stored.

        They are asked about once a second: by the clock itself, and by real time for when
        the clock stands still.
        """
        now = self.now()
        real = time.monotonic()
        if now - self._stored < _SECOND and real - self._looked_at < 1.0:
            return now
        self._looked_at = real
        self.recall(connection)
        return self.now()

    def end(self, connection: Connection, now: int) -> None:
        """Store the time of a transaction that has written, if the last one is a second old.

        Only then: a worker that asks for tasks and finds none must not write to the disk.
        """
        if now - self._stored >= _SECOND and self._has_place:
            ((self._stored,),) = connection.execute(_STORE, (now, _FARTHEST))

    def recall(self, connection: Connection) -> None:
        """Learn the time that others have stored."""
        # The table is absent before the first migration, and in a file that was replaced.
        self._has_place = bool(connection.execute(_EXISTS))
        if self._has_place:
            for (stored,) in connection.execute(_READ):
                self._stored = self._believable(stored or 0)
                with self._mutex:
                    self._latest = max(self._latest, self._stored)
                self._warn()

    def _believable(self, stored: int) -> int:
        """A time that some machine's clock has shown; one further ahead was written by hand.

        It is not followed, or time would stand still for years, and it is written over.
        """
        if stored - self._machine() <= _FARTHEST:
            return stored
        if not self._warned:
            self._warned = True
            _log.error(
                "the time stored in the database (%d µs) is a century ahead of the machine's "
                "clock: it is not believed, and is replaced",
                stored,
            )
        return 0

    def after_fork(self) -> None:
        self._mutex = threading.Lock()

    def _warn(self) -> None:
        behind = self._stored - self._machine()
        if behind > _WORTH_A_WARNING and not self._warned:
            self._warned = True
            _log.warning(
                "the machine's clock is %d s behind the last time stored in the database, so "
                "time stands still for that long; if the stored time is the wrong one, stop all "
                "processes and DELETE FROM holdfast_meta WHERE name = 'clock'",
                behind // _SECOND,
            )


def _machine() -> int:
    return time.time_ns() // 1_000
