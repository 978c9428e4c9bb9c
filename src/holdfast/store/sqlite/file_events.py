"""Whether somebody writes into a file, as the kernel tells it (inotify, on Linux).

Owns one watch on one file. It opens nothing: closing a descriptor of a database's files would drop
SQLite's locks in this process. Where the kernel cannot tell (another system, no watches left, a
file that is not there yet) the watch is not armed, and whoever waits has to look by itself.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MODIFIED: Final = 0x2
_LINKS: Final = 0x4 | 0x400 | 0x800
"""Attributes (among them the number of links), deleted, moved."""
_LOST: Final = 0x2000 | 0x4000 | 0x8000
"""Unmounted, too many events, not watched any more."""
_HEADER: Final = 16
_MOST: Final = 4096


@cache
def _calls() -> tuple[Callable[[int], int], Callable[[int, bytes, int], int]] | None:
    """`inotify_init1` and `inotify_add_watch` of the C library, if it has them."""
    if sys.platform != "linux":
        return None
    import ctypes

    library: Any = ctypes.CDLL(None, use_errno=True)
    try:
        return library.inotify_init1, library.inotify_add_watch
    except AttributeError:
        return None


class FileEvents:
    """Tells of writes into the file at a path, while there is one."""

    def __init__(self, path: str) -> None:
        self._descriptor = -1
        self._path = os.fsencode(path)
        self.is_armed = False
        """Whether the kernel tells of the next write."""
        calls = _calls()
        if calls is not None:
            self._descriptor = calls[0](os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Readable after a write; -1 where the kernel does not tell."""
        return self._descriptor

    def arm(self) -> bool:
        """Watch the file that is there now, if none is watched; whether one is."""
        calls = _calls()
        if not self.is_armed and self._descriptor >= 0 and calls is not None:
            self.is_armed = calls[1](self._descriptor, self._path, _MODIFIED | _LINKS) >= 0
        return self.is_armed

    def swallow(self) -> None:
        """Take note of what the kernel has told."""
        while self._descriptor >= 0:
            try:
                told = os.read(self._descriptor, _MOST)
            except OSError:
                return
            # Each: watch, flags, cookie, length of the name that follows; files have none.
            for start in range(0, len(told) - _HEADER + 1, _HEADER):
                if int.from_bytes(told[start + 4 : start + 8], sys.byteorder) & (_LINKS | _LOST):
                    # Perhaps it is not the file of that name any more.
                    self.is_armed = False

    def close(self) -> None:
        """Watch no more."""
        # Forgotten first: another thread must not read from what has its number next.
        descriptor, self._descriptor, self.is_armed = self._descriptor, -1, False
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
