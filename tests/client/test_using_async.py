"""Sending inside the caller's own transaction, on every kind of async connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import aiosqlite
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from holdfast import ConfigError, Holdfast, TaskNotFound

Open: TypeAlias = Callable[..., Holdfast]
End: TypeAlias = Callable[[], Awaitable[None]]
Way: TypeAlias = tuple[Any, End, End]


def alchemy(url: str) -> str:
    if url.startswith("sqlite"):
        return url.replace("sqlite://", "sqlite+aiosqlite://")
    return url.replace("postgresql://", "postgresql+psycopg://")


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Way]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def by_aiosqlite(url: str) -> AsyncIterator[Way]:
    async with aiosqlite.connect(url.removeprefix("sqlite:///")) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Way]:
    engine = create_async_engine(alchemy(url))
    async with AsyncSession(engine) as session:
        yield session, session.commit, session.rollback
    await engine.dispose()


@asynccontextmanager
async def by_connection(url: str) -> AsyncIterator[Way]:
    engine = create_async_engine(alchemy(url))
    async with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    await engine.dispose()


WAYS: dict[str, Callable[[str], AbstractAsyncContextManager[Way]]] = {
    "psycopg": by_psycopg,
    "aiosqlite": by_aiosqlite,
    "sqlite session": by_session,
    "postgres session": by_session,
    "sqlite connection": by_connection,
    "postgres connection": by_connection,
}


@pytest.fixture(params=WAYS)
def case(request: pytest.FixtureRequest, open_app: Open) -> tuple[Holdfast, Any]:
    """An app whose tables are there, and a way to open a connection to the same database."""
    name: str = request.param
    engine = "postgres" if name.startswith(("postgres", "psycopg")) else "sqlite"
    url: str = request.getfixturevalue(engine)
    with Holdfast(url) as first:
        first.control.queues.list()
    return open_app(url), lambda: WAYS[name](url)


def total(app: Holdfast) -> int:
    return sum(app.control.tasks.count().values())


def test_the_task_commits_with_the_caller(case: tuple[Holdfast, Any]) -> None:
    app, connect = case

    async def main() -> None:
        async with connect() as (connection, commit, _):
            async with app.using(connection):
                handle = await app.asend("any", 1)
                assert handle.created
                assert (await handle.ainfo()).args == [1]
            await commit()
            assert (await handle.ainfo()).args == [1]

    asyncio.run(main())
    assert total(app) == 1


def test_the_task_vanishes_with_the_caller(case: tuple[Holdfast, Any]) -> None:
    app, connect = case

    @app.task("many")
    def many(n: int) -> None: ...

    async def main() -> None:
        async with connect() as (connection, _, rollback):
            with app.using(connection):
                handle = await app.asend("any", 1)
                await many.asend_many([(1,), (2,)])
                assert await handle.acancel() == "CANCELLED"
            await rollback()
            with pytest.raises(TaskNotFound):
                await handle.aget(timeout=5)

    asyncio.run(main())
    assert total(app) == 0


def test_a_block_is_for_its_own_task(case: tuple[Holdfast, Any]) -> None:
    app, connect = case

    async def other(go: asyncio.Event) -> None:
        await go.wait()
        await app.asend("any", "ours")

    async def main() -> None:
        go = asyncio.Event()
        outside = asyncio.create_task(other(go))
        async with connect() as (connection, _, rollback):
            async with app.using(connection):
                await app.asend("any", "theirs")
                if app.config.store.engine == "postgresql":
                    go.set()
                    await outside
            await rollback()
        go.set()
        await outside

    asyncio.run(main())
    assert [task.args for task in app.control.tasks.list().tasks] == [["ours"]]


def test_a_task_that_outlives_the_block_is_free_of_it(case: tuple[Holdfast, Any]) -> None:
    app, connect = case

    async def later(go: asyncio.Event) -> None:
        await go.wait()
        await app.asend("any", "later")

    async def main() -> None:
        go = asyncio.Event()
        async with connect() as (connection, _, rollback):
            async with app.using(connection):
                inside = asyncio.create_task(later(go))
                await app.asend("any", "theirs")
            await rollback()
        go.set()
        await inside

    asyncio.run(main())
    assert [task.args for task in app.control.tasks.list().tasks] == [["later"]]


def test_sync_calls_need_a_sync_connection(case: tuple[Holdfast, Any]) -> None:
    app, connect = case

    async def main() -> None:
        async with connect() as (connection, _, _rollback):
            with app.using(connection), pytest.raises(ConfigError, match="async connection"):
                app.send("any")

    asyncio.run(main())


def test_the_sync_side_of_an_async_session_is_refused(postgres: str, open_app: Open) -> None:
    app = open_app(postgres)

    async def main() -> None:
        async with by_session(postgres) as (session, _, _rollback):
            with pytest.raises(ConfigError, match="the async session or connection itself"):
                await session.run_sync(app.using)

    asyncio.run(main())


def test_another_database_is_refused(
    postgres: str, postgres_url: str, sqlite: str, open_app: Open
) -> None:
    with Holdfast(postgres_url) as other:
        other.send("any")
    app = open_app(postgres)

    async def main() -> None:
        async with by_psycopg(postgres_url) as (connection, _, _rollback):
            with app.using(connection), pytest.raises(ConfigError, match="other tables"):
                await app.asend("any")
        async with by_aiosqlite(sqlite) as (lite, _, _rollback):
            with app.using(lite), pytest.raises(ConfigError, match="one of aiosqlite"):
                await app.asend("any")

    asyncio.run(main())
    assert total(app) == 0
