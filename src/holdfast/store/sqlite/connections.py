"""The connections of one store in this process: one that writes, a few that read.

Owns who has one: they are handed out to one thread at a time, given up when they broke or when
the file was replaced under them, and all closed before a fork and for a handover to the other
SQLite library (`one_library.handover`). Never decides about transactions, and opens nothing
itself (`opener`).

Invariant: while a fork happens, or a handover, no connection to the file is open here. So nobody
is let in (`_shut`), and whoever is inside is waited for, a moment, since transactions are short.
If a fork has waited too long it goes ahead, and the *child* refuses to use the file, because SQLite
in it would believe in locks that only the parent holds; a handover is given up.

A database in memory is one connection for everything. It survives a fork as a copy.
"""

from __future__ import annotations

import sys
import threading
from threading import get_ident
from time import monotonic

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store import fork
from holdfast.store.settings import StoreSettings
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.drivers.driver import Connection
from holdfast.store.sqlite.one_library import handover
from holdfast.store.sqlite.one_library.handover import FileUse
from holdfast.store.sqlite.one_library.open_files import Identity, count_at, identity
from holdfast.store.sqlite.opener import TO_READ, TO_WRITE, ConnectionOpener

_LOOK_SECONDS = 0.5
_SURE_SECONDS = 0.005
"""A write is not made into a file that was replaced longer ago than this."""
_FORK_PATIENCE = 10.0


class _Kind:
    """Connections for one purpose: how many are out, and those that nobody has now."""

    __slots__ = ("idle", "limit", "most_idle", "out", "purpose")

    def __init__(self, purpose: str, limit: int = sys.maxsize, most_idle: int = 1) -> None:
        self.purpose = purpose
        self.limit = limit
        self.most_idle = most_idle
        self.out = 0
        self.idle: list[Connection] = []


class Connections:
    """Connections to the file at `path`, which is resolved, or to memory."""

    def __init__(self, settings: StoreSettings, path: str) -> None:
        self._timeout = settings.lock_timeout
        self._path = path
        self._in_memory = path == faults.MEMORY
        self.opener = ConnectionOpener(settings, path)
        self._file: Identity | None = None
        """The file of the connections that may be used."""
        self._use: FileUse | None = None
        self._looked = 0.0
        self._sure_until = 0.0
        readers = max(1, settings.max_connections - 1)
        self._writers = _Kind(TO_WRITE)
        self._readers = self._writers if self._in_memory else _Kind(TO_READ, readers, readers)
        self._watchers = _Kind(TO_READ, limit=1)
        self._kinds = {self._writers, self._readers, self._watchers}
        self._make_locks()
        self._inside: dict[int, int] = {}
        """Threads that have a connection, and how many each."""
        self._shut = 0
        self._waiting = 0
        self._closed = False
        self._lost_in_fork = False
        self.is_tried = self._in_memory or not fork.is_of_threads()
        """Whether `try_once` has nothing to do any more."""
        fork.join(self)

    def check_usable(self) -> None:
        """Raise if nothing can be had from here any more."""
        if self._closed:
            raise StoreError(f"the store on {self._path} is closed")
        if self._lost_in_fork:
            raise StoreError(self._forked())

    def _forked(self) -> str:
        return (
            f"this process was forked while its parent was using {self._path}, in a transaction of "
            "another thread: SQLite cannot be used here; fork when no other thread is writing, or "
            "start the process by spawn"
        )

    def try_once(self) -> None:
        """In a forked child, find out whether SQLite works here, before anybody waits for us.

        A thread of the parent may have been inside SQLite and have held a lock of it: whoever
        wants that one here waits forever, and would do so with the turn to write.
        """
        with self._trial:
            if not self.is_tried:
                works = self.opener.works(self)
                self.is_tried = True
                if not works:
                    raise self.lose()

    def is_locked_by_nobody(self) -> bool:
        """Whether the lock that was met may be one that only a fork has left behind."""
        return self._use is not None and self._use.is_locked_by_nobody()

    def lose(self) -> StoreError:
        """Give up the file in this process, because its lock will never be free; why."""
        with self._lock:
            self._lost_in_fork = True
            if self._use is not None:
                self._use.lost = self._forked()
        return StoreError(self._forked())

    def take_writer(self) -> Connection:
        """The writing connection, for whoever has the turn; give it back soon."""
        now = monotonic()
        if now >= self._sure_until and self._file is not None:
            # Else what would be written now would be lost with a deleted file. Asked at most once
            # in five milliseconds, because it costs as much as a lock: what was written just
            # before the file was replaced is lost with it in any case.
            if now - self._looked >= _LOOK_SECONDS or self._is_replaced():
                self._look()
            else:
                self._sure_until = now + _SURE_SECONDS
        return self._take(self._writers, None)

    def give_writer(self, connection: Connection) -> None:
        self._give(self._writers, connection)

    def take_reader(self, timeout: float) -> Connection:
        """A connection that only reads; give it back soon."""
        self._look_now_and_then()
        return self._take(self._readers, timeout)

    def give_reader(self, connection: Connection) -> None:
        self._give(self._readers, connection)

    def take_watcher(self) -> Connection:
        """The connection that is asked whether anyone has committed."""
        self._look_now_and_then()
        return self._take(self._watchers, None)

    def give_watcher(self, connection: Connection) -> None:
        self._give(self._watchers, connection)

    def close(self) -> None:
        """Wait for those who are inside, then close everything."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._inside, timeout=self._timeout)
            self._close_idle()
            handover.leave(self)

    def before_fork(self) -> None:
        if self.hold_off(_FORK_PATIENCE) and not self._in_memory:
            with self._lock:
                self._close_idle()

    def after_fork(self, *, in_child: bool) -> None:
        if not in_child:
            self.go_on()
            return
        self._make_locks()
        self._inside.clear()
        self._shut = self._waiting = 0
        for kind in self._kinds:
            kind.out = 0
        self.is_tried = self._in_memory or not fork.is_of_threads()
        if self.opener.uses:
            self._forget_idle()
            for use in self.opener.abandon_all():
                use.lost = self._forked()
            self._lost_in_fork = True

    def hold_off(self, patience: float) -> bool:
        """Let nobody in, and wait until all are out; False if that took too long."""
        me = get_ident()
        with self._changed:
            self._shut += 1
            if me in self._inside:
                return False
            return self._changed.wait_for(lambda: not self._inside, patience)

    def part_with(self, *, abandon: bool) -> None:
        """Have no connection any more, while all are out."""
        with self._lock:
            if abandon:
                self._forget_idle()
                for use in self.opener.abandon_all():
                    use.discharge(self)
            self._close_idle()
            self.opener.driver = None

    def go_on(self) -> None:
        """Let them in again."""
        with self._changed:
            # Not below 0: `hold_off` may have been interrupted before it began.
            self._shut = max(0, self._shut - 1)
            self._changed.notify_all()

    def _make_locks(self) -> None:
        # The lock itself where nobody waits: a condition takes it in Python, at 10 × the cost.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._trial = threading.Lock()

    def _take(self, kind: _Kind, timeout: float | None) -> Connection:
        me = get_ident()
        with self._lock:
            # A thread that is inside already must not wait for `hold_off`, which waits for it.
            if (
                self._shut or self._closed or self._lost_in_fork or kind.out >= kind.limit
            ) and me not in self._inside:
                self._wait_to_get_in(kind, timeout)
            self._inside[me] = self._inside.get(me, 0) + 1
            kind.out += 1
            if kind.idle:
                return kind.idle.pop()
        try:
            return self._open(kind)
        except BaseException:
            with self._lock:
                self._go_out(kind)
            raise

    def _wait_to_get_in(self, kind: _Kind, timeout: float | None) -> None:
        self.check_usable()
        self._waiting += 1
        try:
            ready = self._changed.wait_for(
                lambda: self._closed or not (self._shut or kind.out >= kind.limit), timeout
            )
        finally:
            self._waiting -= 1
        self.check_usable()
        if not ready:
            raise StoreUnavailable(
                f"all {kind.limit} reading connections to {self._path} were busy for "
                f"{timeout:g} s: repeat the call, or raise max_connections"
            )

    def _open(self, kind: _Kind) -> Connection:
        connection = self.opener.open(kind.purpose, self)
        use = self.opener.uses.get(connection)
        if use is not None:
            self._file = self._file or use.file
            if use.file == self._file:
                self._use = use
        return connection

    def _give(self, kind: _Kind, connection: Connection) -> None:
        with self._lock:
            if len(kind.idle) < kind.most_idle and self._is_good(connection):
                kind.idle.append(connection)
                self._go_out(kind)
                return
        try:
            self.opener.close(connection, self)
        finally:
            with self._lock:
                self._go_out(kind)

    def _go_out(self, kind: _Kind) -> None:
        me = get_ident()
        times = self._inside.pop(me, 1) - 1
        if times:
            self._inside[me] = times
        kind.out -= 1
        if self._waiting or self._shut or self._closed:
            self._changed.notify_all()

    def _is_good(self, connection: Connection) -> bool:
        if self._in_memory:
            # There is no other way to what it holds.
            return not self._closed
        use = self.opener.uses.get(connection)
        return not (connection.broken or self._closed or use is None) and use.file == self._file

    def _look_now_and_then(self) -> None:
        if self._file is not None and monotonic() - self._looked >= _LOOK_SECONDS:
            self._look()

    def _is_replaced(self) -> bool:
        try:
            return identity(self._path) != self._file
        except OSError:
            return True

    def _look(self) -> None:
        """Notice, twice a second, that the file is not the one that was opened, or not only ours.

        Before going in: if our connections have to be closed, all must be out.
        """
        if self._closed or self._shut or get_ident() in self._inside:
            return
        try:
            found = identity(self._path)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._path} has vanished while this process had it open ({error.strerror}): "
                "put it back, or restart to begin with a new one"
            ) from error
        self._looked = monotonic()
        if found != self._file:
            # SQLite notices too, and so leaves the new file's -wal alone when it closes.
            with self._lock:
                self._file, self._use = found, None
                self._close_idle()
        use = self._use
        if use is None or use.switching or use.lost is not None:
            return
        libraries = count_at(f"{use.path}-shm")
        if libraries is None or libraries <= use.libraries:
            use.suspected = False
        else:
            use.meet_another_library()

    def _close_idle(self) -> None:
        for connection in self._forget_idle():
            self.opener.close(connection, self)

    def _forget_idle(self) -> list[Connection]:
        idle: list[Connection] = []
        for kind in self._kinds:
            idle += kind.idle
            kind.idle.clear()
        return idle
