"""How a connection to one database is opened, set up, and closed.

Owns the settings of our connections, and which use of a file (`handover.FileUse`) each of them
was counted in: claimed before it is opened, discharged after it was closed. Never decides who gets
a connection, or when all are closed: that is `connections`.
"""

from __future__ import annotations

import sys
import threading

from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.store.settings import SqliteDriver, StoreSettings
from holdfast.store.sqlite import database_file, faults
from holdfast.store.sqlite.drivers.driver import Connection, Driver, abandon, is_vulnerable, load
from holdfast.store.sqlite.one_library import connect_hook, handover
from holdfast.store.sqlite.one_library.handover import ConnectionOwner, FileUse

_TRIAL_SECONDS = 5.0
_WAL_LIMIT = 64 * 1024 * 1024
_CACHE_KIB = 16 * 1024
_CHECKPOINT_PAGES = 1_000

TO_WRITE = "PRAGMA busy_timeout = 0"
TO_READ = "PRAGMA query_only = 1"


class ConnectionOpener:
    """Opens connections for `owner`: to the file at `path`, which is resolved, or to memory."""

    def __init__(self, settings: StoreSettings, path: str) -> None:
        self._settings = settings
        self._path = path
        self._in_memory = path == faults.MEMORY
        self.driver: Driver | None = None
        """The library in use; it changes only while no connection is open."""
        self.must_not_checkpoint = False
        """Whether connections of that library never checkpoint by themselves."""
        self.uses: dict[Connection, FileUse] = {}

    def open(self, purpose: str, owner: ConnectionOwner) -> Connection:
        """Open a connection; `purpose` is the setting that makes it one to write or to read."""
        wanted = self._settings.driver
        if self._in_memory:
            return self._load(wanted or "apsw").open(self._path, 0.0)
        connect_hook.install()
        try:
            use = handover.claim(self._path, wanted, owner)
        except OSError as error:
            raise StoreUnavailable(faults.cannot_open(self._path)) from error
        try:
            driver = self._load(use.library)
            connection = driver.open(self._path, self._settings.lock_timeout)
        except BaseException:
            use.discharge(owner)
            raise
        self.uses[connection] = use
        try:
            self._set_up(connection)
            connection.execute(purpose)
            self.stay(connection)
        except BaseException:
            self.close(connection, owner)
            raise
        return connection

    def stay(self, connection: Connection) -> None:
        """Let nobody take the WAL away while this connection is open, once there is one."""
        use = self.uses.get(connection)
        if use is not None and connection.execute("PRAGMA journal_mode") == [("wal",)]:
            # Only reading makes SQLite open the -shm file.
            connection.execute("PRAGMA schema_version")
            use.stay()

    def close(self, connection: Connection, owner: ConnectionOwner) -> None:
        use = self.uses.pop(connection, None)
        if use is None and not self._in_memory:
            # Inherited through a fork in the middle of its use.
            abandon([connection])
            return
        if use is not None:
            use.closing()
        try:
            connection.close()
        except StoreError:
            abandon([connection])
            return
        if use is not None:
            use.discharge(owner)

    def abandon_all(self) -> list[FileUse]:
        """Neither use nor close what is open: either would act on locks that are not ours."""
        uses = list(self.uses.values())
        abandon(self.uses)
        self.uses.clear()
        return uses

    def works(self, owner: ConnectionOwner) -> bool:
        """Whether SQLite does not hang here: tried in a thread of its own, for some seconds."""
        trial = threading.Thread(
            target=self._try, args=(owner,), name="holdfast-trial", daemon=True
        )
        try:
            trial.start()
            trial.join(_TRIAL_SECONDS)
        except RuntimeError:
            # No thread can be had any more, at the end of the interpreter.
            pass
        return not trial.is_alive()

    def _try(self, owner: ConnectionOwner) -> None:
        try:
            connection = self.open(TO_WRITE, owner)
            try:
                connection.begin_immediate()
                connection.rollback()
            finally:
                self.close(connection, owner)
        except HoldfastError:
            # Whoever uses the file hears of it.
            pass

    def _load(self, library: SqliteDriver) -> Driver:
        if self.driver is None or self.driver.library != library:
            driver = load(library)
            database_file.check_library(driver)
            self.must_not_checkpoint = not self._in_memory and is_vulnerable(driver.version)
            self.driver = driver
        return self.driver

    def _set_up(self, connection: Connection) -> None:
        settings = {
            "synchronous": "FULL" if self._settings.durable else "NORMAL",
            "wal_autocheckpoint": 0 if self.must_not_checkpoint else _CHECKPOINT_PAGES,
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
