"""The seam over the two SQLite libraries: apsw and the standard `sqlite3`.

Owns what the engine asks of a connection, and the choice of the library. Never
decides when a transaction begins: that is the store's. Each implementation turns
its library's exceptions into the error tree (`fault.translate`), so none escapes.

apsw is the default because it carries its own, current SQLite. The one inside
most Pythons can corrupt a WAL file when a passive checkpoint races a writer
(`is_vulnerable`); on such a library connections never checkpoint by themselves, and the
store does it for them where it cannot race (`checkpoint`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.store.op import Row
from holdfast.store.settings import SqliteDriver

Parameters: TypeAlias = Sequence[Any]
Version: TypeAlias = tuple[int, int, int]

_FIXED_LINES = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


class Connection(Protocol):
    """One open connection. Used by one thread at a time."""

    broken: bool
    """Whether it reported something after which it should be opened anew."""

    @property
    def library(self) -> SqliteDriver: ...

    @property
    def in_transaction(self) -> bool: ...

    @property
    def total_changes(self) -> int:
        """Rows written through this connection so far."""
        ...

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]: ...

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> list[Row]:
        """Run one statement for each row; whatever they return, in order."""
        ...

    def write_many(self, sql: str, rows: Sequence[Parameters]) -> Collection[int]:
        """Run one statement that returns nothing for each row; where it wrote nothing."""
        ...

    def write_alone(self, sql: str, parameters: Parameters) -> int | None:
        """Run one statement as a transaction of its own.

        How many rows it has written; None, and nothing is, if somebody else is writing.
        """
        ...

    def script(self, sql: str) -> None:
        """Run several statements without parameters, inside the open transaction."""
        ...

    @property
    def changes(self) -> int:
        """How many rows the last statement has written, but for what triggers wrote."""
        ...

    def begin_immediate(self) -> bool:
        """Begin a transaction that may write; False if somebody else is writing."""
        ...

    def write_at_once(self, sql: str) -> bool:
        """Run a statement that writes, in the open transaction, without waiting for a lock.

        False if somebody else is writing; an error if the transaction can never write.
        """
        ...

    def begin_read(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def interrupt(self) -> None:
        """Stop what another thread is running on this connection."""
        ...

    def close(self) -> None: ...


class Driver(Protocol):
    """One library."""

    @property
    def library(self) -> SqliteDriver: ...

    @property
    def version(self) -> Version:
        """The version of SQLite inside the library."""
        ...

    def open(self, path: str, busy_timeout: float) -> Connection:
        """Open an existing file (never creates one), or a new database in memory."""
        ...


def load(library: SqliteDriver) -> Driver:
    """The driver of this name; imports its library."""
    if library == "sqlite3":
        from holdfast.store.sqlite.drivers.sqlite3_driver import Sqlite3Driver

        return Sqlite3Driver()
    try:
        from holdfast.store.sqlite.drivers.apsw_driver import ApswDriver
    except ImportError as error:
        raise ConfigError(
            f"the library apsw cannot be imported ({error}): install it, or choose "
            "driver='sqlite3'",
            option="driver",
        ) from error
    return ApswDriver()


def is_vulnerable(version: Version) -> bool:
    """Whether this SQLite has the WAL-reset bug: 3.7.0 to 3.51.2, but for two backports."""
    if not (3, 7, 0) <= version < (3, 51, 3):
        return False
    fixed = _FIXED_LINES.get(version[:2])
    return fixed is None or version[2] < fixed
