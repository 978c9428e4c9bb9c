"""Operations on a caller's own connection, inside the caller's transaction.

Owns nothing of that connection: it is never closed, and what was open is never
committed or rolled back. An operation that fails undoes its own writes only (a
savepoint), and the caller decides about the rest.

What "the caller's transaction" is, when none is open yet, depends on the connection:

    sqlite3, default          one is begun, as its own INSERT would; the caller commits
    sqlite3, autocommit       there is nothing to join: the operation commits by itself
    (isolation_level=None)
    apsw                      likewise

A transaction that we begin is IMMEDIATE and begun in our turn, so it does not starve
behind workers. In one that the caller began (Django's `atomic()` is a deferred BEGIN) we write
before we read: SQLite lets a transaction that has read wait for nobody, it fails at once if
somebody else is writing. If the lock is not free, we wait for it in our turn; a transaction that
has it already must not, because whoever has the turn may be waiting for the caller's commit.
One in which the caller has read cannot be saved if others have written since; the error says so.

Nobody is rung when the caller commits, because that cannot be seen; listeners notice the commit by
themselves (`sqlite.commit_watch`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.errors import ConfigError, StoreError
from holdfast.store import statement
from holdfast.store.op import Mode, Op, Rows, Statement, drive
from holdfast.store.settings import SqliteDriver, StoreSettings
from holdfast.store.sqlite import database_file, doorbell, faults
from holdfast.store.sqlite.binding import SqliteBinder
from holdfast.store.sqlite.clock import Clock
from holdfast.store.sqlite.drivers.driver import Connection, is_vulnerable, load
from holdfast.store.sqlite.one_library import autocheckpoint, connect_hook, handover
from holdfast.store.sqlite.store import Session
from holdfast.store.sqlite.turns import turnstile
from holdfast.store.sqlite.turns.busy_wait import BusyWait

if TYPE_CHECKING:
    import sqlite3

    import apsw

T = TypeVar("T")

_binder = SqliteBinder(statement.texts)

_TAKE_WRITE_LOCK = "UPDATE holdfast_meta SET at = at WHERE 0"


class CallersConnection:
    """A caller's connection to the file of a store."""

    def __init__(
        self,
        connection: sqlite3.Connection | apsw.Connection,
        settings: StoreSettings,
        *,
        texts: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        name = library_of(connection)
        if name is None:
            raise ConfigError(f"{type(connection).__name__} is not a connection to SQLite")
        self._timeout = settings.lock_timeout
        self._raw: Any = connection
        driver = load(name)
        self._connection = driver.adopt(connection)
        self._path = _path_of(self._connection, settings)
        connect_hook.install()
        handover.note(self._path, name)
        self._binder = _binder if texts is None else SqliteBinder(texts)
        self._clock = Clock(settings.clock)
        self._turns = turnstile.of(self._path)
        self._doorbell = doorbell.of(self._path)
        if is_vulnerable(driver.version):
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {autocheckpoint.RARELY}")

    def run(self, op: Op[T]) -> T:
        """Run one operation in the caller's transaction."""
        if op.mode is Mode.READ:
            return drive(op, self._session().execute)
        if self._connection.in_transaction:
            return self._join(op)
        if _commits_by_itself(self._raw):
            return self._stand_alone(op)
        self._turns.enter(self._timeout)
        try:
            self._begin()
        finally:
            self._turns.leave()
        return self._join(op)

    def execute(self, asked: Statement) -> Rows:
        """Run one statement; whoever calls this looks after the transaction."""
        return self._session().execute(asked)

    def _join(self, op: Op[T]) -> T:
        self._connection.execute("SAVEPOINT holdfast")
        try:
            self._take_write_lock()
            value = drive(op, self._session().execute)
            self._connection.execute("RELEASE holdfast")
        except BaseException:
            self._undo("ROLLBACK TO holdfast", "RELEASE holdfast")
            raise
        return value

    def _stand_alone(self, op: Op[T]) -> T:
        self._turns.enter(self._timeout)
        try:
            self._begin()
            try:
                session = self._session()
                value = drive(op, session.execute)
                self._connection.commit()
            except BaseException:
                self._undo("ROLLBACK")
                raise
        finally:
            self._turns.leave()
        for hint in session.hints:
            self._doorbell.ring(hint.channel, hint.queues)
        return value

    def _take_write_lock(self) -> None:
        if self._connection.write_at_once(_TAKE_WRITE_LOCK):
            return
        self._turns.enter(self._timeout)
        try:
            patience = BusyWait(self._path, self._timeout)
            while not self._connection.write_at_once(_TAKE_WRITE_LOCK):
                patience.wait()
        finally:
            self._turns.leave()

    def _begin(self) -> None:
        patience = BusyWait(self._path, self._timeout)
        while True:
            try:
                self._connection.begin_immediate()
                return
            except faults.Busy:
                patience.wait()

    def _session(self) -> Session:
        self._clock.recall(self._connection)
        return Session(self._connection, self._binder, self._clock.now())

    def _undo(self, *statements: str) -> None:
        # A full disk, say, has rolled everything back already.
        if self._connection.in_transaction:
            for text in statements:
                try:
                    self._connection.execute(text)
                except StoreError:
                    return


def library_of(connection: object) -> SqliteDriver | None:
    """Which of the two libraries a connection is of; None if it is of neither."""
    names: tuple[SqliteDriver, ...] = ("sqlite3", "apsw")
    for name in names:
        module = sys.modules.get(name)
        if module is not None and isinstance(connection, module.Connection):
            return name
    return None


def _path_of(connection: Connection, settings: StoreSettings) -> str:
    """The store's file, which must be one of the connection's databases."""
    if settings.in_memory:
        raise ConfigError(
            "the tasks of this app are in memory, where only the app itself can reach them: "
            "use a file, to which your connection and the app can both write"
        )
    wanted = database_file.resolve(settings)
    files = [row[2] for row in connection.execute("PRAGMA database_list") if row[2]]
    if not any(_is_same(file, wanted) for file in files):
        raise ConfigError(
            f"the connection given to `using` is to {files[0] if files else 'memory'}, but the "
            f"tasks of this app are in {wanted}: they commit together only in one file"
        )
    return wanted


def _is_same(file: str, wanted: str) -> bool:
    try:
        return os.path.realpath(file) == wanted or Path(file).samefile(wanted)
    except OSError:
        return False


def _commits_by_itself(raw: Any) -> bool:
    """Whether the connection, outside a transaction, commits every statement at once."""
    if library_of(raw) == "apsw":
        return True
    # Python 3.12 has the attribute `autocommit`: True, False, or -1 for the older control.
    mode = getattr(raw, "autocommit", -1)
    return raw.isolation_level is None if mode == -1 else bool(mode)
