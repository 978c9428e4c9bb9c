"""Connections of the standard library's `sqlite3`.

Owns what differs from apsw (`driver` has the rest). For processes whose own connections to
the same file are of this library (Django, SQLAlchemy): two SQLite libraries in
one process on one file would cancel each other's locks.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

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


class Sqlite3Connection(Connection):
    """One connection of `sqlite3`, in its autocommit mode: we begin and commit."""

    _error = sqlite3.Error

    def __init__(self, raw: sqlite3.Connection, path: str) -> None:
        cursor = sqlite3.Cursor(raw)
        # Tuples, whatever a caller's connection makes of rows for its owner.
        cursor.row_factory = None
        super().__init__(
            raw,
            cursor,
            path,
            changes=lambda: cursor.rowcount,
            total_changes=lambda: raw.total_changes,
        )

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return super().execute(known_here(sql), parameters)

    def _query_leniently(self, sql: str, parameters: Parameters) -> list[Row]:
        given, self._raw.text_factory = self._raw.text_factory, text
        try:
            found: list[Row] = self._cursor.execute(sql, parameters).fetchall()
            return found
        finally:
            self._raw.text_factory = given

    def script(self, sql: str) -> None:
        # Not executescript(): that commits an open transaction first.
        for statement in split(sql):
            self.execute(statement)

    def _write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        execute = self._cursor.execute
        return {place for place, row in enumerate(rows) if not execute(sql, row).rowcount}

    def _write_at_once(self, sql: str) -> None:
        execute = self._cursor.execute
        ((patience,),) = execute("PRAGMA busy_timeout").fetchall()
        execute("PRAGMA busy_timeout = 0")
        try:
            execute(sql)
        finally:
            execute(f"PRAGMA busy_timeout = {patience}")


def _open(path: str, busy_timeout: float) -> Sqlite3Connection:
    # As a URI because only that has a mode which does not create a missing file.
    target = path if path == faults.MEMORY else f"{Path(path).as_uri()}?mode=rw"
    try:
        raw = sqlite3.connect(
            target,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
            uri=path != faults.MEMORY,
        )
    except sqlite3.Error as error:
        raise faults.translate(result_code(error), str(error), path) from error
    if sys.version_info >= (3, 12):
        # Or some statements are parsed and planned anew for each execution (see `apsw_driver`).
        raw.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, True)
    return Sqlite3Connection(raw, path)


def _adopt(raw: sqlite3.Connection) -> Sqlite3Connection:
    if raw.text_factory is not str:
        raise ConfigError(
            "the connection given to `using` has a text_factory of its own, so its texts cannot "
            "be read here: use one that leaves them as str"
        )
    try:
        files = [row[2] for row in sqlite3.Cursor(raw).execute("PRAGMA database_list")]
        return Sqlite3Connection(raw, files[0] or faults.MEMORY)
    except sqlite3.ProgrammingError as error:
        # Closed, or of another thread.
        raise ConfigError(f"the connection given to `using` cannot be used: {error}") from error


_major, _minor, _patch = sqlite3.sqlite_version_info[:3]
DRIVER = Driver(library="sqlite3", version=(_major, _minor, _patch), open=_open, adopt=_adopt)


@cache
def known_here(sql: str) -> str:
    """The text of a file in the functions of this version: older SQLite lacks octet_length().

    It alone tells the size of a text of 300 MB without loading it, as the SQLite of apsw does.
    """
    if sqlite3.sqlite_version_info >= (3, 43):
        return sql
    return sql.replace("octet_length(", "length(")


def split(script: str) -> list[str]:
    """The statements of a script, in order; a trigger's body is not cut."""
    statements: list[str] = []
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            statements.append(gathered)
            gathered = ""
    if gathered.strip():
        statements.append(gathered)
    return statements
