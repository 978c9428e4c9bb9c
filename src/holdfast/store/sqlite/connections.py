"""The connections of one store in this process: one that writes, a few that read.

Owns their opening, their settings, and their life: handed out to one thread at a
time, closed before a fork and opened again on both sides, given up when they broke
or when the file was replaced under them. Never decides about transactions.

Invariant: while a fork happens no connection to a file is open in this process. A
thread that is using one is waited for, a moment, since transactions are short; if
it takes too long the fork goes ahead, and the *child* refuses to use the file,
because SQLite in it would believe in locks that only the parent holds. In the same way
all are closed when the program begins to use the file through another SQLite library
(`one_library`), and the next are of that.

A database in memory is one connection for everything. It survives a fork as a copy.
"""

from __future__ import annotations

import os
import sys
import threading
from threading import get_ident
from time import monotonic, time_ns

from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.store import fork
from holdfast.store.settings import SqliteDriver, StoreSettings
from holdfast.store.sqlite import database_file, faults
from holdfast.store.sqlite.drivers import connect_hook, one_library
from holdfast.store.sqlite.drivers.descriptors import Identity, identity
from holdfast.store.sqlite.drivers.driver import Connection, Driver, abandon, is_vulnerable, load

_LOOK_SECONDS = 0.5
_SURE_SECONDS = 0.005
"""A write is not made into a file that was replaced longer ago than this."""
_FORK_PATIENCE = 10.0
_TRIAL_SECONDS = 5.0
_WAL_LIMIT = 64 * 1024 * 1024
_CACHE_KIB = 16 * 1024
_CHECKPOINT_PAGES = 1_000
_SETTLED_NS = 50_000_000
"""The time of a file is as coarse as the kernel's tick: for so long, it may hide a second write."""


class Connections:
    """Connections to the file at `path`, which is resolved, or to memory."""

    def __init__(self, settings: StoreSettings, path: str) -> None:
        self._settings = settings
        self._path = path
        self._in_memory = path == faults.MEMORY
        self._limit = max(1, settings.max_connections - 1)
        self._driver: Driver | None = None
        self._vulnerable = False
        self._file: Identity | None = None
        self._files: dict[Connection, Identity] = {}
        self._looked = 0.0
        self._sure_until = 0.0
        self._make_lock()
        self._inside: dict[int, int] = {}
        self._shut = 0
        self._closed = False
        self._lost_in_fork = False
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._reading = 0
        self._waiting = 0
        self._watching = threading.Lock()
        self._watcher: Connection | None = None
        self._watchers = 0
        self._wal: tuple[int, int, int] | None = None
        self._version: object = None
        self._trial = threading.Lock()
        self._is_tried = not fork.is_of_threads()
        fork.join(self)

    @property
    def driver(self) -> Driver:
        """The library in use; of one who has a connection, because it changes when none is out."""
        assert self._driver is not None
        return self._driver

    @property
    def must_not_checkpoint(self) -> bool:
        """Whether connections of the library in use never checkpoint by themselves."""
        return self._vulnerable

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
        wants that one here waits for ever, and would do so with the turn to write.
        """
        if self._is_tried or self._in_memory:
            return
        with self._trial:
            self._try_in_time()

    def _try_in_time(self) -> None:
        if self._is_tried:
            return
        trial = threading.Thread(target=self._try, name="holdfast-trial", daemon=True)
        try:
            trial.start()
            trial.join(_TRIAL_SECONDS)
        except RuntimeError:
            # No thread can be had any more, at the end of the interpreter.
            pass
        self._is_tried = True
        if trial.is_alive():
            raise self.lose()

    def _try(self) -> None:
        try:
            connection = self._open("PRAGMA busy_timeout = 0")
            try:
                if connection.begin_immediate():
                    connection.rollback()
            finally:
                self._close(connection)
        except HoldfastError:
            # Whoever uses the file hears of it.
            pass

    def take_writer(self) -> Connection:
        """The writing connection, for whoever has the turn; give it back soon."""
        self._go_in(writing=True)
        try:
            with self._lock:
                connection, self._writer = self._writer, None
            return connection or self._open("PRAGMA busy_timeout = 0")
        except BaseException:
            self._go_out()
            raise

    def stay(self, connection: Connection) -> None:
        """Let nobody take the WAL away while this connection is open, once there is one."""
        file = self._files.get(connection)
        if file is not None and connection.execute("PRAGMA journal_mode") == [("wal",)]:
            # Only reading makes SQLite open the -shm file.
            connection.execute("PRAGMA schema_version")
            one_library.stay(self._path, file)

    def is_locked_by_nobody(self) -> bool:
        """Whether the lock that was met may be one that only a fork has left behind."""
        return self._file is not None and one_library.is_locked_by_nobody(self._file)

    def lose(self) -> StoreError:
        """Give up the file in this process, because its lock will never be free; why."""
        with self._lock:
            self._lost_in_fork = True
            if self._file is not None:
                one_library.lose(self._file, self._forked())
        return StoreError(self._forked())

    def give_writer(self, connection: Connection) -> None:
        try:
            with self._lock:
                kept = self._is_good(connection) and self._writer is None
                if kept:
                    self._writer = connection
            if not kept:
                self._close(connection)
        finally:
            self._go_out()

    def take_reader(self, timeout: float) -> Connection:
        """A connection that only reads; give it back soon."""
        if self._in_memory:
            return self.take_writer()
        self._go_in(reading=True, timeout=timeout)
        try:
            with self._lock:
                connection = self._readers.pop() if self._readers else None
            return connection or self._open("PRAGMA query_only = 1")
        except BaseException:
            self._go_out(reading=True)
            raise

    def give_reader(self, connection: Connection) -> None:
        if self._in_memory:
            self.give_writer(connection)
            return
        try:
            with self._lock:
                kept = self._is_good(connection)
                if kept:
                    self._readers.append(connection)
            if not kept:
                self._close(connection)
        finally:
            self._go_out(reading=True)

    def data_version(self) -> object:
        """Something that differs from last time if anyone may have committed since.

        SQLite is asked only if the WAL was written to since: a worker that has nothing to do
        looks ten times a second.
        """
        if self._in_memory:
            return None
        with self._watching:
            wal = self._look_at_wal()
            settled = wal is not None and time_ns() - wal[-1] > _SETTLED_NS
            if settled and wal == self._wal:
                return self._version
            self._go_in()
            try:
                with self._lock:
                    watcher, self._watcher = self._watcher, None
                if watcher is None:
                    watcher = self._open("PRAGMA query_only = 1")
                    self._watchers += 1
                try:
                    ((version,),) = watcher.execute("PRAGMA data_version")
                    # Numbers of two connections cannot be compared.
                    self._wal, self._version = wal, (self._watchers, version)
                    return self._version
                finally:
                    self._give_watcher(watcher)
            finally:
                self._go_out()

    def _look_at_wal(self) -> tuple[int, int, int] | None:
        try:
            # Looked at, never opened: closing it would drop SQLite's locks.
            found = os.stat(f"{self._path}-wal")  # noqa: PTH116 - ten times a second
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _give_watcher(self, watcher: Connection) -> None:
        with self._lock:
            kept = self._is_good(watcher)
            if kept:
                self._watcher = watcher
        if not kept:
            self._close(watcher)

    def close(self) -> None:
        """Wait for those who are inside, then close everything."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._inside, timeout=self._settings.lock_timeout)
            self._close_idle()
            one_library.leave(self)

    def before_fork(self) -> None:
        if self.hold_off(_FORK_PATIENCE) and not self._in_memory:
            with self._changed:
                self._close_idle()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._make_lock()
            self._start_in_child()
        else:
            self.go_on()

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
        with self._changed:
            if abandon:
                for file in self._abandon_all():
                    one_library.discharge(file, self)
            self._close_idle()
            self._driver = None
            self._wal = None

    def go_on(self) -> None:
        """Let them in again."""
        with self._changed:
            # Not below: whoever holds off may be interrupted before he has begun.
            self._shut = max(0, self._shut - 1)
            self._changed.notify_all()

    def _make_lock(self) -> None:
        # The lock itself where nobody waits: a condition takes it in Python, ten times as dear.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def _start_in_child(self) -> None:
        self._inside.clear()
        self._shut = 0
        self._reading = self._waiting = 0
        self._watching = threading.Lock()
        self._trial = threading.Lock()
        self._is_tried = not fork.is_of_threads()
        self._wal = None
        if self._files:
            for file in self._abandon_all():
                one_library.lose(file, self._forked())
            self._lost_in_fork = True

    def _abandon_all(self) -> list[Identity]:
        """Neither use nor close what is open: either would act on locks that are not ours."""
        files = list(self._files.values())
        abandon(self._files)
        self._files.clear()
        self._readers.clear()
        self._writer = self._watcher = None
        return files

    def _go_in(
        self, *, reading: bool = False, writing: bool = False, timeout: float | None = None
    ) -> None:
        me = get_ident()
        now = monotonic()
        if self._file is not None and (
            now - self._looked >= _LOOK_SECONDS
            or (writing and now >= self._sure_until and self._is_replaced(now))
        ):
            self._look(me)
        with self._lock:
            # Who is inside already must not wait for a door that waits for him.
            if (
                self._shut
                or self._closed
                or self._lost_in_fork
                or (reading and self._reading >= self._limit)
            ) and me not in self._inside:
                self._queue(reading, timeout)
            self._inside[me] = self._inside.get(me, 0) + 1
            self._reading += reading

    def _queue(self, reading: bool, timeout: float | None) -> None:
        def free() -> bool:
            full = reading and self._reading >= self._limit
            return self._closed or not (self._shut or full)

        self.check_usable()
        self._waiting += 1
        try:
            ready = self._changed.wait_for(free, timeout)
        finally:
            self._waiting -= 1
        self.check_usable()
        if not ready:
            raise StoreUnavailable(
                f"all {self._limit} reading connections to {self._path} were busy for "
                f"{timeout:g} s: repeat the call, or raise max_connections"
            )

    def _go_out(self, *, reading: bool = False) -> None:
        me = get_ident()
        with self._lock:
            times = self._inside.pop(me, 1) - 1
            if times:
                self._inside[me] = times
            self._reading -= reading
            if self._waiting or self._shut or self._closed:
                self._changed.notify_all()

    def _is_replaced(self, now: float) -> bool:
        """Whether what would be written now would be lost with a deleted file.

        Asked at most once in five milliseconds, because it costs as much as a lock: what was
        written just before the file was replaced is lost with it in any case.
        """
        try:
            if identity(self._path) != self._file:
                return True
        except OSError:
            return True
        self._sure_until = now + _SURE_SECONDS
        return False

    def _look(self, me: int) -> None:
        """Notice, twice a second, that the file is not the one that was opened, or not only ours.

        Before going in: if our handles have to be closed, all must be out.
        """
        if self._closed or self._shut or me in self._inside:
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
            with self._changed:
                self._file = found
                self._close_idle()
        one_library.watch(found)

    def _is_good(self, connection: Connection) -> bool:
        if self._in_memory:
            # There is no other way to what it holds.
            return not self._closed
        return not (connection.broken or self._closed) and (
            self._files.get(connection) == self._file
        )

    def _open(self, purpose: str) -> Connection:
        """Open a connection; `purpose` is the setting that makes it one to write or to read."""
        wanted = self._settings.driver
        if self._in_memory:
            return self._use(wanted or "apsw").open(self._path, 0.0)
        connect_hook.install()
        try:
            file, library = one_library.claim(self._path, wanted, self)
        except OSError as error:
            raise StoreUnavailable(faults.cannot_open(self._path)) from error
        try:
            driver = self._use(library)
            connection = driver.open(self._path, self._settings.lock_timeout)
        except BaseException:
            one_library.discharge(file, self)
            raise
        self._files[connection] = file
        self._file = self._file or file
        try:
            self._configure(connection)
            connection.execute(purpose)
            self.stay(connection)
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _use(self, library: SqliteDriver) -> Driver:
        if self._driver is None or self._driver.library != library:
            driver = load(library)
            database_file.check_library(driver)
            self._vulnerable = not self._in_memory and is_vulnerable(driver.version)
            self._driver = driver
        return self._driver

    def _configure(self, connection: Connection) -> None:
        pages = 0 if self._vulnerable else _CHECKPOINT_PAGES
        settings = {
            "synchronous": "FULL" if self._settings.durable else "NORMAL",
            "wal_autocheckpoint": pages,
            "journal_size_limit": _WAL_LIMIT,
            "cache_size": -_CACHE_KIB,
            "temp_store": "MEMORY",
            "mmap_size": 0,
            "foreign_keys": 0,
        }
        if sys.platform == "darwin":
            settings["fullfsync"] = 1
        for name, value in settings.items():
            connection.execute(f"PRAGMA {name} = {value}")

    def _close_idle(self) -> None:
        idle = [*self._readers, self._writer, self._watcher]
        self._readers.clear()
        self._writer = self._watcher = None
        for connection in idle:
            if connection is not None:
                self._close(connection)

    def _close(self, connection: Connection) -> None:
        if not self._in_memory and connection not in self._files:
            # Inherited through a fork in the middle of its use.
            abandon([connection])
            return
        file = self._files.pop(connection, None)
        if file is not None:
            one_library.closing(file)
        try:
            connection.close()
        except StoreError:
            abandon([connection])
            return
        if file is not None:
            one_library.discharge(file, self)
