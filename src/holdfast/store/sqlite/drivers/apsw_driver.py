"""Connections of apsw, which brings its own SQLite.

Owns the calls into apsw and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal
from weakref import WeakSet

import apsw

from holdfast.core.errors import ConfigError, StoreError
from holdfast.store.op import Row
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.drivers import foreign_text
from holdfast.store.sqlite.drivers.driver import Parameters, Version

_STATEMENTS = 256
_opened: WeakSet[apsw.Connection] = WeakSet()
"""Those that we have opened."""


class ApswConnection:
    """One apsw connection, with a single cursor that every call reuses."""

    library: Literal["apsw"] = "apsw"

    def __init__(self, raw: apsw.Connection, path: str) -> None:
        self._raw = raw
        self._cursor = apsw.Cursor(raw)
        self._path = path
        self.broken = False

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    @property
    def total_changes(self) -> int:
        return self._raw.total_changes()

    @property
    def changes(self) -> int:
        return self._raw.changes()

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        returning = foreign_text.as_bytes(sql)
        try:
            if returning is not None:
                found = self._cursor.execute(returning, parameters).fetchall()
                return foreign_text.from_bytes(found)
            return self._cursor.execute(sql, parameters).fetchall()
        except UnicodeDecodeError:
            return self._query_with_types(sql, parameters)
        except apsw.Error as error:
            raise self._fault(error) from error

    def _query_with_types(self, sql: str, parameters: Parameters) -> list[Row]:
        """Run a query again, in which some text is not UTF-8."""
        try:
            columns = len(self._cursor.execute(sql, parameters).description)
            asked = foreign_text.with_types(sql, columns)
            return foreign_text.from_types(self._cursor.execute(asked, parameters).fetchall())
        except apsw.Error as error:
            raise self._fault(error) from error

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> list[Row]:
        try:
            return self._cursor.executemany(sql, rows).fetchall()
        except apsw.Error as error:
            raise self._fault(error) from error

    def write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        idle: set[int] = set()
        try:
            if len(rows) == 1:
                self._cursor.execute(sql, rows[0])
                return () if self._raw.changes() else (0,)
            self._cursor.executemany(sql, self._watch(rows, idle))
        except apsw.Error as error:
            raise self._fault(error) from error
        return idle

    def _watch(self, rows: Iterable[Parameters], idle: set[int]) -> Iterator[Parameters]:
        # Asked for the next row, apsw has run the statement for the one before. (The total of
        # changes would do, if it did not count what a user's triggers write.)
        changes = self._raw.changes
        for place, row in enumerate(rows):
            yield row
            if not changes():
                idle.add(place)

    def write_alone(self, sql: str, parameters: Parameters) -> int | None:
        try:
            self._cursor.execute(sql, parameters)
        except apsw.BusyError:
            return None
        except apsw.Error as error:
            raise self._fault(error, committing=True) from error
        return self._raw.changes()

    def script(self, sql: str) -> None:
        self.execute(sql)

    def begin_immediate(self) -> bool:
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise self._fault(error) from error
        return True

    def write_at_once(self, sql: str) -> bool:
        # How long a caller's connection waits is left to its own handler: there is no way to
        # learn it, and so none to put it back.
        try:
            self._cursor.execute(sql)
        except apsw.Error as error:
            if faults.may_pass(result_code(error)):
                return False
            raise self._fault(error) from error
        return True

    def begin_read(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise self._fault(error, committing=True) from error

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def interrupt(self) -> None:
        self._raw.interrupt()

    def close(self) -> None:
        try:
            self._raw.close()
        except apsw.Error as error:
            raise self._fault(error) from error

    def plain_rows(self) -> None:
        """Get tuples, whatever the connection makes of rows for its owner."""
        self._cursor.row_trace = lambda cursor, row: row

    def _fault(self, error: apsw.Error, *, committing: bool = False) -> StoreError:
        code = result_code(error)
        self.broken = self.broken or faults.is_broken(code)
        return faults.translate(code, str(error), self._path, committing=committing)


class ApswDriver:
    """Opens connections of apsw."""

    library: Literal["apsw"] = "apsw"

    @property
    def version(self) -> Version:
        number = apsw.SQLITE_VERSION_NUMBER
        return number // 1_000_000, number // 1_000 % 1_000, number % 1_000

    def open(self, path: str, busy_timeout: float) -> ApswConnection:
        # Without SQLITE_OPEN_CREATE: a file that vanished is an error, never an empty database.
        flags = apsw.SQLITE_OPEN_READWRITE
        if path == faults.MEMORY:
            flags |= apsw.SQLITE_OPEN_CREATE
        try:
            raw = apsw.Connection(path, flags=flags, statementcachesize=_STATEMENTS)
        except apsw.Error as error:
            raise faults.translate(result_code(error), str(error), path) from error
        _opened.add(raw)
        raw.set_busy_timeout(int(busy_timeout * 1_000))
        return ApswConnection(raw, path)


def adopt(raw: apsw.Connection) -> ApswConnection:
    """A caller's own connection, left as it is."""
    try:
        path = raw.filename
    except apsw.Error as error:
        raise ConfigError(f"the connection given to `using` cannot be used: {error}") from error
    connection = ApswConnection(raw, path)
    if raw.row_trace is not None:
        connection.plain_rows()
    return connection


def open_files(*, ours: bool) -> list[str]:
    """The files that connections of apsw in this process have open; with or without ours."""
    return [
        path
        for connection in apsw.connections()
        if ours or connection not in _opened
        for path in _files(connection)
    ]


def _files(connection: apsw.Connection) -> list[str]:
    try:
        names = connection.db_names()
        return [path for path in map(connection.db_filename, names) if path]
    except apsw.Error:
        # Closed meanwhile, or at work in another thread: then the main one must do.
        try:
            return [connection.filename]
        except apsw.Error:
            return []


def result_code(error: apsw.Error) -> int:
    """SQLite's extended code, or plain ERROR for what apsw itself complains about."""
    code: int | None = getattr(error, "extendedresult", None)
    return faults.ERROR if code is None else code
