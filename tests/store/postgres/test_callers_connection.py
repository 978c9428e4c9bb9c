"""Operations inside a caller's own transaction, on the caller's own connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.callers.postgres_connection import (
    arun_on,
    for_async_connection,
    for_connection,
    run_on,
)
from holdfast.store.op import Statement, adrive, drive
from holdfast.store.postgres.binding import PostgresBinder
from tests.store.postgres import verbs
from tests.store.postgres.conftest import text

Admin = Callable[[str], list[tuple[Any, ...]]]
BINDER = PostgresBinder(None, text)


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection[DictRow]]:
    with psycopg.Connection[DictRow].connect(url, row_factory=dict_row) as connection:
        yield connection


def stored(admin: Admin) -> list[str]:
    return [body for (body,) in admin("SELECT body FROM notes ORDER BY body")]


def test_it_joins_the_callers_transaction(
    connection: psycopg.Connection[Any], admin: Admin
) -> None:
    connection.execute("INSERT INTO notes VALUES (gen_random_uuid(), 'mine')")
    assert run_on(connection, verbs.put("a"), bind=BINDER) == 1
    assert run_on(connection, verbs.put_each(["b"]), bind=BINDER) == 1
    assert run_on(connection, verbs.put_together(["c", "d"]), bind=BINDER) == 2
    assert connection.info.transaction_status == TransactionStatus.INTRANS
    assert stored(admin) == []
    connection.rollback()
    assert stored(admin) == []
    run_on(connection, verbs.put_each(["e"]), bind=BINDER)
    connection.commit()
    assert stored(admin) == ["e"]


def test_it_starts_the_transaction_that_the_caller_would(
    connection: psycopg.Connection[Any], admin: Admin
) -> None:
    assert drive(verbs.put("a"), for_connection(connection, bind=BINDER)) == 1
    assert connection.info.transaction_status == TransactionStatus.INTRANS
    assert stored(admin) == []
    connection.commit()
    assert stored(admin) == ["a"]


def test_nothing_of_the_connection_changes(connection: psycopg.Connection[Any]) -> None:
    settings = "SELECT name, setting FROM pg_settings"
    before = connection.execute(settings).fetchall()
    for _ in range(10):
        run_on(connection, verbs.put("x"), bind=BINDER)
    assert connection.execute(settings).fetchall() == before
    assert connection.row_factory is dict_row
    assert connection.autocommit is False
    assert connection.prepare_threshold == 5
    prepared = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert not any("notes" in row["statement"] for row in prepared)


def test_in_autocommit_an_operation_is_still_whole(url: str, admin: Admin) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(StoreError):
            run_on(connection, verbs.put_each(["a", ""]), bind=BINDER)
        assert stored(admin) == []
        run_on(connection, verbs.put_each(["a", "b"]), bind=BINDER)
        assert stored(admin) == ["a", "b"]
        with connection.transaction(force_rollback=True):
            run_on(connection, verbs.put_each(["c"]), bind=BINDER)
        assert stored(admin) == ["a", "b"]
        assert connection.autocommit is True


def test_an_async_connection(url: str, admin: Admin) -> None:
    async def work() -> None:
        connection = await psycopg.AsyncConnection[DictRow].connect(url, row_factory=dict_row)
        async with connection:
            assert await arun_on(connection, verbs.put_each(["a"]), bind=BINDER) == 1
            assert await arun_on(connection, verbs.put_together(["b", "c"]), bind=BINDER) == 2
            execute = for_async_connection(connection, bind=BINDER)
            assert await adrive(verbs.bodies(), execute) == ["a", "b", "c"]
            assert stored(admin) == []
            await connection.rollback()
            assert await arun_on(connection, verbs.put("d"), bind=BINDER) == 1
            await connection.commit()
            assert stored(admin) == ["d"]
            with pytest.raises(StoreError, match="caller's connection"):
                await arun_on(connection, verbs.put_each([""]), bind=BINDER)
            await connection.rollback()
            await connection.set_autocommit(True)
            with pytest.raises(StoreError):
                await arun_on(connection, verbs.put_each(["e", ""]), bind=BINDER)
            assert stored(admin) == ["d"]

    asyncio.run(work())


def test_hints_leave_with_the_callers_commit(url: str, admin: Admin) -> None:
    with psycopg.connect(url) as connection, psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN holdfast_ready")
        # Not limited: when the caller will commit is not ours to know.
        for _ in range(2):
            assert run_on(connection, verbs.put_and_tell("a", "q", "r"), bind=BINDER) == 2
        assert list(listener.notifies(timeout=0)) == []
        connection.commit()
        heard = {note.payload for note in listener.notifies(timeout=5, stop_after=2)}
        assert heard == {"q", "r"}


def test_a_pipeline_is_refused(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline(), pytest.raises(ConfigError, match="pipeline"):
        run_on(connection, verbs.put("a"), bind=BINDER)


def test_a_closed_connection_is_refused(url: str) -> None:
    with psycopg.connect(url) as connection:
        pass
    with pytest.raises(ConfigError, match="closed"):
        run_on(connection, verbs.put("a"), bind=BINDER)


def test_another_encoding_is_refused(url: str) -> None:
    with (
        psycopg.connect(url, client_encoding="latin1") as connection,
        pytest.raises(ConfigError, match="client_encoding=utf8"),
    ):
        run_on(connection, verbs.put("a"), bind=BINDER)


def test_drivers_errors_do_not_escape(connection: psycopg.Connection[Any], admin: Admin) -> None:
    with pytest.raises(StoreError) as caught:
        run_on(connection, verbs.put(""), bind=BINDER)
    assert not isinstance(caught.value, StoreUnavailable)
    connection.rollback()
    admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(StoreUnavailable) as lost:
        run_on(connection, verbs.put("a"), bind=BINDER)
    assert not lost.value.commit_unknown


def test_the_schema_is_named_in_the_statements() -> None:
    sql = PostgresBinder("queue").bind(Statement("read_meta", {"name": "x"})).sql
    assert b'"queue".holdfast_meta' in sql
