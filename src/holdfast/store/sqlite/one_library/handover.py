"""Which SQLite library this process uses on which file, and the handover to the other one.

POSIX locks belong to the process, not to whoever asked: two SQLite libraries in one process do not
see each other's locks on a file, and when either closes it, the locks of both are gone. Then
commits are lost, and the file is damaged.

Invariant: while one library has a file open in this process, no connection of ours uses it
through the other.

We begin with apsw, and follow the program: when it opens the file with `sqlite3` (`connect_hook`
sees that before it happens), we let our operations under way end, close our connections, and go on
with `sqlite3`. It does not matter who comes first. The states of a file (`FileUse`):

    unknown      no connection of ours is open
    apsw         ours are of apsw; the program has none, or has its own of apsw
    sqlite3      ours are of sqlite3, and so are all of the program's
    switching    ours are being closed, and nobody opens any
    lost         this process must not use it any more; `lost` says why

    unknown   -> apsw, sqlite3         the first `claim` looks who is there already
    apsw      -> switching -> sqlite3  the program, or another store, wants sqlite3: `make_way`
              -> switching -> apsw     our operations did not end in time: `sqlite3.connect` fails
              -> switching -> sqlite3  it was opened by ATTACH already: `meet_another_library`
    any       -> switching -> lost     so it was by a third library: `meet_another_library`
    any       -> lost                  in a forked child that inherited what cannot be used
    any       -> unknown               all stores are closed, and so is every descriptor

Who waits: a switch waits for our operations under way (`ConnectionOwner.hold_off`), at most
`_PATIENCE`. Those may still open what they need to end; all others, `claim` and the next
`sqlite3.connect`, wait for the end of the switch. Nobody waits, or runs code of others, with the
mutex. What cannot be cured is refused before it can do harm: the program's own connection of apsw
cannot be closed by us, so then it is `sqlite3.connect` that fails.

What raises no event (ATTACH, another library in C) is noticed by its descriptor. In WAL mode each
library has the -shm file open exactly once, so a second descriptor is a second library. It has
begun then, so our connections are left open and never touched again (`driver.abandon`): closing
them would drop locks that are in use.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from dataclasses import dataclass, field
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite.one_library import open_files, process_locks
from holdfast.store.sqlite.one_library.open_files import Identity, identity

_PATIENCE = 10.0
"""How long a `sqlite3.connect` waits for our operations under way."""

_log = logging.getLogger("holdfast.store.sqlite")


class ConnectionOwner(Protocol):
    """Something that has connections of ours to a file."""

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
class FileUse:
    """What this process does with one file."""

    file: Identity
    path: str
    """By the name that our connections have."""
    library: SqliteDriver
    owners: WeakKeyDictionary[ConnectionOwner, int] = field(default_factory=WeakKeyDictionary)
    """How many connections each has."""
    followers: WeakSet[ConnectionOwner] = field(default_factory=WeakSet)
    """Those who may open more: for as long as there are any, nothing is forgotten."""
    switching: bool = False
    leaving: list[ConnectionOwner] = field(default_factory=list)
    """While we switch: those whose connections will be closed."""
    libraries: int = 1
    """How many have the file open, those included whose connections were abandoned."""
    suspected: bool = False
    """Whether there was one more at the last look."""
    guarded: bool = False
    """Whether connections that this process may have inherited are looked after."""
    inherited: bool = False
    """Whether there are connections which this process may have got from its parent."""
    connecting: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Threads that are about to open the file with `sqlite3`, and where in their code they are:
    by no event do they say that it failed."""
    lost: str | None = None
    """Why the file cannot be used in this process any more."""
    forbidden: bool = False
    """Whether it must not be opened with `sqlite3` either."""

    def stay(self) -> None:
        """A connection is open, and the file in WAL mode: nobody may take that away."""
        with _mutex:
            if not process_locks.is_held(self.file):
                process_locks.hold(self.path, self.file)

    def closing(self) -> None:
        """A connection that was claimed is about to be closed."""
        with _mutex:
            if sum(self.owners.values()) <= 1:
                # The last one clears up, if it is alone with the file.
                process_locks.release(self.file)

    def discharge(self, owner: ConnectionOwner) -> None:
        """A connection that was claimed has been closed."""
        with _mutex:
            left = self.owners.pop(owner, 1) - 1
            if left > 0:
                self.owners[owner] = left
            if not self.owners:
                process_locks.release(self.file)
                if not self._is_being_opened():
                    process_locks.clear(self.file)

    def is_locked_by_nobody(self) -> bool:
        """Whether a file that SQLite calls locked is not at this moment, as the system knows.

        In a forked child it may believe in a transaction that a thread of the parent was in.
        Elsewhere the answer is always no.
        """
        return self.inherited and process_locks.is_being_written(self.file) is False

    def meet_another_library(self) -> None:
        """There are more descriptors than libraries; call it outside any operation.

        A second look confirms what cannot be cured: somebody may just be making a copy.
        """
        with _mutex:
            if self.switching or self.lost is not None:
                return
            to_sqlite3 = self.library == "apsw" and open_files.sqlite3_has_any()
            if not to_sqlite3 and not self.suspected:
                self.suspected = True
                return
            self._begin_switch()
        if to_sqlite3:
            self._switch_to("sqlite3", abandon=True)
            _log.warning(
                "%s was opened through sqlite3 in this process by ATTACH, which is noticed late: "
                "from now on its tasks use sqlite3 too; set driver='sqlite3' in this process, so "
                "that they do from the beginning",
                self.path,
            )
        else:
            self._switch_to(self.library, abandon=True, lost=_foreign(self.path, self.library))

    def is_forgotten(self) -> bool:
        """Whether nobody has the file open any more, so that all begins anew."""
        if self.followers or self.owners or self.switching or self.lost:
            return False
        return not self._is_being_opened() and not open_files.is_open(self.file)

    def _is_being_opened(self) -> bool:
        frames = sys._current_frames()
        return any(_is_in(frames.get(one), call) for one, call in self.connecting.items())

    def _begin_switch(self) -> None:
        self.switching = True
        self.leaving = list(self.owners)

    def _switch_to(
        self, library: SqliteDriver, *, abandon: bool = False, lost: str | None = None
    ) -> None:
        """Close the connections of every owner being switched: the rest of a switch."""
        deadline = monotonic() + _PATIENCE
        held: list[ConnectionOwner] = []
        try:
            for owner in self.leaving:
                held.append(owner)
                if not owner.hold_off(max(0.0, deadline - monotonic())):
                    raise StoreUnavailable(
                        f"{self.path} is used by an operation of Holdfast that did not end within "
                        f"{_PATIENCE:g} s, or that this call interrupts: repeat it"
                    )
            # More than ours: a connection of sqlite3 is at work already, see above.
            found = open_files.count_at(f"{self.path}-shm")
            abandon = abandon or (found is not None and found > self.libraries)
            for owner in held:
                owner.part_with(abandon=abandon)
            with _mutex:
                self.library = library
                self.lost = lost
                if abandon and found is not None:
                    self.libraries = max(found, 2)
        finally:
            self._end_switch()
            for owner in held:
                owner.go_on()

    def _end_switch(self) -> None:
        with _changed:
            self.switching = False
            self.leaving = []
            _changed.notify_all()

    def wait_for_switch(self) -> None:
        """Wait until it has ended; with the mutex, which is free meanwhile."""
        if not _changed.wait_for(lambda: not self.switching, 2 * _PATIENCE):
            raise StoreUnavailable(
                f"{self.path} is being opened by another thread, which did not end: repeat the call"
            )

    def guard(self) -> None:
        """Look after connections that were there before, perhaps inherited; once."""
        with _mutex:
            if self.guarded or self.switching:
                return
            self._begin_switch()
        try:
            self._hold_inherited()
        finally:
            self._end_switch()

    def _hold_inherited(self) -> None:
        self.inherited = _is_child and bool(open_files.count(self.file))
        why = process_locks.hold_inherited(self.path, self.file)
        if why is not None:
            self.lost, self.forbidden = why, True
        # The descriptor of the -shm file that holds a lock is none of a library.
        self.libraries = max(self.libraries, open_files.count_at(f"{self.path}-shm") or 0)
        self.guarded = True

    def start_in_child(self) -> None:
        """Nothing of ours was inherited: connections were closed before the fork."""
        self.owners.clear()
        self.switching = False
        self.leaving = []
        self.connecting.clear()
        self.guarded = False
        if self.followers:
            self._hold_inherited()


_mutex = threading.RLock()
_changed = threading.Condition(_mutex)
_uses: dict[Identity, FileUse] = {}
_is_child = False
"""Whether this process was forked from one that had this module."""


def claim(path: str, wanted: SqliteDriver | None, owner: ConnectionOwner) -> FileUse:
    """Count a connection that `owner` is about to open, of the library that is told.

    Raises `OSError` if there is no file.
    """
    while True:
        file = identity(path)
        with _changed:
            use = _known(file)
            if use is not None and use.switching and owner not in use.leaving:
                use.wait_for_switch()
                continue
            if use is not None and (use.guarded or use.switching):
                if use.lost is not None:
                    raise StoreError(use.lost)
                if use.switching or wanted != "sqlite3" or use.library == "sqlite3":
                    use.owners[owner] = use.owners.get(owner, 0) + 1
                    use.followers.add(owner)
                    return use
        if use is None:
            _begin(path, file, wanted, owner)
        elif not use.guarded:
            use.guard()
        else:
            make_way(file)


def leave(owner: ConnectionOwner) -> None:
    """It will open no more."""
    with _mutex:
        for use in _uses.values():
            use.followers.discard(owner)


def note(path: str, library: SqliteDriver) -> None:
    """A caller handed us a connection of this library to this file."""
    file = identity(path)
    use = _register(path, file, library)
    if library == "sqlite3":
        make_way(file)
    elif use.library != "apsw":
        raise _two_libraries(path)


def connecting(file: Identity, caller: FrameType | None) -> None:
    """This thread is about to open the file with `sqlite3`, in that frame."""
    make_way(file)
    with _mutex:
        if file in _uses:
            _uses[file].connecting[get_ident()] = _call(caller)


def connected(file: Identity) -> bool:
    """This thread has opened the file with `sqlite3`; whether it is one that we use."""
    # Once more: it may have become a file of ours since.
    make_way(file)
    with _mutex:
        use = _uses.get(file)
        if use is None:
            return False
        use.connecting.pop(get_ident(), None)
        return bool(use.followers)


def make_way(file: Identity) -> None:
    """Use the file through `sqlite3` from now on, because this process does.

    When this returns, no connection of ours uses it through apsw. `ConfigError` if somebody
    else does, `StoreUnavailable` if our own operations do not end; then nothing has changed.
    """
    with _changed:
        use = _uses.get(file)
        if use is None:
            return
        if use.switching:
            use.wait_for_switch()
        if use.forbidden:
            raise StoreUnavailable(use.lost or use.path)
        if use.library == "sqlite3":
            return
        if open_files.apsw_has(file):
            raise _two_libraries(use.path)
        use._begin_switch()
    use._switch_to("sqlite3")
    # Not before: a handler may open this very file, and would wait for the switch.
    if use.followers:
        _log.info("%s is used through sqlite3 in this process, so its tasks are too", use.path)


def _call(frame: FrameType | None) -> tuple[int, int]:
    """The call that a frame is in."""
    return (0, 0) if frame is None else (id(frame), frame.f_lasti)


def _is_in(frame: FrameType | None, call: tuple[int, int]) -> bool:
    """Whether a thread, of which this is the innermost frame, is still in a call."""
    while frame is not None and _call(frame) != call:
        frame = frame.f_back
    return frame is not None


def _known(file: Identity) -> FileUse | None:
    use = _uses.get(file)
    return None if use is None or use.is_forgotten() else use


def _register(path: str, file: Identity, library: SqliteDriver) -> FileUse:
    """Begin with this library, unless somebody has begun already."""
    with _mutex:
        use = _known(file)
        if use is None:
            use = _uses[file] = FileUse(file, path, library)
        return use


def _begin(path: str, file: Identity, wanted: SqliteDriver | None, owner: ConnectionOwner) -> None:
    """Find out with which library we can begin, and do."""
    try:
        library = _first_library(path, file, wanted)
    except ConfigError:
        with _mutex:
            if _known(file) is None:
                raise
        # What was found is what another thread of ours has opened meanwhile.
        return
    with _mutex:
        _register(path, file, library).followers.add(owner)


def _first_library(path: str, file: Identity, wanted: SqliteDriver | None) -> SqliteDriver:
    """The library for the first connection of ours."""
    if open_files.apsw_has(file, or_we=True):
        # A store that nobody has closed, perhaps.
        gc.collect()
    if open_files.apsw_has(file, or_we=True):
        if wanted == "sqlite3":
            raise _two_libraries(path)
        return "apsw"
    # Opened by somebody before us. If that can be sqlite3, it is by far the likeliest, and
    # following it is safe; leading with apsw would not be.
    if open_files.sqlite3_may_have(file):
        return "sqlite3"
    if open_files.count_at(f"{path}-shm"):
        raise ConfigError(_foreign(path, "apsw and sqlite3"), option="driver")
    return wanted or "apsw"


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
    global _mutex, _changed, _is_child
    _is_child = True
    _mutex = threading.RLock()
    _changed = threading.Condition(_mutex)
    process_locks.forget_in_child()
    for use in _uses.values():
        use.start_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
