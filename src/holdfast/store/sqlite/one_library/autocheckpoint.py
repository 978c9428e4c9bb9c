"""How often a program's own connection checkpoints, where its library must not race a writer.

Owns the one setting that we change on connections of others, and only on those to a file of
ours, in a library that is vulnerable (`driver.is_vulnerable`). It is put off, not turned off: the
store and the workers checkpoint long before, and if there are none, the WAL must not grow forever.

A connection that has just been opened cannot be used yet: Python raises the event before it lets
anybody in. So SQLite itself is called, with the handle that the connection begins with. That is a
look into an object of CPython. It is taken only after a try: the place holds an address in an
open connection and none in a closed one, and the library that is called is the one in which
memory is used when `sqlite3` opens a connection. Otherwise nothing is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.store.sqlite.drivers.driver import is_vulnerable

if TYPE_CHECKING:
    import sqlite3

RARELY = 50_000
"""Pages; about 200 MB."""

Setter: TypeAlias = Callable[[int, int], int]

_TRIES = 3


def put_off(connection: sqlite3.Connection) -> bool:
    """Let a connection that is being opened checkpoint rarely; whether that could be done."""
    import sqlite3

    major, minor, patch = sqlite3.sqlite_version_info[:3]
    if not is_vulnerable((major, minor, patch)):
        return False
    setter = _setter()
    handle = None if setter is None else _handle(connection)
    return setter is not None and handle is not None and setter(handle, RARELY) == 0


@cache
def _setter() -> Setter | None:
    """`sqlite3_wal_autocheckpoint` of the library inside `sqlite3`, if it can be had safely."""
    if sys.implementation.name != "cpython":
        return None
    try:
        import _sqlite3
        import ctypes

        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        setter: Any = library.sqlite3_wal_autocheckpoint
        used: Any = library.sqlite3_memory_used
    except (ImportError, OSError, AttributeError):
        return None
    setter.argtypes, setter.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_int
    used.argtypes, used.restype = [], ctypes.c_int64
    # Other threads use memory, too, and give it back.
    return setter if any(_is_as_thought(used) for _ in range(_TRIES)) else None


def _is_as_thought(used: Callable[[], int]) -> bool:
    import sqlite3

    before = used()
    probe = sqlite3.connect(":memory:")
    grown = used() > before
    opened = _handle(probe)
    probe.close()
    return grown and opened is not None and _handle(probe) is None


def _handle(connection: sqlite3.Connection) -> int | None:
    """What stands at the beginning of the object, behind what all objects have."""
    import ctypes

    return ctypes.c_void_p.from_address(id(connection) + object.__basicsize__).value
