"""A program's own connections that a forked child has inherited.

Owns what keeps them from doing harm to ours. SQLite must not be carried across a fork: a library
that had a file open believes, in the child, in locks that only the parent holds. It takes no new
ones then, and the first other process that closes the file finds nobody in it, and deletes the
WAL in which the child writes. Our own connections are closed before a fork. Those of the program
cannot be, and in a program with threads there is always one.

So the locks that an open and idle connection has are taken for the child, on descriptors of their
own which stay open until it ends: what the library believes in is true again. Whoever closes
the inherited connection closes these locks with it, and the belief as well.

In between the parent may have closed the file. Then the child has the old -shm, which nobody
else has, and would write over the commits of others: the file is refused in it, to us and to
`sqlite3`. (A transaction that was under way in the parent is not
ours to mend: the library in the child says "database is locked".)
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from holdfast.store.sqlite.drivers import descriptors
from holdfast.store.sqlite.drivers.descriptors import Identity
from holdfast.store.sqlite.drivers.presence import OPEN_SHM, SHARED

_PATIENCE = 2.0


def hold(path: str, file: Identity) -> str | None:
    """Take the locks that connections believe in which were open before, perhaps in a parent.

    If this process has opened them itself, it has these locks, and nothing changes. Why the file
    cannot be used in this process, if it cannot.
    """
    if sys.platform == "win32" or not descriptors.count(file):
        return None
    if not _has_old(path) and not descriptors.count_at(f"{path}-shm"):
        # Not in WAL mode, or not read yet: such a connection believes in no locks, and these
        # would keep others from going over to WAL mode.
        return None
    try:
        _lock(path, SHARED)
        _lock(f"{path}-shm", OPEN_SHM)
    except FileNotFoundError:
        return _closed(path)
    except OSError as error:
        return f"{path} cannot be locked in this process ({error.strerror}): {_REMEDY}"
    return _closed(path) if _has_old(path) else None


def _lock(path: str, place: tuple[int, int]) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    # Never closed: that would drop every lock of this process on the file.
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    first, length = place
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, length, first)
            return
        except BlockingIOError:
            # Somebody is alone with the file, for a moment.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _has_old(path: str) -> bool:
    """Whether a -shm or -wal file is open that is there no more."""
    gone = {f"{path}-shm (deleted)", f"{path}-wal (deleted)"}
    try:
        return any(_leads(entry) in gone for entry in Path("/proc/self/fd").iterdir())
    except OSError:
        return False


def _leads(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


def _closed(path: str) -> str:
    return (
        f"this process was forked while a connection to {path} was open in its parent, which has "
        f"closed the file since: {_REMEDY}"
    )


_REMEDY = "close your connections before a fork, or start the process by spawn"
