"""Connections of the standard library's `sqlite3`.

Owns the calls into it and nothing else. For processes whose own connections to
the same file are of this library (Django, SQLAlchemy): two SQLite libraries in
one process on one file would cancel each other's locks.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from holdfast.core.errors import ConfigError, StoreError
from holdfast.store.op import Row
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.drivers import foreign_text
from holdfast.store.sqlite.drivers.driver import Parameters, Version

_STATEMENTS = 256
_NOT_UTF8 = "Could not decode to UTF-8"
_RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)


class Sqlite3Connection:
    """One connection of `sqlite3`, in its autocommit mode: we begin and commit."""

    library: Literal["sqlite3"] = "sqlite3"

    def __init__(self, raw: sqlite3.Connection, path: str) -> None:
        self._raw = raw
        self._cursor = sqlite3.Cursor(raw)
        # Tuples, whatever a caller's connection makes of rows for its owner.
        self._cursor.row_factory = None
        self._path = path
        self.broken = False

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    @property
    def total_changes(self) -> int:
        return self._raw.total_changes

    @property
    def changes(self) -> int:
        return self._cursor.rowcount

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        sql = known_here(sql)
        returning = foreign_text.as_bytes(sql)
        try:
            if returning is not None:
                found = self._cursor.execute(returning, parameters).fetchall()
                return foreign_text.from_bytes(found)
            return self._cursor.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            if _NOT_UTF8 in str(error):
                return self._query_leniently(sql, parameters)
            raise self._fault(error) from error

    def _query_leniently(self, sql: str, parameters: Parameters) -> list[Row]:
        """Run a query again, in which some text is not UTF-8."""
        given, self._raw.text_factory = self._raw.text_factory, foreign_text.text
        try:
            return self._cursor.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._fault(error) from error
        finally:
            self._raw.text_factory = given

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> list[Row]:
        try:
            return _execute_many(self._cursor, sql, rows)
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        execute = self._cursor.execute
        try:
            return {place for place, row in enumerate(rows) if not execute(sql, row).rowcount}
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def write_alone(self, sql: str, parameters: Parameters) -> int | None:
        try:
            return self._cursor.execute(sql, parameters).rowcount
        except sqlite3.Error as error:
            if faults.is_busy(result_code(error)):
                return None
            raise self._fault(error, committing=True) from error

    def script(self, sql: str) -> None:
        # Not executescript(): that commits an open transaction first.
        for statement in split(sql):
            self.execute(statement)

    def begin_immediate(self) -> bool:
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if faults.is_busy(result_code(error)):
                return False
            raise self._fault(error) from error
        return True

    def write_at_once(self, sql: str) -> bool:
        try:
            ((patience,),) = self._cursor.execute("PRAGMA busy_timeout").fetchall()
            self._cursor.execute("PRAGMA busy_timeout = 0")
            try:
                self._cursor.execute(sql)
            finally:
                self._cursor.execute(f"PRAGMA busy_timeout = {patience}")
        except sqlite3.Error as error:
            if faults.may_pass(result_code(error)):
                return False
            raise self._fault(error) from error
        return True

    def begin_read(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._fault(error, committing=True) from error

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def interrupt(self) -> None:
        self._raw.interrupt()

    def close(self) -> None:
        try:
            self._raw.close()
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error, *, committing: bool = False) -> StoreError:
        code = result_code(error)
        self.broken = self.broken or faults.is_broken(code)
        return faults.translate(code, str(error), self._path, committing=committing)


class Sqlite3Driver:
    """Opens connections of the standard library."""

    library: Literal["sqlite3"] = "sqlite3"

    @property
    def version(self) -> Version:
        major, minor, patch = sqlite3.sqlite_version_info[:3]
        return major, minor, patch

    def open(self, path: str, busy_timeout: float) -> Sqlite3Connection:
        # As a URI because only that has a mode which does not create a missing file.
        target = path if path == faults.MEMORY else f"{Path(path).as_uri()}?mode=rw"
        try:
            raw = sqlite3.connect(
                target,
                timeout=busy_timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
                uri=path != faults.MEMORY,
            )
        except sqlite3.Error as error:
            raise faults.translate(result_code(error), str(error), path) from error
        return Sqlite3Connection(raw, path)


def adopt(raw: sqlite3.Connection) -> Sqlite3Connection:
    """A caller's own connection, left as it is."""
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


@cache
def known_here(sql: str) -> str:
    """A text in the functions of this version: octet_length() is younger than many."""
    if sqlite3.sqlite_version_info >= (3, 43):
        return sql
    return sql.replace("octet_length(", "length(")


def _execute_many(cursor: sqlite3.Cursor, sql: str, rows: Iterable[Parameters]) -> list[Row]:
    """Run a statement for each row; `executemany` would drop the rows of RETURNING."""
    if not _RETURNING.search(sql):
        cursor.executemany(sql, rows)
        return []
    found: list[Row] = []
    for row in rows:
        found += cursor.execute(sql, row).fetchall()
    return found


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


def result_code(error: sqlite3.Error) -> int:
    """SQLite's extended code, or plain ERROR for what the module itself complains about."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return faults.ERROR if code is None else code
