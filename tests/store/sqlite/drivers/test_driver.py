from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite.drivers.driver import Connection, is_vulnerable, load
from holdfast.store.sqlite.faults import Busy, ConstraintViolated


@pytest.fixture
def connection(driver: SqliteDriver) -> Iterator[Connection]:
    opened = load(driver).open(":memory:", 0)
    opened.script("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT CHECK (b <> ''))")
    yield opened
    opened.close()


def test_rows_come_as_tuples(connection: Connection) -> None:
    assert connection.execute("SELECT ?1, ?2, ?1", (1, "x")) == [(1, "x", 1)]
    assert connection.execute("SELECT 1 WHERE 0") == []


def test_many_rows_are_written_and_returned_in_order(connection: Connection) -> None:
    rows = [(n, f"b{n}") for n in range(5)]

    returned = connection.execute_many("INSERT INTO t VALUES (?1, ?2) RETURNING b", rows)

    assert returned == [(f"b{n}",) for n in range(5)]
    assert connection.execute_many("UPDATE t SET b = ?2 WHERE a = ?1", [(0, "new")]) == []
    assert connection.execute("SELECT b FROM t WHERE a = 0") == [("new",)]


def test_rows_for_which_nothing_was_written_are_told(connection: Connection) -> None:
    connection.script(
        """
        CREATE TABLE noise (n);
        CREATE TRIGGER gossip AFTER INSERT ON t BEGIN
            INSERT INTO noise VALUES (1), (2);
        END;
        """
    )
    insert = "INSERT INTO t VALUES (?1, ?2) ON CONFLICT DO NOTHING"

    assert connection.write_many(insert, [(1, "a"), (2, "b")]) == set()
    assert connection.write_many(insert, [(1, "a"), (3, "c"), (2, "b"), [4, "d"], (4, "d")]) == {
        0,
        2,
        4,
    }
    assert connection.write_many(insert, []) == set()
    assert connection.execute("SELECT count(*) FROM t") == [(4,)]


def test_a_statement_is_not_planned_anew_for_other_values(connection: Connection) -> None:
    asked: list[object] = []

    def authorize(*about: object) -> int:
        asked.append(about)
        return 0

    connection._raw.set_authorizer(authorize)
    query = "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1000) LIMIT ?1"
    connection.execute(query, (1,))
    planned = len(asked)

    for limit in (2, 2, 3):
        connection.execute(query, (limit,))

    assert planned > 0
    assert len(asked) == planned


def test_a_row_that_is_refused_among_many_raises(connection: Connection) -> None:
    with pytest.raises(ConstraintViolated):
        connection.write_many("INSERT INTO t VALUES (?1, ?2)", [(1, "a"), (2, "")])


def test_a_script_stays_inside_the_transaction(connection: Connection) -> None:
    connection.begin_immediate()
    connection.script(
        """
        -- a comment; with a semicolon
        INSERT INTO t VALUES (1, 'a;b');
        CREATE TRIGGER shout AFTER INSERT ON t BEGIN
            UPDATE t SET b = upper(b) WHERE a = new.a;
            SELECT 1;
        END;
        INSERT INTO t VALUES (2, 'c');
        -- the end
        """
    )
    assert connection.execute("SELECT b FROM t") == [("a;b",), ("C",)]
    assert connection.in_transaction

    connection.rollback()

    assert connection.execute("SELECT * FROM t") == []


def test_a_constraint_is_named(connection: Connection) -> None:
    with pytest.raises(ConstraintViolated) as caught:
        connection.execute("INSERT INTO t VALUES (1, '')")

    assert "b <> ''" in caught.value.constraint
    assert not caught.value.retryable


def test_other_errors_are_store_errors(connection: Connection) -> None:
    with pytest.raises(StoreError, match="no such table: nowhere"):
        connection.execute("SELECT * FROM nowhere")
    assert not connection.broken


def test_a_statement_can_be_interrupted_from_another_thread(connection: Connection) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.01):
            connection._raw.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(StoreUnavailable, match="interrupted"):
        connection.execute(endless)
    ended.set()
    thread.join()


def test_begin_says_when_another_connection_writes(driver: SqliteDriver, path: Path) -> None:
    path.touch()
    first, second = (load(driver).open(str(path), 0) for _ in range(2))
    try:
        first.execute("PRAGMA journal_mode = WAL")
        first.begin_immediate()
        with pytest.raises(Busy):
            second.begin_immediate()
        assert not second.in_transaction
        first.commit()
        second.begin_immediate()
        assert second.in_transaction
    finally:
        first.close()
        second.close()


def test_a_missing_file_is_not_created(driver: SqliteDriver, path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        load(driver).open(str(path), 0).execute("SELECT 1 FROM sqlite_schema")

    assert not path.exists()


def test_awkward_file_names(driver: SqliteDriver, tmp_path: Path) -> None:
    path = tmp_path / "100% ?a=b#c 'ü'.db"
    path.touch()
    connection = load(driver).open(str(path), 0)
    connection.execute("CREATE TABLE t (a)")
    connection.close()

    assert path.stat().st_size > 0
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("version", "vulnerable"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_which_versions_have_the_wal_reset_bug(
    version: tuple[int, int, int], vulnerable: bool
) -> None:
    assert is_vulnerable(version) is vulnerable


def test_the_library_of_apsw_is_sound() -> None:
    assert not is_vulnerable(load("apsw").version)
    assert load("sqlite3").version == sqlite3.sqlite_version_info
