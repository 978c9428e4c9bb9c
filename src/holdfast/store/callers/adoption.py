"""Operations on a connection that the caller brings, in the caller's transaction.

Owns the choice of the engine's half (`sqlite_connection`, `postgres_connection`) for a connection,
and the refusal of one that leads elsewhere: another engine, another file, another database,
or tables of the same names in another schema. What the engines do with a connection, and
what they never do to it, is said there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from holdfast.core.errors import ConfigError, SchemaMismatch
from holdfast.store.callers.unwrap import AsyncSource, Kind, Source, kind_of, refusal, source_of
from holdfast.store.op import Op, Row, Statement, Steps, reads
from holdfast.store.protocol import Store
from holdfast.store.settings import Engine, SqliteDriver, StoreSettings

__all__ = ["AdoptedConnection", "Home", "adopt", "whereabouts"]

T = TypeVar("T")

Raw: TypeAlias = Any
"""A driver's connection; which one is only known at run time."""
Run: TypeAlias = Callable[[Op[Any]], Any]

_ENGINES: dict[Kind, Engine] = {
    "sqlite": "sqlite",
    "aiosqlite": "sqlite",
    "psycopg": "postgresql",
    "psycopg async": "postgresql",
}


class Home(Protocol):
    """The app's own store, as far as a caller's connection needs to know it."""

    acquainted: WeakSet[Raw]
    """Connections that were found to lead to this store."""

    def settings_beside(self, library: SqliteDriver | None) -> StoreSettings:
        """The settings, once it is known which SQLite library the caller uses."""
        ...

    @property
    def has_store(self) -> bool:
        """Whether the store has been opened, and so its schema found usable."""
        ...

    def store(self) -> Store:
        """The store, opened if it was not."""
        ...


class AdoptedConnection(Protocol):
    """A caller's connection; each use finds out anew what is behind it."""

    def run(self, op: Op[T]) -> T: ...

    async def arun(self, op: Op[T]) -> T: ...


@reads
def whereabouts() -> Steps[Row]:
    """Where a connection leads: two with the same answer reach the same tasks."""
    found = yield Statement("whereabouts")
    row: Row = found[0]
    return row


def adopt(connection: Any, home: Home) -> AdoptedConnection:
    """Make ready to run operations on the caller's connection."""
    source = source_of(connection)
    if isinstance(source, AsyncSource):
        return _AsyncAdopted(source, home)
    foreign = _SyncAdopted(source, home)
    foreign.check()
    return foreign


class _SyncAdopted:
    def __init__(self, source: Source, home: Home) -> None:
        self._source = source
        self._home = home
        self._joined: tuple[Raw, Run] | None = None

    def check(self) -> None:
        """Refuse now what would be refused at the first send."""
        self._runner()

    def run(self, op: Op[T]) -> T:
        value: T = self._runner()(op)
        return value

    async def arun(self, op: Op[T]) -> T:
        raise ConfigError(
            "this block uses a sync connection: call the sync method (send, not asend), or give "
            "using() an async connection"
        )

    def _runner(self) -> Run:
        raw = self._source.raw()
        if self._joined is None or self._joined[0] is not raw:
            self._joined = raw, self._join(raw)
        return self._joined[1]

    def _join(self, raw: Raw) -> Run:
        kind, settings = _identify(raw, self._home)
        if kind == "sqlite":
            return _join_sqlite(raw, settings, self._home)
        if kind != "psycopg":
            raise ConfigError(
                "this is the sync side of an async session: give using() the async session or "
                "connection itself, and use asend"
            )
        from holdfast.store.callers.postgres_connection import run_on

        def run(op: Op[Any]) -> Any:
            return run_on(raw, op, settings.schema)

        if raw not in self._home.acquainted:
            _compare(self._home.store().run(whereabouts()), run(whereabouts()), settings)
            self._home.acquainted.add(raw)
        return run


class _AsyncAdopted:
    def __init__(self, source: AsyncSource, home: Home) -> None:
        self._source = source
        self._home = home

    def run(self, op: Op[T]) -> T:
        raise ConfigError(
            "this block uses an async connection: await the async twin (asend, not send), or "
            "give using() a sync connection"
        )

    async def arun(self, op: Op[T]) -> T:
        raw = await self._source.raw()
        kind, settings = _identify(raw, self._home)
        value: T
        if kind == "aiosqlite":
            value = await _on_its_thread(raw, settings, self._home, op)
            return value
        if kind != "psycopg async":
            raise refusal(raw)
        from holdfast.store.callers.postgres_connection import arun_on

        if raw not in self._home.acquainted:
            theirs = await arun_on(raw, whereabouts(), settings.schema)
            _compare(await _in_thread(self._own_whereabouts), theirs, settings)
            self._home.acquainted.add(raw)
        value = await arun_on(raw, op, settings.schema)
        return value

    def _own_whereabouts(self) -> Row:
        return self._home.store().run(whereabouts())


def _identify(raw: Raw, home: Home) -> tuple[Kind, StoreSettings]:
    kind = kind_of(raw)
    if kind is None:
        raise refusal(raw)
    library: SqliteDriver | None = None
    if _ENGINES[kind] == "sqlite":
        from holdfast.store.callers.sqlite_connection import library_of

        library = library_of(raw) or "sqlite3"
    settings = home.settings_beside(library)
    if settings.engine != _ENGINES[kind]:
        raise ConfigError(
            f"the tasks of this app are in {settings.masked}, and the connection given to "
            f"using() is one of {kind}: they commit together only in one database"
        )
    return kind, settings


def _join_sqlite(raw: Raw, settings: StoreSettings, home: Home) -> Run:
    from holdfast.store.callers.sqlite_connection import CallersConnection

    joined = CallersConnection(raw, settings)
    if not home.has_store:
        # Making the tables needs a transaction of our own, and theirs would be in the way.
        if not raw.in_transaction:
            home.store()
        elif not list(raw.execute(_TABLE_IS_THERE)):
            raise SchemaMismatch(
                f"{settings.address} has no tables of Holdfast yet, and they cannot be made while "
                "your transaction is open: run `holdfast db migrate` once, or call using() "
                "before you begin the transaction"
            )
    return joined.run


_TABLE_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_schema_version'"


async def _on_its_thread(raw: Raw, settings: StoreSettings, home: Home, op: Op[Any]) -> Any:
    """Run an operation where aiosqlite runs everything: on the thread of its connection."""
    return await raw._execute(lambda: _join_sqlite(raw._conn, settings, home)(op))


async def _in_thread(work: Callable[[], Row]) -> Row:
    import asyncio

    return await asyncio.to_thread(work)


def _compare(ours: Row, theirs: Row, settings: StoreSettings) -> None:
    if ours != theirs:
        raise ConfigError(
            f"the connection given to using() leads to other tables than {settings.masked}: to "
            "another server, database or schema (look at its search_path); they commit together "
            "only in one database"
        )
