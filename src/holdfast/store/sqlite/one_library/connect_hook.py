"""What this process opens with `sqlite3`, seen before the file is opened.

Owns the audit hook: Python raises `sqlite3.connect` before a connection is opened and
`sqlite3.connect/handle` when it is. A hook cannot be taken away again, and is called for every
event of the process, so it returns at once on all others. An error that it raises is an error
of `sqlite3.connect`, which then has opened nothing.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from holdfast.core.errors import StoreUnavailable
from holdfast.store.sqlite.one_library import autocheckpoint, handover
from holdfast.store.sqlite.one_library.open_files import Identity, identity

if TYPE_CHECKING:
    import sqlite3

_installed = False
_local = threading.local()
_URI = re.compile(rb"file:(?://[^/?#]*)?(?P<path>[^?#]*)", re.DOTALL)


def install() -> None:
    """See what is opened from now on."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event == "sqlite3.connect":
        _before(args[0], sys._getframe().f_back)
    elif event == "sqlite3.connect/handle":
        _after(args[0])


def _before(database: Any, caller: FrameType | None) -> None:
    """A connection to `database` is about to be opened."""
    _local.opening = list(paths(database))
    for file in _files(_local.opening):
        with _as_sqlite3():
            handover.connecting(file, caller)


def _after(connection: sqlite3.Connection) -> None:
    """The connection is open, but Python does not let it be used yet."""
    opened: list[bytes] = getattr(_local, "opening", [])
    _local.opening = []
    with _as_sqlite3():
        ours = [handover.connected(file) for file in _files(opened)]
    if any(ours):
        autocheckpoint.put_off(connection)


@contextmanager
def _as_sqlite3() -> Iterator[None]:
    import sqlite3

    try:
        yield
    except StoreUnavailable as error:
        # What a program that uses sqlite3 is prepared for.
        raise sqlite3.OperationalError(f"database is locked: {error}") from error


def _files(paths: Iterable[bytes]) -> Iterator[Identity]:
    """The existing files among these."""
    for path in paths:
        try:
            yield identity(path)
        except (OSError, ValueError):
            continue


def paths(database: Any) -> Iterator[bytes]:
    """What `database` may mean as a path; whether it is read as a URI is not told."""
    try:
        given = os.fsencode(database)
    except (TypeError, ValueError):
        # No path at all: sqlite3 will say so.
        return
    yield given
    uri = _URI.match(given)
    if uri is not None:
        # SQLite ends the path at an encoded NUL.
        yield unquote_to_bytes(uri["path"]).split(b"\0")[0]
