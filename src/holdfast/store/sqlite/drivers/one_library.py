"""One process, one SQLite library for each file.

Owns the register of which library this process uses on which file. POSIX locks belong to the
process, not to whoever asked: two SQLite libraries in one process do not see each other's locks
on a file, and when either closes it, the locks of both are gone. Then commits are lost, and the
file is damaged.

Invariant: while one library has a file open in this process, no connection of ours uses it
through the other.

We begin with apsw, and follow the program: when it opens the file with `sqlite3` (`connect_hook`
sees that before it happens), we let our operations under way end, close our handles, and go on
with `sqlite3` (`make_way`). It does not matter who comes first. What cannot be cured is refused
before it can do harm: the program's own connection of apsw cannot be closed by us, so then it is
`sqlite3.connect` that fails.

What raises no event (ATTACH, another library in C) is noticed by its descriptor (`watch`). In
WAL mode each library has the -shm file open exactly once, so a second descriptor is a second
library. It has begun then, so our handles are left open and never touched again (`driver.abandon`):
closing them would drop locks that are in use.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from dataclasses import dataclass, field
from threading import get_ident
from time import monotonic
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite.drivers import descriptors, inherited, neighbours, presence
from holdfast.store.sqlite.drivers.descriptors import Identity, identity

_PATIENCE = 10.0
"""How long a `sqlite3.connect` waits for our operations under way."""

_log = logging.getLogger("holdfast.store.sqlite")


class Holder(Protocol):
    """Somebody with connections of ours."""

    def hold_off(self, patience: float) -> bool:
        """Let nobody use them; whether nobody does. Ended by `go_on`, whatever the answer."""
        ...

    def part_with(self, *, abandon: bool) -> None:
        """Close them all, or leave them open for good."""
        ...

    def go_on(self) -> None:
        """Let them be used again; they are opened anew."""
        ...


@dataclass(slots=True, eq=False)
class _Use:
    """What this process does with one file."""

    path: str
    """By the name that our handles have."""
    library: SqliteDriver
    holders: WeakKeyDictionary[Holder, int] = field(default_factory=WeakKeyDictionary)
    """How many handles each has."""
    followers: WeakSet[Holder] = field(default_factory=WeakSet)
    """Those who may open more: for as long as there are any, nothing is forgotten."""
    switching: bool = False
    leaving: list[Holder] = field(default_factory=list)
    """While we switch: those whose handles will be closed."""
    libraries: int = 1
    """How many have the file open, those included whose handles were abandoned."""
    suspected: bool = False
    guarded: bool = False
    """Whether connections that this process may have inherited are looked after."""
    inherited: bool = False
    """Whether there are connections which this process may have got from its parent."""
    connecting: set[int] = field(default_factory=set)
    """Threads that are about to open the file with `sqlite3`."""
    lost: str | None = None
    """Why the file cannot be used in this process any more."""
    forbidden: bool = False
    """Whether it must not be opened with `sqlite3` either."""


_mutex = threading.RLock()
_changed = threading.Condition(_mutex)
_uses: dict[Identity, _Use] = {}
_is_child = False
"""Whether this process was forked from one that had this module."""


def claim(path: str, wanted: SqliteDriver | None, holder: Holder) -> tuple[Identity, SqliteDriver]:
    """Count a connection that `holder` is about to open; which library it must be of.

    Raises `OSError` if there is no file.
    """
    while True:
        file = identity(path)
        with _changed:
            use = _uses.get(file)
            if use is not None and use.switching and holder not in use.leaving:
                _wait_for_switch(use)
                continue
            if use is None or _is_forgotten(file, use):
                use = _uses[file] = _Use(path, _begin_with(path, file, wanted))
            if not use.guarded:
                _hold_inherited(file, use)
            if use.lost is not None:
                raise StoreError(use.lost)
            if use.switching or wanted != "sqlite3" or use.library == "sqlite3":
                use.holders[holder] = use.holders.get(holder, 0) + 1
                use.followers.add(holder)
                return file, use.library
        make_way(file)


def stay(path: str, file: Identity) -> None:
    """A connection that was claimed is open, and the file in WAL mode: none may take it away."""
    with _mutex:
        if not presence.is_held(file):
            presence.hold(path, file)


def closing(file: Identity) -> None:
    """A connection that was claimed is about to be closed."""
    with _mutex:
        use = _uses.get(file)
        if use is None or sum(use.holders.values()) <= 1:
            # The last one clears up, if it is alone with the file.
            presence.release(file)


def discharge(file: Identity, holder: Holder) -> None:
    """A connection that was claimed has been closed."""
    with _mutex:
        use = _uses.get(file)
        if use is not None:
            left = use.holders.pop(holder, 1) - 1
            if left > 0:
                use.holders[holder] = left
        if use is None or not use.holders:
            presence.release(file)
            if use is None or not use.connecting:
                presence.clear(file)


def leave(holder: Holder) -> None:
    """It will open no more."""
    with _mutex:
        for use in _uses.values():
            use.followers.discard(holder)


def note(path: str, library: SqliteDriver) -> None:
    """A caller handed us a connection of this library to this file."""
    file = identity(path)
    with _mutex:
        use = _uses.get(file)
        if use is None or _is_forgotten(file, use):
            use = _uses[file] = _Use(path, library)
        if library == "apsw":
            if use.library != "apsw":
                raise _two_libraries(path)
            return
    make_way(file)


def has_files() -> bool:
    """Whether there is any file to look after."""
    return bool(_uses)


def connecting(file: Identity) -> None:
    """This thread is about to open the file with `sqlite3`."""
    make_way(file)
    with _mutex:
        if file in _uses:
            _uses[file].connecting.add(get_ident())


def connected(file: Identity) -> bool:
    """This thread has opened the file with `sqlite3`; whether it is one that we use."""
    # Once more: it may have become a file of ours since.
    make_way(file)
    with _mutex:
        use = _uses.get(file)
        if use is None:
            return False
        use.connecting.discard(get_ident())
        return bool(use.followers)


def make_way(file: Identity) -> None:
    """Use the file through `sqlite3` from now on, because this process does.

    When this returns, no connection of ours uses it through apsw. `ConfigError` if somebody
    else does, `StoreUnavailable` if our own operations do not end; then nothing has changed.
    """
    with _changed:
        use = _uses.get(file)
        if use is not None and use.switching:
            _wait_for_switch(use)
        if use is not None and use.forbidden:
            raise StoreUnavailable(use.lost or use.path)
        if use is None or use.library == "sqlite3":
            return
        if neighbours.have_apsw(file):
            raise _two_libraries(use.path)
        use.switching = True
        use.leaving = list(use.holders)
    _empty(use, "sqlite3")
    # Not before: a handler may open this very file, and would wait for the switch.
    if use.followers:
        _log.info("%s is used through sqlite3 in this process, so its tasks are too", use.path)


def watch(file: Identity) -> None:
    """Notice a second library on the file; call it now and then, outside any operation.

    A second look confirms what cannot be cured: somebody may just be making a copy.
    """
    use = _uses.get(file)
    if use is None or _is_taken(use):
        return
    found = descriptors.count_at(f"{use.path}-shm")
    if found is None or found <= use.libraries:
        use.suspected = False
        return
    with _changed:
        if _uses.get(file) is not use or _is_taken(use):
            return
        to_sqlite3 = use.library == "apsw" and neighbours.have_sqlite3()
        if not to_sqlite3 and not use.suspected:
            use.suspected = True
            return
        use.switching = True
        use.leaving = list(use.holders)
    if to_sqlite3:
        _empty(use, "sqlite3", abandon=True)
        _log.warning(
            "%s was opened through sqlite3 in this process by ATTACH, which is noticed late: from "
            "now on its tasks use sqlite3 too; set driver='sqlite3' in this process, so that they "
            "do from the beginning",
            use.path,
        )
    else:
        _empty(use, use.library, abandon=True, lost=_foreign(use.path, use.library))


def lose(file: Identity, reason: str) -> None:
    """Refuse a file of ours from now on, in a forked child."""
    if file in _uses:
        _uses[file].lost = reason


def is_locked_by_nobody(file: Identity) -> bool:
    """Whether a file that SQLite calls locked is not at this moment, as far as the system knows.

    In a forked child it may believe in a transaction that a thread of the parent was in. Elsewhere
    the answer is always no.
    """
    use = _uses.get(file)
    return use is not None and use.inherited and presence.is_being_written(file) is False


def _empty(
    use: _Use, becoming: SqliteDriver, *, abandon: bool = False, lost: str | None = None
) -> None:
    """Have all who leave part with their connections: the rest of a switch, which must be on."""
    deadline = monotonic() + _PATIENCE
    held: list[Holder] = []
    try:
        for holder in use.leaving:
            held.append(holder)
            if not holder.hold_off(max(0.0, deadline - monotonic())):
                raise StoreUnavailable(
                    f"{use.path} is used by an operation of Holdfast that did not end within "
                    f"{_PATIENCE:g} s, or that this call interrupts: repeat it"
                )
        # More than ours: a connection of sqlite3 is at work already, see above.
        found = descriptors.count_at(f"{use.path}-shm")
        abandon = abandon or (found is not None and found > use.libraries)
        for holder in held:
            holder.part_with(abandon=abandon)
        with _mutex:
            use.library = becoming
            use.lost = lost
            if abandon and found is not None:
                use.libraries = max(found, 2)
    finally:
        with _changed:
            use.switching = False
            use.leaving = []
            _changed.notify_all()
        for holder in held:
            holder.go_on()


def _is_taken(use: _Use) -> bool:
    return use.switching or use.lost is not None


def _wait_for_switch(use: _Use) -> None:
    if not _changed.wait_for(lambda: not use.switching, 2 * _PATIENCE):
        raise StoreUnavailable(
            f"{use.path} is being opened by another thread, which did not end: repeat the call"
        )


def _is_forgotten(file: Identity, use: _Use) -> bool:
    """Whether nobody has the file open any more, so that all begins anew."""
    if use.followers or use.holders or use.switching or use.connecting or use.lost:
        return False
    return not descriptors.is_open(file)


def _begin_with(path: str, file: Identity, wanted: SqliteDriver | None) -> SqliteDriver:
    """The library for the first connection of ours."""
    if neighbours.have_apsw(file, or_we=True):
        # A store that nobody has closed, perhaps.
        gc.collect()
    if neighbours.have_apsw(file, or_we=True):
        if wanted == "sqlite3":
            raise _two_libraries(path)
        return "apsw"
    # Opened by somebody before us. If that can be sqlite3, it is by far the likeliest, and
    # following it is safe; leading with apsw would not be.
    if neighbours.may_have_sqlite3(file):
        return "sqlite3"
    if descriptors.count_at(f"{path}-shm"):
        raise ConfigError(_foreign(path, "apsw and sqlite3"), option="driver")
    return wanted or "apsw"


def _hold_inherited(file: Identity, use: _Use) -> None:
    use.guarded = True
    use.inherited = _is_child and bool(descriptors.count(file))
    why = inherited.hold(use.path, file)
    if why is not None:
        use.lost, use.forbidden = why, True
    # The descriptor of the -shm file that holds a lock is none of a library.
    use.libraries = max(use.libraries, descriptors.count_at(f"{use.path}-shm") or 0)


def _foreign(path: str, known: str) -> str:
    return (
        f"another SQLite library than {known} has {path} open in this process; two of them cancel "
        "each other's locks and would damage the file, so Holdfast does not use it here: open it "
        "with sqlite3 only, or keep the tasks in a file of their own, and restart this process"
    )


def _two_libraries(path: str) -> ConfigError:
    return ConfigError(
        f"this process has {path} open through apsw and through sqlite3: two SQLite libraries in "
        "one process cancel each other's locks and would damage the file; Holdfast follows "
        "whichever your own connections are of, so make them all sqlite3 or all apsw",
        option="driver",
    )


def _after_fork_in_child() -> None:
    """Nothing of ours was inherited: connections were closed before the fork."""
    global _mutex, _changed, _is_child
    _is_child = True
    _mutex = threading.RLock()
    _changed = threading.Condition(_mutex)
    presence.forget_in_child()
    for file, use in _uses.items():
        use.holders.clear()
        use.switching = False
        use.leaving = []
        use.connecting.clear()
        use.guarded = False
        if use.followers:
            _hold_inherited(file, use)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
