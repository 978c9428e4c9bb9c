"""A caller's transaction is the caller's: `using` neither begins, ends nor changes one.

Every driver, idle and inside a transaction, at every isolation level, with and without
autocommit, and in both orders of nesting. In each case the caller's own row and the task are
both there after a commit, and both gone after a rollback.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiosqlite
import apsw
import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings as django_settings
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from holdfast import ConfigError, Holdfast

Open: TypeAlias = Callable[..., Holdfast]

ISOLATION = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
ORDERS = ("using outside", "using inside")


class Left(Exception):
    """Raised by a caller who wants its transaction undone."""


@dataclass
class Caller:
    """A caller's connection, and how a program works with it."""

    connection: Any
    block: Callable[[], AbstractContextManager[Any]]
    """The driver's own block: commits at its end, undoes what it did if it is left by an error."""
    execute: Callable[[str], Any]
    is_idle: Callable[[], bool]


@dataclass
class AsyncCaller:
    connection: Any
    block: Callable[[], AbstractAsyncContextManager[Any]]
    execute: Callable[[str], Any]
    is_idle: Callable[[], bool]


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def alchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def async_alchemy(url: str) -> str:
    return alchemy(url).replace("sqlite://", "sqlite+aiosqlite://")


@contextmanager
def by_psycopg(url: str, isolation: str | None, *, autocommit: bool = False) -> Iterator[Caller]:
    with psycopg.connect(url, autocommit=autocommit) as connection:
        if isolation is not None:
            connection.isolation_level = IsolationLevel[isolation.replace(" ", "_")]
        yield Caller(
            connection,
            connection.transaction,
            lambda text: connection.execute(text.encode()),
            lambda: connection.info.transaction_status == TransactionStatus.IDLE,
        )


def by_psycopg_autocommit(url: str, isolation: str | None) -> AbstractContextManager[Caller]:
    return by_psycopg(url, isolation, autocommit=True)


def options(isolation: str | None) -> dict[str, str]:
    return {} if isolation is None else {"isolation_level": isolation}


@contextmanager
def by_session(url: str, isolation: str | None) -> Iterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url), **options(isolation))
    with Session(engine) as session:
        yield Caller(
            session,
            session.begin,
            lambda text: session.execute(sqlalchemy.text(text)),
            lambda: not session.in_transaction(),
        )
    engine.dispose()


@contextmanager
def by_connection(url: str, isolation: str | None) -> Iterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url), **options(isolation))
    with engine.connect() as connection:
        yield Caller(
            connection,
            connection.begin,
            lambda text: connection.execute(sqlalchemy.text(text)),
            lambda: not connection.in_transaction(),
        )
    engine.dispose()


@contextmanager
def by_django(url: str, isolation: str | None) -> Iterator[Caller]:
    if not django_settings.configured:
        django_settings.configure(DATABASES={})
        django.setup()
    from django.db import connections, transaction
    from django.db.utils import ConnectionHandler

    if url.startswith("sqlite"):
        given: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": path_of(url)}
    else:
        parts = conninfo_to_dict(url)
        given = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "HOST": parts["host"],
            "PORT": parts["port"],
        }
        if isolation is not None:
            level = IsolationLevel[isolation.replace(" ", "_")]
            given["OPTIONS"] = {"isolation_level": level}
    wrapper = ConnectionHandler({"default": given})["default"]
    connections["default"] = wrapper

    def execute(text: str) -> None:
        with wrapper.cursor() as cursor:
            cursor.execute(text)

    atomic: Any = transaction.atomic
    yield Caller(wrapper, atomic, execute, lambda: not wrapper.in_atomic_block)
    wrapper.close()


@contextmanager
def by_sqlite3(url: str, isolation: str | None) -> Iterator[Caller]:
    connection = sqlite3.connect(path_of(url))
    yield Caller(
        connection,
        lambda: connection,
        connection.execute,
        lambda: not connection.in_transaction,
    )
    connection.close()


@contextmanager
def by_sqlite3_autocommit(url: str, isolation: str | None) -> Iterator[Caller]:
    connection = sqlite3.connect(path_of(url), isolation_level=None)

    @contextmanager
    def block() -> Iterator[None]:
        connection.execute("BEGIN")
        with connection:
            yield

    yield Caller(connection, block, connection.execute, lambda: not connection.in_transaction)
    connection.close()


@contextmanager
def by_apsw(url: str, isolation: str | None) -> Iterator[Caller]:
    connection = apsw.Connection(path_of(url))
    connection.set_busy_timeout(5000)
    yield Caller(
        connection,
        lambda: connection,
        connection.execute,
        lambda: not connection.in_transaction,
    )
    connection.close()


@asynccontextmanager
async def by_async_psycopg(
    url: str, isolation: str | None, *, autocommit: bool = False
) -> AsyncIterator[AsyncCaller]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=autocommit) as connection:
        if isolation is not None:
            await connection.set_isolation_level(IsolationLevel[isolation.replace(" ", "_")])
        yield AsyncCaller(
            connection,
            connection.transaction,
            lambda text: connection.execute(text.encode()),
            lambda: connection.info.transaction_status == TransactionStatus.IDLE,
        )


def by_async_psycopg_autocommit(
    url: str, isolation: str | None
) -> AbstractAsyncContextManager[AsyncCaller]:
    return by_async_psycopg(url, isolation, autocommit=True)


@asynccontextmanager
async def by_async_session(url: str, isolation: str | None) -> AsyncIterator[AsyncCaller]:
    engine = create_async_engine(async_alchemy(url), **options(isolation))
    async with AsyncSession(engine) as session:
        yield AsyncCaller(
            session,
            session.begin,
            lambda text: session.execute(sqlalchemy.text(text)),
            lambda: not session.in_transaction(),
        )
    await engine.dispose()


@asynccontextmanager
async def by_async_connection(url: str, isolation: str | None) -> AsyncIterator[AsyncCaller]:
    engine = create_async_engine(async_alchemy(url), **options(isolation))
    async with engine.connect() as connection:
        yield AsyncCaller(
            connection,
            connection.begin,
            lambda text: connection.execute(sqlalchemy.text(text)),
            lambda: not connection.in_transaction(),
        )
    await engine.dispose()


@asynccontextmanager
async def by_aiosqlite(url: str, isolation: str | None) -> AsyncIterator[AsyncCaller]:
    async with aiosqlite.connect(path_of(url)) as connection:

        @asynccontextmanager
        async def block() -> AsyncIterator[None]:
            try:
                yield
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()

        yield AsyncCaller(
            connection, block, connection.execute, lambda: not connection.in_transaction
        )


ON_POSTGRES: dict[str, Callable[..., AbstractContextManager[Caller]]] = {
    "psycopg": by_psycopg,
    "psycopg autocommit": by_psycopg_autocommit,
    "session": by_session,
    "connection": by_connection,
    "django": by_django,
}
ON_SQLITE: dict[str, Callable[..., AbstractContextManager[Caller]]] = {
    "sqlite3": by_sqlite3,
    "sqlite3 autocommit": by_sqlite3_autocommit,
    "apsw": by_apsw,
    "session": by_session,
    "connection": by_connection,
    "django": by_django,
}
ASYNC_ON_POSTGRES: dict[str, Callable[..., AbstractAsyncContextManager[AsyncCaller]]] = {
    "psycopg": by_async_psycopg,
    "psycopg autocommit": by_async_psycopg_autocommit,
    "session": by_async_session,
    "connection": by_async_connection,
}
ASYNC_ON_SQLITE: dict[str, Callable[..., AbstractAsyncContextManager[AsyncCaller]]] = {
    "aiosqlite": by_aiosqlite,
    "session": by_async_session,
    "connection": by_async_connection,
}

ORDER = "INSERT INTO orders VALUES ('{}')"


def on_postgres(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (name text)")
        connection.execute("DELETE FROM orders")
    return url


def on_sqlite(url: str) -> str:
    # In a file that the app has not seen yet: its tables are made when it is first used.
    connection = sqlite3.connect(path_of(url))
    connection.execute("CREATE TABLE orders (name text)")
    connection.close()
    return url


def stored(caller_url: str, app: Holdfast) -> tuple[list[str], list[str]]:
    """The caller's rows and the tasks, by their names."""
    if caller_url.startswith("sqlite"):
        # The library of the app: two in one process would not do.
        library: Any = apsw if app.config.driver != "sqlite3" else sqlite3
        connection = (apsw.Connection if library is apsw else sqlite3.connect)(path_of(caller_url))
        orders = sorted(row[0] for row in connection.execute("SELECT name FROM orders"))
        connection.close()
    else:
        with psycopg.connect(caller_url) as server:
            orders = sorted(row[0] for row in server.execute("SELECT name FROM orders"))
    tasks = sorted(task.args[0] for task in app.control.tasks.list().tasks)
    return orders, tasks


def work(app: Holdfast, caller: Caller, order: str, name: str, *, fails: bool) -> None:
    """What a program does: its row and a task, in one transaction."""

    def both() -> None:
        caller.execute(ORDER.format(name))
        app.send("confirm", name)
        caller.execute(ORDER.format(name + " again"))
        if fails:
            raise Left

    if order == "using outside":
        with app.using(caller.connection):
            assert caller.is_idle()
            with caller.block():
                both()
            assert caller.is_idle()
    else:
        with caller.block():
            begun = caller.is_idle()
            with app.using(caller.connection):
                assert caller.is_idle() == begun
                both()
    assert caller.is_idle()


def check(app: Holdfast, url: str, caller: Caller, order: str) -> None:
    with pytest.raises(Left):
        work(app, caller, order, "undone", fails=True)
    assert stored(url, app) == ([], [])
    work(app, caller, order, "kept", fails=False)
    assert stored(url, app) == (["kept", "kept again"], ["kept"])


async def awork(app: Holdfast, caller: AsyncCaller, order: str, name: str, *, fails: bool) -> None:
    async def both() -> None:
        await caller.execute(ORDER.format(name))
        await app.asend("confirm", name)
        await caller.execute(ORDER.format(name + " again"))
        if fails:
            raise Left

    if order == "using outside":
        async with app.using(caller.connection):
            assert caller.is_idle()
            async with caller.block():
                await both()
            assert caller.is_idle()
    else:
        async with caller.block():
            begun = caller.is_idle()
            async with app.using(caller.connection):
                assert caller.is_idle() == begun
                await both()
    assert caller.is_idle()


async def acheck(app: Holdfast, url: str, caller: AsyncCaller, order: str) -> None:
    with pytest.raises(Left):
        await awork(app, caller, order, "undone", fails=True)
    assert await asyncio.to_thread(stored, url, app) == ([], [])
    await awork(app, caller, order, "kept", fails=False)
    assert await asyncio.to_thread(stored, url, app) == (["kept", "kept again"], ["kept"])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("driver", ON_POSTGRES)
def test_on_postgres(
    postgres: str, open_app: Open, driver: str, isolation: str, order: str
) -> None:
    url, app = on_postgres(postgres), open_app(postgres)
    with ON_POSTGRES[driver](url, isolation) as caller:
        check(app, url, caller, order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("driver", ON_SQLITE)
def test_on_sqlite(sqlite: str, open_app: Open, driver: str, order: str) -> None:
    url, app = on_sqlite(sqlite), open_app(sqlite)
    if order == "using inside":
        with Holdfast(url, driver="apsw" if driver == "apsw" else "sqlite3") as first:
            first.control.queues.list()
    with ON_SQLITE[driver](url, None) as caller:
        check(app, url, caller, order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("driver", ASYNC_ON_POSTGRES)
def test_async_on_postgres(
    postgres: str, open_app: Open, driver: str, isolation: str, order: str
) -> None:
    url, app = on_postgres(postgres), open_app(postgres)

    async def main() -> None:
        async with ASYNC_ON_POSTGRES[driver](url, isolation) as caller:
            await acheck(app, url, caller, order)

    asyncio.run(main())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("driver", ASYNC_ON_SQLITE)
def test_async_on_sqlite(sqlite: str, open_app: Open, driver: str, order: str) -> None:
    url, app = on_sqlite(sqlite), open_app(sqlite)
    with Holdfast(url, driver="sqlite3") as first:
        first.control.queues.list()

    async def main() -> None:
        async with ASYNC_ON_SQLITE[driver](url, None) as caller:
            await acheck(app, url, caller, order)

    asyncio.run(main())


OUTSIDE = {
    "psycopg": False,
    "psycopg autocommit": True,
    "session": False,
    "connection": False,
    "django": True,
}
"""Whether a send outside of any transaction is committed at once."""
OUTSIDE_ON_SQLITE = {
    "sqlite3": False,
    "sqlite3 autocommit": True,
    "apsw": True,
    "session": False,
    "connection": False,
    "django": True,
}


def check_outside(app: Holdfast, url: str, caller: Caller, commits: bool) -> None:
    with app.using(caller.connection):
        app.send("confirm", "alone")
    assert caller.is_idle() is commits
    if not commits:
        caller.connection.rollback()
    assert stored(url, app) == ([], ["alone"] if commits else [])
    if not commits:
        with app.using(caller.connection):
            app.send("confirm", "kept")
        caller.connection.commit()
        assert stored(url, app) == ([], ["kept"])


@pytest.mark.parametrize("driver", OUTSIDE)
def test_outside_of_a_transaction_on_postgres(postgres: str, open_app: Open, driver: str) -> None:
    url, app = on_postgres(postgres), open_app(postgres)
    with ON_POSTGRES[driver](url, None) as caller:
        check_outside(app, url, caller, OUTSIDE[driver])


@pytest.mark.parametrize("driver", OUTSIDE_ON_SQLITE)
def test_outside_of_a_transaction_on_sqlite(sqlite: str, open_app: Open, driver: str) -> None:
    url, app = on_sqlite(sqlite), open_app(sqlite)
    with ON_SQLITE[driver](url, None) as caller:
        check_outside(app, url, caller, OUTSIDE_ON_SQLITE[driver])


def test_a_session_that_begins_nothing_by_itself_is_not_made_to(
    postgres: str, open_app: Open
) -> None:
    app, engine = open_app(postgres), sqlalchemy.create_engine(alchemy(postgres))
    with Session(engine, autobegin=False) as session:
        with app.using(session), pytest.raises(ConfigError, match="cannot be used now"):
            app.send("confirm", "a")
        with app.using(session), session.begin():
            app.send("confirm", "b")
    engine.dispose()
    assert [task.args for task in app.control.tasks.list().tasks] == [["b"]]
