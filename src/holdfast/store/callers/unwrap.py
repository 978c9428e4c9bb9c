"""From what a caller calls a connection to the driver's connection inside it.

Owns the knowledge of SQLAlchemy's, Django's and aiosqlite's wrappers. Nothing is imported for
it: an object tells what it is by the module and name of its class. Wrappers are asked again
before every use, because a session that has committed continues on another connection.

Where a wrapper tracks transactions (SQLAlchemy), it is made to begin one before a statement of
ours, as it does before every statement of its own: otherwise it would assume that there is nothing
to commit. Looking at a wrapper (`peek`) begins nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.store.settings import Engine

__all__ = ["AsyncSource", "Kind", "Source", "kind_of", "source_of"]

Kind: TypeAlias = Literal["sqlite", "aiosqlite", "psycopg", "psycopg async"]

_ACCEPTED: Final = (
    "sqlite3, apsw, aiosqlite, psycopg 3 (sync and async), SQLAlchemy sessions and connections "
    "(sync and async) over these drivers, and Django's"
)
_KINDS: Final[dict[tuple[str, str], Kind]] = {
    ("sqlite3", "Connection"): "sqlite",
    ("apsw", "Connection"): "sqlite",
    ("aiosqlite", "Connection"): "aiosqlite",
    ("psycopg", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "psycopg async",
}
_DIALECTS: Final[dict[str, Engine]] = {"sqlite": "sqlite", "postgresql": "postgresql"}
_FOREIGN: Final = frozenset({"asyncpg", "pg8000", "psycopg2", "psycopg2cffi"})
"""Drivers for PostgreSQL of SQLAlchemy that we do not speak."""
_REMEDIES: Final = {
    "Engine": "give a connection of the engine: `with engine.begin() as connection`",
    "AsyncEngine": "give a connection of it: `async with engine.begin() as connection`",
    "sessionmaker": "give a session that it makes",
    "async_sessionmaker": "give a session that it makes",
    "ConnectionPool": "give a connection of the pool: `with pool.connection() as connection`",
    "AsyncConnectionPool": "give a connection of the pool",
    "Cursor": "give the connection of the cursor",
    "AsyncCursor": "give the connection of the cursor",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where to get the driver's connection."""

    raw: Callable[[], Any]
    """For a statement: a wrapper has begun its transaction then."""
    peek: Callable[[], Any]
    """For a look: None if the wrapper gives its connection only with a transaction."""
    engine: Engine | None = None
    """Which engine a wrapper says it is for; None if it does not say."""
    is_idle: Callable[[], bool] = lambda: False
    """Whether the wrapper is certainly in no transaction."""


@dataclass(frozen=True, slots=True)
class AsyncSource:
    """Where to get the driver's connection when that takes an await."""

    raw: Callable[[], Awaitable[Any]]
    engine: Engine | None = None


def source_of(connection: Any) -> Source | AsyncSource:
    """How to reach the driver's connection behind `connection`; `ConfigError` if it is none."""
    kind = kind_of(connection)
    if kind in ("sqlite", "psycopg"):
        return Source(lambda: connection, lambda: connection)
    if kind is not None:
        return AsyncSource(lambda: _itself(connection))
    names = _names(connection)
    if ("sqlalchemy", "AsyncSession") in names or ("sqlalchemy", "async_scoped_session") in names:
        return AsyncSource(lambda: _of_async_session(connection), _engine(connection))
    if ("sqlalchemy", "AsyncConnection") in names:
        return AsyncSource(lambda: _of_async_connection(connection), _engine(connection))
    if ("sqlalchemy", "Session") in names or ("sqlalchemy", "scoped_session") in names:
        return _sync_wrapper(connection, lambda: _of_session(connection))
    if ("sqlalchemy", "Connection") in names:
        return _sync_wrapper(connection, lambda: _of_connection(connection))
    if hasattr(connection, "ensure_connection") and hasattr(connection, "in_atomic_block"):
        return Source(lambda: _of_django(connection), lambda: _of_django(connection))
    name = type(connection).__name__
    remedy = _REMEDIES.get(name, f"there are {_ACCEPTED}")
    raise ConfigError(f"using() cannot take {_full_name(connection)}: {remedy}")


def kind_of(raw: Any) -> Kind | None:
    """Which driver's connection this is; None if it is of no driver that can be joined."""
    for name in _names(raw):
        if name in _KINDS:
            return _KINDS[name]
    return None


def refusal(raw: Any) -> ConfigError:
    """The error for a driver that cannot be joined."""
    return ConfigError(
        f"using() cannot join a transaction of {_full_name(raw)}: there are {_ACCEPTED}"
    )


def _names(thing: Any) -> list[tuple[str, str]]:
    """The top package and the name of every class of a thing, its own first."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(thing).__mro__]


def _full_name(thing: Any) -> str:
    kind = type(thing)
    return f"a {kind.__module__}.{kind.__qualname__}"


def _sync_wrapper(wrapper: Any, raw: Callable[[], Any]) -> Source:
    if getattr(_dialect(wrapper), "is_async", False):
        raise ConfigError(
            "this is the sync side of an async session: give using() the async session or "
            "connection itself, and use asend"
        )

    def is_idle() -> bool:
        # A scoped_session is called for the session of this thread.
        session: Any = wrapper() if callable(wrapper) else wrapper
        return not session.in_transaction()

    return Source(raw, lambda: None, _engine(wrapper), is_idle)


def _dialect(wrapper: Any) -> Any:
    """The dialect of SQLAlchemy's session or connection; None for a session of several engines."""
    bound = wrapper if hasattr(wrapper, "dialect") else getattr(wrapper, "bind", None)
    return getattr(bound, "dialect", None)


def _engine(wrapper: Any) -> Engine | None:
    driver = getattr(_dialect(wrapper), "driver", "")
    if driver in _FOREIGN:
        raise ConfigError(
            f"using() cannot join a transaction of {driver}: use psycopg 3, which SQLAlchemy "
            "calls postgresql+psycopg://"
        )
    return _DIALECTS.get(getattr(_dialect(wrapper), "name", ""))


async def _itself(connection: Any) -> Any:
    return connection


def _of_session(session: Any) -> Any:
    from sqlalchemy.exc import InvalidRequestError

    try:
        connection = session.connection()
    except InvalidRequestError as error:
        raise _not_now(error) from error
    return _of_connection(connection)


def _not_now(error: Exception) -> ConfigError:
    """For a session that begins nothing by itself, has to be rolled back, or has many engines."""
    return ConfigError(f"the session given to using() cannot be used now: {error}")


def _of_connection(connection: Any) -> Any:
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


async def _of_async_session(session: Any) -> Any:
    from sqlalchemy.exc import InvalidRequestError

    try:
        connection = await session.connection()
    except InvalidRequestError as error:
        raise _not_now(error) from error
    return await _of_async_connection(connection)


async def _of_async_connection(connection: Any) -> Any:
    if not connection.in_transaction():
        await connection.begin()
    return (await connection.get_raw_connection()).driver_connection


def _of_django(wrapper: Any) -> Any:
    wrapper.ensure_connection()
    return wrapper.connection
