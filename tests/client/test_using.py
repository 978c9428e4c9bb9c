"""Sending inside the caller's own transaction, on every kind of connection there is."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings as django_settings
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from holdfast import (
    ConfigError,
    Holdfast,
    PayloadMismatch,
    SchemaMismatch,
    StoreError,
    TaskNotFound,
    Unique,
    UniqueConflict,
)
from tests.support.postgres import PostgresServer

Open = Callable[..., Holdfast]


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def alchemy(url: str) -> str:
    if url.startswith("sqlite"):
        return url
    return url.replace("postgresql://", "postgresql+psycopg://")


class Way:
    """One kind of connection: how it is opened, and how its transaction ends."""

    def __init__(self, connection: Any, commit: Callable[[], Any], rollback: Callable[[], Any]):
        self.connection = connection
        self.commit = commit
        self.rollback = rollback


@contextmanager
def by_sqlite3(url: str) -> Iterator[Way]:
    connection = sqlite3.connect(path_of(url))
    # Whatever the caller has set must neither reach us nor be changed.
    connection.row_factory = lambda cursor, row: {"row": row}
    yield Way(connection, connection.commit, connection.rollback)
    assert connection.execute("SELECT 1").fetchone() == {"row": (1,)}
    connection.close()


@contextmanager
def by_apsw(url: str) -> Iterator[Way]:
    connection = apsw.Connection(path_of(url))
    connection.setbusytimeout(5000)
    connection.execute("BEGIN IMMEDIATE")
    yield Way(
        connection,
        lambda: connection.execute("COMMIT"),
        lambda: connection.execute("ROLLBACK"),
    )
    connection.close()


@contextmanager
def by_psycopg(url: str) -> Iterator[Way]:
    with psycopg.Connection[DictRow].connect(url, row_factory=dict_row) as connection:
        yield Way(connection, connection.commit, connection.rollback)


@contextmanager
def by_session(url: str) -> Iterator[Way]:
    engine = sqlalchemy.create_engine(alchemy(url))
    with Session(engine) as session:
        yield Way(session, session.commit, session.rollback)
    engine.dispose()


@contextmanager
def by_scoped_session(url: str) -> Iterator[Way]:
    engine = sqlalchemy.create_engine(alchemy(url))
    session = scoped_session(sessionmaker(engine))
    yield Way(session, session.commit, session.rollback)
    session.remove()
    engine.dispose()


@contextmanager
def by_alchemy_connection(url: str) -> Iterator[Way]:
    engine = sqlalchemy.create_engine(alchemy(url))
    with engine.connect() as connection:
        yield Way(connection, connection.commit, connection.rollback)
    engine.dispose()


@contextmanager
def by_django(url: str) -> Iterator[Way]:
    wrapper = django_connection(url)
    wrapper.set_autocommit(False)
    yield Way(wrapper, wrapper.commit, wrapper.rollback)
    wrapper.close()


def django_connection(url: str) -> Any:
    if not django_settings.configured:
        django_settings.configure(DATABASES={})
        django.setup()
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
    return ConnectionHandler({"default": given})["default"]


SYNC: dict[str, Callable[[str], Any]] = {
    "sqlite3": by_sqlite3,
    "apsw": by_apsw,
    "psycopg": by_psycopg,
    "sqlite session": by_session,
    "postgres session": by_session,
    "sqlite scoped_session": by_scoped_session,
    "sqlite sqlalchemy": by_alchemy_connection,
    "postgres sqlalchemy": by_alchemy_connection,
    "sqlite django": by_django,
    "postgres django": by_django,
}


@pytest.fixture(params=SYNC)
def case(request: pytest.FixtureRequest, open_app: Open) -> Iterator[tuple[Holdfast, Way]]:
    """An app whose tables are there, and a caller's connection to the same database."""
    name: str = request.param
    engine = "postgres" if name.startswith(("postgres", "psycopg")) else "sqlite"
    url: str = request.getfixturevalue(engine)
    with Holdfast(url) as first:
        first.control.queues.list()
    with SYNC[name](url) as way:
        yield open_app(url), way


def total(app: Holdfast) -> int:
    return sum(app.control.tasks.count().values())


def test_the_task_commits_with_the_caller(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    with app.using(way.connection):
        handle = app.send("any", 1)
        assert handle.created
        assert handle.info().args == [1]
    if app.config.store.engine == "postgresql":
        with pytest.raises(TaskNotFound):
            handle.status()
    way.commit()
    assert handle.info().args == [1]
    assert total(app) == 1


def test_the_task_vanishes_with_the_caller(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    with app.using(way.connection):
        handle = app.send("any", 1)
        many = app.task("many")(lambda_task).send_many([(n,) for n in range(10)])
    way.rollback()
    for lost in (handle, *many):
        with pytest.raises(TaskNotFound, match="never committed"):
            lost.get(timeout=5)
    assert total(app) == 0


def lambda_task(n: int) -> None: ...


def test_everything_in_the_block_is_in_the_transaction(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    with app.using(way.connection):
        handle = app.send("any", 1)
        assert handle.cancel() == "CANCELLED"
        assert handle.resubmit() == "PENDING"
        assert app.control.tasks.list().tasks[0].id == handle.id
    way.rollback()
    assert total(app) == 0


def test_a_refusal_leaves_the_callers_transaction_usable(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    many = app.task("many", unique=Unique("k", on_conflict="raise"))(lambda_task)
    with app.using(way.connection):
        first = app.send("any", 1)
        with pytest.raises(PayloadMismatch):
            app.options(id=first.id).send("any", 2)
        with pytest.raises(UniqueConflict, match="is unique"):
            many.send_many([(1,), (2,)])
        app.send("any", 3)
    way.commit()
    assert sorted(task.args for task in app.control.tasks.list().tasks) == [[1], [3]]


def test_after_the_block_sends_are_the_apps_own(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    with app.using(way.connection):
        app.send("any", "theirs")
    way.rollback()
    app.send("any", "ours")
    assert [task.args for task in app.control.tasks.list().tasks] == [["ours"]]


def test_a_block_is_for_its_own_thread(case: tuple[Holdfast, Way]) -> None:
    app, way = case
    if app.config.store.engine == "sqlite":
        return  # the other thread would wait for the transaction of this one
    with app.using(way.connection):
        app.send("any", "theirs")
        thread = threading.Thread(target=lambda: app.send("any", "ours"))
        thread.start()
        thread.join(30)
    way.rollback()
    assert [task.args for task in app.control.tasks.list().tasks] == [["ours"]]


def test_a_block_may_be_entered_in_another_of_another_app(
    sqlite: str, tmp_path: Path, open_app: Open
) -> None:
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    one, two = open_app(sqlite), open_app(other_url)
    with by_sqlite3(sqlite) as first, by_sqlite3(other_url) as second:
        with one.using(first.connection), two.using(second.connection):
            one.send("any", 1)
            two.send("any", 2)
            two.send("any", 2)
        first.commit()
        second.rollback()
    assert (total(one), total(two)) == (1, 0)


def test_a_connection_in_autocommit_commits_each_send(sqlite: str, open_app: Open) -> None:
    app = open_app(sqlite)
    connection = sqlite3.connect(path_of(sqlite), isolation_level=None)
    with app.using(connection):
        app.send("any")
        assert not connection.in_transaction
    connection.close()
    assert total(app) == 1


def test_psycopg_in_autocommit_commits_each_send(postgres: str, open_app: Open) -> None:
    app = open_app(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection, app.using(connection):
        app.send("any")
    assert total(app) == 1


def test_django_in_autocommit_commits_each_send(sqlite: str, open_app: Open) -> None:
    app = open_app(sqlite)
    wrapper = django_connection(sqlite)
    with app.using(wrapper):
        wrapper.set_autocommit(False)
        app.send("any")
        wrapper.rollback()
        wrapper.set_autocommit(True)
        app.send("any")
    wrapper.close()
    assert total(app) == 1


def test_the_app_follows_the_library_of_the_caller(sqlite: str, open_app: Open) -> None:
    connection = sqlite3.connect(path_of(sqlite))
    app = open_app(sqlite)
    with app.using(connection):
        app.send("any")
    connection.commit()
    assert app.config.driver == "sqlite3"
    assert total(app) == 1
    connection.close()


def test_the_app_follows_the_library_of_a_caller_who_comes_later(
    sqlite: str, open_app: Open
) -> None:
    app = open_app(sqlite)
    app.send("any")
    connection = sqlite3.connect(path_of(sqlite))
    with app.using(connection):
        app.send("any")
    connection.commit()
    connection.close()
    open_app(sqlite, driver="sqlite3").send("any")
    assert total(app) == 3


def test_tables_cannot_be_made_inside_the_callers_transaction(sqlite: str, open_app: Open) -> None:
    connection = sqlite3.connect(path_of(sqlite))
    connection.execute("CREATE TABLE mine (a)")
    connection.execute("INSERT INTO mine VALUES (1)")
    app = open_app(sqlite)
    with app.using(connection), pytest.raises(SchemaMismatch, match=r"holdfast db migrate"):
        app.send("any")
    assert connection.in_transaction
    connection.commit()
    assert connection.execute("SELECT a FROM mine").fetchall() == [(1,)]
    with app.using(connection):
        app.send("any")
    connection.commit()
    connection.close()
    assert total(app) == 1


def test_another_file_is_refused(sqlite: str, tmp_path: Path, open_app: Open) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(ConfigError, match=r"other\.db.*tasks of this app are in .*tasks\.db"):
        open_app(sqlite).using(connection)
    connection.close()


def test_a_two_phase_transaction_with_sends_can_be_prepared(postgres: str, open_app: Open) -> None:
    """PostgreSQL prepares no transaction that has notified anybody."""
    app = open_app(postgres)
    with psycopg.connect(postgres) as connection, app.using(connection):
        connection.tpc_begin("lost")
        lost = app.send("any")
        connection.tpc_rollback()
        connection.tpc_begin("kept")
        kept = app.options(unique=Unique("once")).send("any")
        several = app.send("any"), app.send("any")
        several[0].cancel()
        connection.tpc_prepare()
        connection.tpc_commit()
    assert [kept.status(), several[1].status()] == ["PENDING", "PENDING"]
    assert several[0].status() == "CANCELLED"
    with pytest.raises(TaskNotFound):
        lost.status()


def test_another_engine_is_refused(sqlite: str, postgres: str, open_app: Open) -> None:
    with ExitStack() as stack:
        lite = stack.enter_context(by_sqlite3(sqlite)).connection
        server = stack.enter_context(by_psycopg(postgres)).connection
        with pytest.raises(ConfigError, match="one of sqlite"):
            open_app(postgres).using(lite)
        with pytest.raises(ConfigError, match="one of psycopg"):
            open_app(sqlite).using(server)


def test_another_database_is_refused(postgres: str, postgres_url: str, open_app: Open) -> None:
    with Holdfast(postgres_url) as other:
        other.send("any")
    app = open_app(postgres)
    with psycopg.connect(postgres_url) as connection, app.using(connection):
        with pytest.raises(ConfigError, match="leads to other tables"):
            app.send("any")
        # The refusal undid nothing but itself.
        connection.execute("SELECT 1")


def test_the_callers_search_path_does_not_matter(postgres_url: str, open_app: Open) -> None:
    app = open_app(postgres_url)
    app.send("any", 1)
    with Holdfast(postgres_url, schema="other") as other:
        other.send("any")
        with psycopg.connect(postgres_url) as connection, other.using(connection):
            assert total(other) == 1
    with psycopg.connect(postgres_url, options="-c search_path=other") as connection:
        with app.using(connection):
            app.send("any", 2)
            connection.execute("SET LOCAL search_path = pg_catalog")
            app.send("any", 3)
        connection.commit()
    assert sorted(task.args for task in app.control.tasks.list().tasks) == [[1], [2], [3]]


def test_nothing_is_asked_before_the_callers_first_statement(postgres: str, open_app: Open) -> None:
    app = open_app(postgres)
    with psycopg.connect(postgres) as connection:
        with connection.transaction(), app.using(connection):
            # Refused as soon as any statement has run in the transaction.
            connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            app.send("any")
        with app.using(connection):
            pass
        assert connection.info.transaction_status == TransactionStatus.IDLE
    assert total(app) == 1


def test_a_transaction_that_has_failed_is_refused(postgres: str, open_app: Open) -> None:
    app = open_app(postgres)
    with psycopg.connect(postgres) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1 / 0")
        with app.using(connection), pytest.raises(StoreError, match="roll it back"):
            app.send("any")
        connection.rollback()
        with app.using(connection):
            app.send("any")
    assert total(app) == 1


def test_memory_is_refused(open_app: Open) -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(ConfigError, match="in memory"):
        open_app("sqlite:///:memory:").using(connection)
    connection.close()


@pytest.mark.parametrize("thing", [None, "sqlite:///x.db", 5, object()])
def test_what_is_no_connection_is_refused(sqlite: str, open_app: Open, thing: Any) -> None:
    with pytest.raises(ConfigError, match=r"using\(\) cannot take .*psycopg 3"):
        open_app(sqlite).using(thing)


def test_what_makes_connections_is_refused_with_the_remedy(sqlite: str, open_app: Open) -> None:
    app, engine = open_app(sqlite), sqlalchemy.create_engine(sqlite)
    with pytest.raises(ConfigError, match=r"with engine\.begin\(\)"):
        app.using(engine)
    with pytest.raises(ConfigError, match="a session that it makes"):
        app.using(sessionmaker(engine))
    connection = sqlite3.connect(path_of(sqlite))
    with pytest.raises(ConfigError, match="the connection of the cursor"):
        app.using(connection.cursor())
    connection.close()
    engine.dispose()


def test_other_drivers_of_sqlalchemy_are_refused_with_the_remedy(
    postgres: str, open_app: Open
) -> None:
    # The driver itself need not be there: nothing is connected.
    engine = sqlalchemy.create_engine(
        "postgresql+pg8000://h/x", module=SimpleNamespace(__version__="1.31", paramstyle="format")
    )
    with (
        Session(engine) as session,
        pytest.raises(ConfigError, match=r"pg8000: use psycopg 3.*postgresql\+psycopg"),
    ):
        open_app(postgres).using(session)


def test_a_closed_connection_is_refused(postgres: str, sqlite: str, open_app: Open) -> None:
    with psycopg.connect(postgres) as connection:
        pass
    with pytest.raises(ConfigError, match="closed"):
        open_app(postgres).using(connection)
    lite = sqlite3.connect(path_of(sqlite))
    lite.close()
    with pytest.raises((ConfigError, StoreError)):
        open_app(sqlite).using(lite)


def test_async_calls_need_an_async_connection(sqlite: str, open_app: Open) -> None:
    app = open_app(sqlite)
    with (
        by_sqlite3(sqlite) as way,
        app.using(way.connection),
        pytest.raises(ConfigError, match="sync connection: call the sync method"),
    ):
        asyncio.run(app.asend("any"))


def test_a_server_that_restarts_is_known_again(open_app: Open) -> None:
    with PostgresServer(fsync=False) as server:
        url = server.create_database()
        app = open_app(url)
        with psycopg.connect(url) as connection, app.using(connection):
            app.send("any", 1)
        server.restart()
        with psycopg.connect(url) as connection, app.using(connection):
            app.send("any", 2)
        assert total(app) == 2
        app.close()
