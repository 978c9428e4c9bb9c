"""One connection, of either SQLite library: apsw or the standard `sqlite3`.

Owns what the engine asks of a connection, all that is the same for both libraries, and the
choice of the library; `apsw_driver` and `sqlite3_driver` have what differs. Never decides when a
transaction begins: that is the store's. What a library raises is turned into the error tree
(`faults.translate`), so none of its exceptions escapes.

apsw is the default because it carries its own, current SQLite. The one inside
most Pythons can corrupt a WAL file when a passive checkpoint races a writer
(`is_vulnerable`); on such a library connections never checkpoint by themselves, and the
store does it for them where it cannot race (`checkpoint`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar, TypeAlias

from holdfast.core.errors import ConfigError, StoreError
from holdfast.store.op import Row
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite import faults

Parameters: TypeAlias = Sequence[Any]
Version: TypeAlias = tuple[int, int, int]

STATEMENTS = 256
"""How many prepared statements a connection keeps."""

_STEPS = 20_000
"""Of SQLite's machine between two looks at the clock: about a millisecond."""
_FIXED_LINES = {(3, 44): 6, (3, 50): 7, (3, 51): 3}
_NOT_UTF8 = "Could not decode to UTF-8"


class Connection(ABC):
    """One open connection. Used by one thread at a time, through a single cursor."""

    _error: ClassVar[type[Exception]]
    """What the library raises."""

    def __init__(
        self,
        raw: Any,
        cursor: Any,
        path: str,
        *,
        changes: Callable[[], int],
        total_changes: Callable[[], int],
    ) -> None:
        self._raw = raw
        self._cursor = cursor
        self._path = path
        self._changes = changes
        self.total_changes = total_changes
        """Rows written through this connection so far."""
        self.broken = False
        """Whether it reported something after which it should be opened anew."""
        self._patience: float | None = None
        self._until = 0.0
        self._is_watched = False

    @property
    def in_transaction(self) -> bool:
        return bool(self._raw.in_transaction)

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Run one statement; what it returns.

        Both libraries refuse a whole answer for one text that is not UTF-8. Then a query is run
        again, and such bytes become lone surrogates (`text`), so that the row comes through and
        whoever decodes it can say which column is wrong. A change cannot be made twice, so the
        texts that it returns are asked for as bytes (`CAST(column AS BLOB)`, see `from_bytes`).
        """
        if self._patience is not None:
            self._until = monotonic() + self._patience
        try:
            rows: list[Row] = self._cursor.execute(sql, parameters).fetchall()
            return rows
        except UnicodeDecodeError:
            return self._query_again(sql, parameters)
        except self._error as error:
            if _NOT_UTF8 in str(error):
                return self._query_again(sql, parameters)
            raise self._fault(error) from error

    def bound(self, seconds: float | None) -> None:
        """End every statement of `execute` that takes longer; None: none from now on."""
        if seconds is not None and not self._is_watched:
            self._is_watched = True
            self._raw.set_progress_handler(self._has_taken_too_long, _STEPS)
        self._patience = seconds

    def _has_taken_too_long(self) -> bool:
        return self._patience is not None and monotonic() > self._until

    def _query_again(self, sql: str, parameters: Parameters) -> list[Row]:
        try:
            return self._query_leniently(sql, parameters)
        except self._error as error:
            raise self._fault(error) from error

    @abstractmethod
    def _query_leniently(self, sql: str, parameters: Parameters) -> list[Row]: ...

    @abstractmethod
    def script(self, sql: str) -> None:
        """Run several statements without parameters, inside the open transaction."""

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> list[Row]:
        """Run one statement for each row; whatever they return, in order."""
        # Not `executemany`: that of sqlite3 drops the rows of RETURNING.
        return [found for row in rows for found in self.execute(sql, row)]

    def write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        """Run one statement that returns nothing for each row; where it wrote nothing."""
        try:
            if len(rows) == 1:
                self._cursor.execute(sql, rows[0])
                return () if self._changes() else (0,)
            return self._write_many(sql, rows)
        except self._error as error:
            raise self._fault(error) from error

    @abstractmethod
    def _write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]: ...

    def write_alone(self, sql: str, parameters: Parameters) -> bool:
        """Run one statement that is a transaction of its own; whether it wrote anything."""
        try:
            self._cursor.execute(sql, parameters)
        except self._error as error:
            raise self._fault(error, committing=True) from error
        return bool(self._changes())

    def begin_immediate(self) -> None:
        """Begin a transaction that may write; `faults.Busy` if another connection is writing."""
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except self._error as error:
            raise self._fault(error) from error

    def write_at_once(self, sql: str) -> bool:
        """Run a statement that writes, in the open transaction, without waiting for a lock.

        False if another connection is writing; an error if the transaction can never write.
        """
        try:
            self._write_at_once(sql)
        except self._error as error:
            if faults.may_pass(result_code(error)):
                return False
            raise self._fault(error) from error
        return True

    @abstractmethod
    def _write_at_once(self, sql: str) -> None: ...

    def begin_read(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except self._error as error:
            raise self._fault(error, committing=True) from error

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def close(self) -> None:
        try:
            self._raw.close()
        except self._error as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception, *, committing: bool = False) -> StoreError:
        code = result_code(error)
        self.broken = self.broken or faults.is_broken(code)
        return faults.translate(code, str(error), self._path, committing=committing)


@dataclass(frozen=True, slots=True)
class Driver:
    """One library."""

    library: SqliteDriver
    version: Version
    """The version of SQLite inside the library."""
    open: Callable[[str, float], Connection]
    """Open an existing file (never creates one), or a new database in memory: the path, and how
    long the library itself waits for a lock."""
    adopt: Callable[[Any], Connection]
    """Use a caller's own connection, left as it is."""


def load(library: SqliteDriver) -> Driver:
    """The driver of this name; imports its library."""
    if library == "sqlite3":
        from holdfast.store.sqlite.drivers import sqlite3_driver

        return sqlite3_driver.DRIVER
    try:
        from holdfast.store.sqlite.drivers import apsw_driver
    except ImportError as error:
        raise ConfigError(
            f"the library apsw cannot be imported ({error}): install it, or choose "
            "driver='sqlite3'",
            option="driver",
        ) from error
    return apsw_driver.DRIVER


def is_vulnerable(version: Version) -> bool:
    """Whether this SQLite has the WAL-reset bug: 3.7.0 to 3.51.2, except for two backports."""
    if not (3, 7, 0) <= version < (3, 51, 3):
        return False
    fixed = _FIXED_LINES.get(version[:2])
    return fixed is None or version[2] < fixed


def result_code(error: Exception) -> int:
    """SQLite's extended code, or plain ERROR for what a library itself complains about."""
    code: int | None = getattr(error, "extendedresult", getattr(error, "sqlite_errorcode", None))
    return faults.ERROR if code is None else code


def text(raw: bytes) -> str:
    """Bytes as text; those that are not UTF-8 as lone surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def from_bytes(rows: Sequence[Row]) -> list[Row]:
    """Rows whose bytes are all texts."""
    return [tuple(text(v) if type(v) is bytes else v for v in row) for row in rows]


abandoned: list[Connection] = []
"""Connections that must neither be used nor closed any more, until the process has ended.

Closing one acts on locks: on those of the parent, if it came here through a fork, or on those of
another library of this process. So not even the end of the interpreter, which clears all modules,
may close them.
"""


def abandon(connections: Iterable[Connection]) -> None:
    """Never close these."""
    import ctypes

    for connection in connections:
        abandoned.append(connection)
        # An extra reference, so it is never freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
