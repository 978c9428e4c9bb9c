"""Whether anybody has committed to a database, and when it is worth a look.

Owns what stands behind the doorbell: commits that ring no bell, those of a caller's own
transaction or of another program. `CommitWatch` looks whether there was one. `CommitLooks` says
when: as soon as the kernel tells of a write, and then again until the commit is there (its pages
are written some milliseconds before it counts); where the kernel does not tell, ten times a second.
After a look that has found one the next is made a tenth of a second later, or a busy database would
keep its listeners busy.
"""

from __future__ import annotations

from math import inf
from time import monotonic, time_ns
from typing import Final

from holdfast.store.sqlite import faults
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.file_events import FileEvents
from holdfast.store.sqlite.one_library import open_files

LOOK_SECONDS: Final = 0.1
_FIRST_LOOK: Final = 0.001
_COMMITTED_WITHIN: Final = 1.0
"""Seconds after its last write for which a commit is looked for."""
# A change within the granularity of the filesystem's clock may not show in its time stamp.
_UNSETTLED_NS: Final = 50_000_000


class CommitLooks:
    """When one listener looks next. Belongs to the thread that waits."""

    def __init__(self, path: str) -> None:
        self._events = None if path == faults.MEMORY else FileEvents(wal_of(path))
        self._next: float | None = 0.0
        """When to look; None: when the kernel tells of a write."""
        self._pause = self._until = 0.0
        self._begin(LOOK_SECONDS)

    @property
    def descriptor(self) -> int | None:
        """What to wait for beside the bell; None while looks are made in any case."""
        return None if self._next is not None or self._events is None else self._events.fileno()

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return inf if self._next is None else max(0.0, self._next - monotonic())

    def told(self) -> None:
        """The kernel says that somebody writes."""
        self._begin(_FIRST_LOOK)

    def looked(self, found: bool) -> None:
        """A look was made."""
        now = monotonic()
        if found:
            # Who has committed may do so again at once.
            self._begin(LOOK_SECONDS)
            return
        self._pause = min(2 * self._pause, LOOK_SECONDS)
        self._next = now + self._pause
        if now < self._until or self._events is None:
            return
        if self._events.is_armed:
            self._next = None
        elif self._events.arm():
            # What was written before is not told.
            self._begin(0.0)

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._events is not None:
            self._events.close()

    def _begin(self, pause: float) -> None:
        """Look after this pause, and then until a commit would be there."""
        if self._events is not None:
            # Before the look: of what is written from here on, the kernel tells.
            self._events.swallow()
            self._events.arm()
        now = monotonic()
        self._pause, self._next = max(pause, _FIRST_LOOK), now + pause
        self._until = now + _COMMITTED_WITHIN


class CommitWatch:
    """Tells whether anyone may have committed to a database since it was last asked.

    SQLite is asked only if the WAL was written to since: where the kernel tells nothing, a worker
    that has nothing to do looks ten times a second.
    """

    def __init__(self, path: str, connections: Connections) -> None:
        self._wal_path = None if path == faults.MEMORY else wal_of(path)
        self._connections = connections
        self._last: tuple[open_files.Look | None, object] = (None, None)

    def version(self) -> object:
        """Something that differs from last time if anyone may have; None for one in memory."""
        if self._wal_path is None:
            return None
        wal = open_files.look_at(self._wal_path)
        seen, version = self._last
        if wal is not None and wal == seen and time_ns() - wal[-1] > _UNSETTLED_NS:
            return version
        watcher = self._connections.take_watcher()
        try:
            ((number,),) = watcher.execute("PRAGMA data_version")
        finally:
            self._connections.give_watcher(watcher)
        # Numbers of two connections cannot be compared.
        self._last = wal, (watcher, number)
        return self._last[1]


def wal_of(path: str) -> str:
    """The file that commits are written to."""
    return f"{path}-wal"
