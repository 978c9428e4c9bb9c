"""Operations on a connection that the caller brings, in the caller's transaction.

Owns the choice of the engine's half (`sqlite_connection`, `postgres_connection`) for a connection,
and the refusal of one that leads elsewhere: another engine, another file, another server or
database. What the engines do with a connection, and what they never do to it, is said there.

Adopting a connection runs nothing on it: a SELECT would begin a transaction of which the caller
knows nothing, and take the snapshot of one that the caller has begun. What has to be asked of the
connection is asked by the first operation, in the caller's own transaction.

On PostgreSQL the tables are named with the schema in which the app's own connections find them,
so the caller's search_path, which may change with every transaction, does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.core.errors import ConfigError, SchemaMismatch, StoreError
from holdfast.store.callers.home import AdoptedConnection, Home, Raw
from holdfast.store.callers.unwrap import AsyncSource, Kind, Source, kind_of, refusal, source_of
from holdfast.store.op import Op, Row, Statement, Steps, reads
from holdfast.store.settings import Engine, SqliteDriver, StoreSettings

if TYPE_CHECKING:
    from holdfast.store.postgres.binding import PostgresBinder

__all__ = ["adopt", "whereabouts"]

T = TypeVar("T")

Run: TypeAlias = Callable[[Op[Any]], Any]

_ENGINES: dict[Kind, Engine] = {
    "sqlite": "sqlite",
    "aiosqlite": "sqlite",
    "psycopg": "postgresql",
    "psycopg async": "postgresql",
}


@reads
def whereabouts() -> Steps[Row]:
    """Where a connection leads: two with the same answer reach the same tasks."""
    found = yield Statement("whereabouts")
    row: Row = found[0]
    return row


def adopt(connection: Any, home: Home) -> AdoptedConnection:
    """Make ready to run operations on the caller's connection; runs nothing on it."""
    source = source_of(connection)
    if source.engine is not None:
        _check_engine(source.engine, source.engine, home.settings_beside(None))
    if isinstance(source, AsyncSource):
        return _AsyncAdopted(source, home)
    adopted = _SyncAdopted(source, home)
    adopted.check()
    return adopted


class _SyncAdopted:
    def __init__(self, source: Source, home: Home) -> None:
        self._source = source
        self._home = home
        self._joined: tuple[Raw, Run] | None = None

    def check(self) -> None:
        """Refuse now what can be refused without a statement on the connection."""
        raw = self._source.peek()
        if raw is not None:
            self._runner(raw)
        elif self._source.engine == "sqlite" and self._source.is_idle():
            # Once its transaction has begun, the tables cannot be made any more.
            self._home.settings_beside("sqlite3")
            self._home.store()

    def run(self, op: Op[T]) -> T:
        value: T = self._runner(self._source.raw())(op)
        return value

    async def arun(self, op: Op[T]) -> T:
        raise ConfigError(
            "this block uses a sync connection: call the sync method (send, not asend), or give "
            "using() an async connection"
        )

    def _runner(self, raw: Raw) -> Run:
        if self._joined is None or self._joined[0] is not raw:
            self._joined = raw, self._join(raw)
        return self._joined[1]

    def _join(self, raw: Raw) -> Run:
        kind, settings = _identify(raw, self._home)
        if kind == "sqlite":
            return _join_sqlite(raw, settings, self._home)
        if kind != "psycopg":
            raise refusal(raw)
        from holdfast.store.callers import postgres_connection

        postgres_connection.check(raw)

        def run(op: Op[Any]) -> Any:
            schema = self._home.acquainted.get(raw)
            if schema is None:
                ours = self._home.store().run(whereabouts())
                binder = _binder(settings, ours)
                theirs = postgres_connection.run_on(raw, whereabouts(), bind=binder)
                _compare(ours, theirs, settings)
                schema = self._home.acquainted[raw] = _schema(ours)
            binder = postgres_connection.binder(settings.schema, schema)
            return postgres_connection.run_on(raw, op, bind=binder)

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
        from holdfast.store.callers import postgres_connection

        schema = self._home.acquainted.get(raw)
        if schema is None:
            ours = await _in_thread(self._own_whereabouts)
            binder = _binder(settings, ours)
            theirs = await postgres_connection.arun_on(raw, whereabouts(), bind=binder)
            _compare(ours, theirs, settings)
            schema = self._home.acquainted[raw] = _schema(ours)
        binder = postgres_connection.binder(settings.schema, schema)
        value = await postgres_connection.arun_on(raw, op, bind=binder)
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
    _check_engine(_ENGINES[kind], kind, settings)
    return kind, settings


def _check_engine(found: Engine, name: str, settings: StoreSettings) -> None:
    if found != settings.engine:
        raise ConfigError(
            f"the tasks of this app are in {settings.masked}, and the connection given to "
            f"using() is one of {name}: they commit together only in one database"
        )


def _join_sqlite(raw: Raw, settings: StoreSettings, home: Home) -> Run:
    from holdfast.store.callers.sqlite_connection import CallersConnection

    joined = CallersConnection(raw, settings)
    # Making the tables needs a transaction of our own, and theirs would be in the way.
    if not home.has_store and not raw.in_transaction:
        home.store()
    if home.has_store:
        return joined.run

    def run(op: Op[Any]) -> Any:
        # Not looked for first: a look makes the caller's transaction one that began by reading,
        # and such a one often cannot write any more.
        try:
            return joined.run(op)
        except StoreError as error:
            if _NO_TABLE not in str(error):
                raise
            raise SchemaMismatch(
                f"{settings.address} has no tables of Holdfast yet, and they cannot be made while "
                "your transaction is open: run `holdfast db migrate` once, or let the app send or "
                "read something outside of a transaction first"
            ) from None

    return run


_NO_TABLE = "no such table: holdfast_"


async def _on_its_thread(raw: Raw, settings: StoreSettings, home: Home, op: Op[Any]) -> Any:
    """Run an operation where aiosqlite runs everything: on the thread of its connection."""
    return await raw._execute(lambda: _join_sqlite(raw._conn, settings, home)(op))


async def _in_thread(work: Callable[[], Row]) -> Row:
    import asyncio

    return await asyncio.to_thread(work)


def _binder(settings: StoreSettings, ours: Row) -> PostgresBinder:
    from holdfast.store.callers import postgres_connection

    return postgres_connection.binder(settings.schema, _schema(ours))


def _schema(ours: Row) -> str:
    name: str = ours[-1]
    return name


def _compare(ours: Row, theirs: Row, settings: StoreSettings) -> None:
    if ours != theirs:
        raise ConfigError(
            f"the connection given to using() leads to other tables than {settings.masked}: to "
            "another server or database; they commit together only in one database"
        )
