"""Which files this process has open: as the kernel tells it, and through which SQLite library.

Owns the looking. Opens no file of a database for it, because closing that would drop SQLite's
locks in this process; imports no library, and uses no connection that it finds. The descriptors
of `process_locks` belong to no library, so they are kept here, and not counted.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""Device and inode: what a file is, whatever its name."""

Look: TypeAlias = tuple[int, int, int]
"""Inode, size and time of the last change: what differs if a file was written to."""

_kept: dict[int, Identity] = {}
"""Descriptors of ours that belong to no library, and what they were opened on."""

_LISTS = ("/proc/self/fd", "/dev/fd")


def identity(path: str | bytes | Path) -> Identity:
    """What the file at this path is; raises OSError if there is none."""
    found = os.stat(path)  # noqa: PTH116 - for every connection that this process opens
    return found.st_dev, found.st_ino


def look_at(path: str) -> Look | None:
    """What the file at this path looks like now; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - ten times a second
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def count(file: Identity) -> int | None:
    """How many descriptors of this process are on a file; None where that cannot be told."""
    for folder in _LISTS:
        try:
            numbers = os.listdir(folder)  # noqa: PTH208 - twice a second
        except OSError:
            continue
        return sum(_is(int(number), file) for number in numbers if number.isdecimal())
    return None


def count_at(path: str) -> int | None:
    """How many descriptors of this process are on the file at this path, if there is one."""
    try:
        file = identity(path)
    except OSError:
        return 0
    return count(file)


def is_open(file: Identity) -> bool:
    """Whether any descriptor of this process is on the file (unknown counts as yes)."""
    found = count(file)
    return found is None or found > 0


def keep(path: str) -> int:
    """Open a file for good, and do not count that."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    _kept[descriptor] = _of(descriptor) or (0, 0)
    return descriptor


def kept(descriptor: int) -> Identity | None:
    """What a descriptor was opened on by `keep`; None if the program has closed it since."""
    file = _kept.get(descriptor)
    return file if file is not None and _of(descriptor) == file else None


def close(descriptor: int) -> None:
    """Close what `keep` has opened, but nothing else that has got its number since."""
    is_ours = kept(descriptor) is not None
    _kept.pop(descriptor, None)
    if is_ours:
        os.close(descriptor)


def close_all() -> None:
    """The same for all there are."""
    for descriptor in list(_kept):
        close(descriptor)


def apsw_has(file: Identity, *, or_we: bool = False) -> bool:
    """Whether the program has connections of apsw to a file, other than ours, or also ours."""
    if "apsw" not in sys.modules:
        return False
    from holdfast.store.sqlite.drivers.apsw_driver import open_files

    return any(_leads_to(path, file) for path in open_files(ours=or_we))


def sqlite3_may_have(file: Identity) -> bool:
    """Whether a connection of `sqlite3` may be open to a file that apsw has not open."""
    if "sqlite3" not in sys.modules:
        return False
    # Connections need not be found among the objects: some programs freeze those.
    found = count(file)
    return sqlite3_has_any() if found is None else found > 0


def sqlite3_has_any() -> bool:
    """Whether there are connections of `sqlite3`, to whatever file: they do not say to which."""
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None:
        return False
    # Not isinstance: it reads `__class__`, which can trigger lazy proxies.
    return any(issubclass(type(found), sqlite3.Connection) for found in gc.get_objects())


def _is(descriptor: int, file: Identity) -> bool:
    return _of(descriptor) == file and _kept.get(descriptor) != file


def _of(descriptor: int) -> Identity | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _leads_to(path: str, file: Identity) -> bool:
    try:
        return identity(path) == file
    except (OSError, ValueError):
        return False
