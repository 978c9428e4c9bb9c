"""Locks of our own on a file, beside SQLite's, so that others always see this process in it.

SQLite says that a process is in a file by two locks, for as long as a connection is open: one on
the database, one on the -shm file. The next other process that closes the file and finds no other
in it deletes the WAL; a process that is in it all the same goes on writing there, and all that it
commits is lost. SQLite's are POSIX locks, and there are two ways to lose them:

The program opens and closes the same file, to copy it for example. Then the kernel drops them, and
SQLite does not notice. So we take the same locks once more (`hold`), where the system has locks
that belong to a descriptor (Linux), on descriptors of our own. They conflict with no other process
that may be in the file. They do conflict with the last connection of this process when it wants to
clear up, so they are let go of just before (`release`).

The process forks. A library that had the file open assumes, in the child, that it holds locks which
only the parent holds, and takes no new ones. Our own connections are closed before a fork; those of
the program cannot be, and in a program with threads there is always one. So the child takes the
locks that an open and idle connection has (`hold_inherited`), as POSIX locks, on descriptors that
stay open until it ends: the library's assumption is true again. Closing the inherited connection
drops these locks, and ends that assumption as well. If the parent has closed the file in between,
the child has the old -shm, which no other process has, and would write over the commits of others:
the file is refused in it, to us and to `sqlite3`. (A transaction that was under way in the parent
is not ours to mend: the library in the child says "database is locked".)

Never closes a descriptor while anything else in this process has the file open: that would drop
the very locks.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.store.sqlite.one_library import open_files
from holdfast.store.sqlite.one_library.open_files import Identity

# From os_unix.c: the bytes that a reader of the database locks, the one that whoever has the
# -shm file open does, and the one of a writer.
_SHARED = (0x4000_0002, 510)
_OPEN_SHM = (128, 1)
_WRITE = (120, 1)
_FLOCK = "hhqqi4x"
"""struct flock: type, whence, start, length, and a process id that must be 0."""
_PATIENCE = 2.0
_REMEDY = "close your connections before a fork, or start the process by spawn"


@dataclass(slots=True)
class _Place:
    """The descriptors on one database and its -shm file."""

    database: int
    shm: int | None = None
    is_held: bool = False

    def lock(self, *, hold: bool) -> bool:
        done = _set(self.database, _SHARED, hold=hold) and _set(self.shm, _OPEN_SHM, hold=hold)
        self.is_held = hold and done
        return done


_places: dict[Identity, _Place] = {}


def hold(path: str, file: Identity) -> None:
    """Take the locks on a file in WAL mode that a connection of ours has open, if possible."""
    if sys.platform != "linux":
        return
    try:
        place = _open(path, file)
    except OSError:
        return
    if not place.is_held and not place.lock(hold=True):
        place.lock(hold=False)


def release(file: Identity) -> None:
    """Let go of them."""
    place = _places.get(file)
    if place is not None and place.is_held:
        place.lock(hold=False)


def clear(file: Identity) -> None:
    """Close the descriptors, if nothing else in this process has the file open or is opening it."""
    place = _places.get(file)
    if place is not None and open_files.count(file) == 0:
        del _places[file]
        if place.shm is not None:
            open_files.close(place.shm)
        open_files.close(place.database)


def is_held(file: Identity) -> bool:
    """Whether the locks are held."""
    place = _places.get(file)
    return place is not None and place.is_held


def is_being_written(file: Identity) -> bool | None:
    """Whether any process, this one included, is in a write transaction; None if not known."""
    place = _places.get(file)
    if place is None or place.shm is None or sys.platform != "linux":
        return None
    import fcntl

    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *_WRITE, 0)
    try:
        answer = fcntl.fcntl(place.shm, fcntl.F_OFD_GETLK, asked)
    except OSError:
        return None
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


def forget_in_child() -> None:
    """After a fork, before this process has taken any lock: these are the parent's."""
    _places.clear()
    open_files.close_all()


def hold_inherited(path: str, file: Identity) -> str | None:
    """Take the locks that connections believe in which were open before, perhaps in a parent.

    If this process has opened them itself, it has these locks, and nothing changes. Why the file
    cannot be used in this process, if it cannot.
    """
    if sys.platform == "win32" or not open_files.count(file):
        return None
    if not _has_old(path) and not open_files.count_at(f"{path}-shm"):
        # Not in WAL mode, or not read yet: such a connection believes in no locks, and these
        # would keep others from going over to WAL mode.
        return None
    try:
        _lock_for_good(path, _SHARED)
        _lock_for_good(f"{path}-shm", _OPEN_SHM)
    except FileNotFoundError:
        return _closed(path)
    except OSError as error:
        return f"{path} cannot be locked in this process ({error.strerror}): {_REMEDY}"
    return _closed(path) if _has_old(path) else None


def _open(path: str, file: Identity) -> _Place:
    """The place, with both descriptors; one that is not the right one any more is left open."""
    place = _places.get(file)
    if place is None or open_files.kept(place.database) != file:
        place = _Place(open_files.keep(path))
        _places[open_files.kept(place.database) or file] = place
    if place.shm is None or open_files.kept(place.shm) != open_files.identity(f"{path}-shm"):
        place.is_held = False
        place.shm = open_files.keep(f"{path}-shm")
    return place


def _set(descriptor: int | None, where: tuple[int, int], *, hold: bool) -> bool:
    if descriptor is None or sys.platform != "linux":
        return False
    import fcntl

    kind = fcntl.F_RDLCK if hold else fcntl.F_UNLCK
    wanted = struct.pack(_FLOCK, kind, os.SEEK_SET, *where, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except OSError:
        return False
    return True


def _lock_for_good(path: str, place: tuple[int, int]) -> None:
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
            # Another process has the file exclusively, for a moment.
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
