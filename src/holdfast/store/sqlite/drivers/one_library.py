"""One process, one SQLite library for each file.

Owns the register of which library this process uses on which file. POSIX locks
belong to the process, not to whoever asked: two SQLite libraries in one process do
not see each other's locks on a file, and when either closes it, the locks of both
are gone. So the second library is refused, with the setting that avoids it.

Our own connections are counted. A caller's connection (`app.using`) is noted without
an end, because its closing cannot be seen; a note is dropped when it is in the way
and no descriptor of this process is open on the file any more.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path
from typing import TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.store.settings import SqliteDriver

Identity: TypeAlias = tuple[int, int]
"""Device and inode: what a file is, whatever its name."""

_mutex = threading.Lock()
_counted: dict[Identity, tuple[SqliteDriver, int]] = {}
_noted: dict[Identity, SqliteDriver] = {}


def identity(path: str | Path) -> Identity:
    """What the file at this path is; raises OSError if there is none."""
    found = Path(path).stat()
    return found.st_dev, found.st_ino


def choose(path: str, wanted: SqliteDriver | None) -> SqliteDriver:
    """The library for our own connections: as asked, else the one in use, else apsw."""
    if wanted is not None:
        return wanted
    file = identity(path)
    with _mutex:
        used = _used(file)
    if used is not None:
        return used
    # Opened by somebody before us. If this process has connections of sqlite3 at all, that is
    # by far the likeliest, and following it is safe; leading with apsw would not be.
    if _is_open(file) and _has_sqlite3_connections():
        return "sqlite3"
    return "apsw"


def enlist(path: str, library: SqliteDriver) -> Identity:
    """Count one connection of ours; `ConfigError` if the file is used by another library."""
    file = identity(path)
    with _mutex:
        _refuse_mix(file, library, path)
        count = _counted[file][1] if file in _counted else 0
        _counted[file] = (library, count + 1)
    return file


def discharge(file: Identity) -> None:
    """One of our connections was closed."""
    with _mutex:
        library, count = _counted.pop(file, ("apsw", 1))
        if count > 1:
            _counted[file] = (library, count - 1)


def note(path: str, library: SqliteDriver) -> None:
    """A caller handed us a connection of this library to this file."""
    file = identity(path)
    with _mutex:
        _refuse_mix(file, library, path)
        _noted[file] = library


def after_fork_in_child() -> None:
    """Nothing was inherited: connections were closed before the fork."""
    global _mutex
    _mutex = threading.Lock()


def _used(file: Identity) -> SqliteDriver | None:
    if file in _counted:
        return _counted[file][0]
    if file in _noted and not _is_open(file):
        del _noted[file]
    return _noted.get(file)


def _refuse_mix(file: Identity, library: SqliteDriver, path: str) -> None:
    used = _used(file)
    if used is None or used == library:
        return
    raise ConfigError(
        f"this process uses {path} through the library {used}, so it cannot also use it through "
        f"{library}: two SQLite libraries in one process cancel each other's locks and would "
        f"corrupt the file; set driver='sqlite3' in this process (or append ?driver=sqlite3 to "
        "the URL) if its own connections are of sqlite3, or make them all apsw",
        option="driver",
    )


def _is_open(file: Identity) -> bool:
    """Whether any descriptor of this process is on the file (unknown counts as yes)."""
    try:
        descriptors = list(Path("/proc/self/fd").iterdir())
    except OSError:
        return True
    return any(_is(descriptor, file) for descriptor in descriptors)


def _is(descriptor: Path, file: Identity) -> bool:
    try:
        return identity(descriptor) == file
    except OSError:
        return False


def _has_sqlite3_connections() -> bool:
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None:
        return False
    # Not isinstance, which asks objects for their class: proxies of all kinds would come to life.
    return any(issubclass(type(found), sqlite3.Connection) for found in gc.get_objects())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)
