"""That this process is in a file: said by locks that nothing else in the process can drop.

SQLite says so by two locks of its own for as long as a connection is open: one on the database,
one on the -shm file. They are POSIX locks. When the program opens and closes the same file, to copy
it for example, the kernel drops them, and SQLite does not notice. The next other process that
closes the file then finds nobody in it and deletes the WAL, in which this one goes on writing:
all that it commits is lost.

So we take the same locks once more, where the system has locks that belong to a descriptor
(Linux), on descriptors of our own. They conflict with nobody who may be in the file beside us.
They do conflict with the last connection of this process when it wants to clear up, so they are
let go of just before.

Never closes a descriptor while anything else in this process has the file open: that would drop
the very locks.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass

from holdfast.store.sqlite.drivers import descriptors
from holdfast.store.sqlite.drivers.descriptors import Identity

# From os_unix.c: the bytes that a reader of the database locks, and the one that whoever has the
# -shm file open does.
SHARED = (0x4000_0002, 510)
OPEN_SHM = (128, 1)
_WRITE = (120, 1)
_FLOCK = "hhqqi4x"
"""struct flock: type, whence, start, length, and a process id that must be 0."""


@dataclass(slots=True)
class _Place:
    """The descriptors on one database and its -shm file."""

    database: int
    shm: int | None = None
    is_held: bool = False

    def lock(self, *, hold: bool) -> bool:
        done = _set(self.database, SHARED, hold=hold) and _set(self.shm, OPEN_SHM, hold=hold)
        self.is_held = hold and done
        return done


_places: dict[Identity, _Place] = {}


def hold(path: str, file: Identity) -> None:
    """Take the locks on a file in WAL mode that a connection of ours has open, if possible."""
    if not _can_lock():
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
    if place is not None and descriptors.count(file) == 0:
        del _places[file]
        if place.shm is not None:
            descriptors.close(place.shm)
        descriptors.close(place.database)


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
    descriptors.close_all()


def _open(path: str, file: Identity) -> _Place:
    """The place, with both descriptors; one that is not the right one any more is left open."""
    place = _places.get(file)
    if place is None or descriptors.kept(place.database) != file:
        place = _Place(descriptors.keep(path))
        _places[descriptors.kept(place.database) or file] = place
    if place.shm is None or descriptors.kept(place.shm) != descriptors.identity(f"{path}-shm"):
        place.is_held = False
        place.shm = descriptors.keep(f"{path}-shm")
    return place


def _can_lock() -> bool:
    if sys.platform != "linux":
        return False
    import fcntl

    return hasattr(fcntl, "F_OFD_SETLK")


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
