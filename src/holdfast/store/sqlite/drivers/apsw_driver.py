"""Connections of apsw, which brings its own SQLite.

Owns what differs from the standard library (`driver` has the rest), and knows which connections
of apsw in this process are not ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from weakref import WeakSet

import apsw

from holdfast.core.errors import ConfigError
from holdfast.store.op import Row
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.drivers.driver import (
    STATEMENTS,
    Connection,
    Driver,
    Parameters,
    result_code,
    text,
)

_opened: WeakSet[apsw.Connection] = WeakSet()
"""Those that we have opened."""


class ApswConnection(Connection):
    """One connection of apsw."""

    _error = apsw.Error

    def __init__(self, raw: apsw.Connection, path: str) -> None:
        cursor = apsw.Cursor(raw)
        if raw.row_trace is not None:
            # Tuples, whatever a caller's connection makes of rows for its owner.
            cursor.row_trace = lambda cursor, row: row
        super().__init__(raw, cursor, path, changes=raw.changes, total_changes=raw.total_changes)

    def _query_leniently(self, sql: str, parameters: Parameters) -> list[Row]:
        columns = len(self._cursor.execute(sql, parameters).description)
        rows = self._cursor.execute(_with_types(sql, columns), parameters).fetchall()
        return [
            tuple(
                text(value) if kind == "text" else value
                for kind, value in zip(row[::2], row[1::2], strict=True)
            )
            for row in rows
        ]

    def script(self, sql: str) -> None:
        self.execute(sql)

    def _write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        idle: set[int] = set()
        self._cursor.executemany(sql, self._watch(rows, idle))
        return idle

    def _watch(self, rows: Iterable[Parameters], idle: set[int]) -> Iterator[Parameters]:
        # Asked for the next row, apsw has run the statement for the one before. (The total of
        # changes would do, if it did not count what a user's triggers write.)
        changes = self._changes
        for place, row in enumerate(rows):
            yield row
            if not changes():
                idle.add(place)

    def _write_at_once(self, sql: str) -> None:
        # How long a caller's connection waits is left to its own handler: there is no way to
        # learn it, and so none to put it back.
        self._cursor.execute(sql)


def _with_types(sql: str, columns: int) -> str:
    """A query around a query: for each column the type and then the value, texts as bytes."""
    names = [f"c{place}" for place in range(columns)]
    values = ", ".join(
        f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END"
        for c in names
    )
    query = sql.rstrip().rstrip(";")
    return f"WITH asked ({', '.join(names)}) AS ({query}) SELECT {values} FROM asked"


def _open(path: str, busy_timeout: float) -> ApswConnection:
    # Without SQLITE_OPEN_CREATE: a file that vanished is an error, never an empty database.
    flags = apsw.SQLITE_OPEN_READWRITE
    if path == faults.MEMORY:
        flags |= apsw.SQLITE_OPEN_CREATE
    try:
        raw = apsw.Connection(path, flags=flags, statementcachesize=STATEMENTS)
    except apsw.Error as error:
        raise faults.translate(result_code(error), str(error), path) from error
    _opened.add(raw)
    raw.set_busy_timeout(int(busy_timeout * 1_000))
    # Or a statement with LIMIT ?1 is parsed and planned anew for each execution, in case that what
    # is bound makes another plan better. A claim took twice as long.
    raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return ApswConnection(raw, path)


def _adopt(raw: apsw.Connection) -> ApswConnection:
    try:
        return ApswConnection(raw, raw.filename)
    except apsw.Error as error:
        raise ConfigError(f"the connection given to `using` cannot be used: {error}") from error


_number = apsw.SQLITE_VERSION_NUMBER
DRIVER = Driver(
    library="apsw",
    version=(_number // 1_000_000, _number // 1_000 % 1_000, _number % 1_000),
    open=_open,
    adopt=_adopt,
)


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
