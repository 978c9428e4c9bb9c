"""Which files this process has open, as the kernel tells it.

Owns the reading of the process's own descriptors, where the system shows them, and those of
`presence`, which are not counted. Looking opens no file of a database: closing it would drop
SQLite's locks in this process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""Device and inode: what a file is, whatever its name."""

_kept: dict[int, Identity] = {}
"""Descriptors of ours that belong to no library, and what they were opened on."""

_LISTS = ("/proc/self/fd", "/dev/fd")


def identity(path: str | bytes | Path) -> Identity:
    """What the file at this path is; raises OSError if there is none."""
    found = os.stat(path)  # noqa: PTH116 - for every connection that this process opens
    return found.st_dev, found.st_ino


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
    """What a descriptor was opened on by `keep`; None if somebody has closed it since."""
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


def _is(descriptor: int, file: Identity) -> bool:
    return _of(descriptor) == file and _kept.get(descriptor) != file


def _of(descriptor: int) -> Identity | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
