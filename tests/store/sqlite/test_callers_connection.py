from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.callers import sqlite_connection
from holdfast.store.callers.sqlite_connection import CallersConnection, library_of
from holdfast.store.op import Channel
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite.one_library import autocheckpoint, handover
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.store.sqlite.verbs import run_on
from tests.support.deadline import until


@pytest.fixture
def store(make_store: MakeStore) -> SqliteStore:
    """A store in the library of the callers' connections below."""
    made = make_store(driver="sqlite3", lock_timeout=0.3)
    made.run(verbs.make())
    return made


@pytest.fixture
def theirs(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A connection as `sqlite3.connect` makes it."""
    connection = sqlite3.connect(store.path)
    yield connection
    connection.close()


def joined(connection: Any, store: SqliteStore) -> CallersConnection:
    return CallersConnection(connection, store.settings, texts=verbs.texts)


def test_which_library() -> None:
    ours, other = sqlite3.connect(":memory:"), apsw.Connection(":memory:")

    assert library_of(ours) == "sqlite3"
    assert library_of(other) == "apsw"
    assert library_of("sqlite:///x") is None
    ours.close()
    other.close()


def test_it_commits_with_the_caller(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    with theirs:
        theirs.execute("INSERT INTO notes (body) VALUES ('order')")
        joined(theirs, store).run(verbs.put("confirmation"))
        assert store.run(verbs.count()) == 0

    assert store.run(verbs.bodies()) == ["order", "confirmation"]


def test_it_rolls_back_with_the_caller(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    theirs.execute("INSERT INTO notes (body) VALUES ('order')")
    joined(theirs, store).run(verbs.put("confirmation"))

    theirs.rollback()

    assert store.run(verbs.count()) == 0


def test_it_begins_the_transaction_that_an_insert_would(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    joined(theirs, store).run(verbs.put("a"))
    assert theirs.in_transaction
    theirs.execute("INSERT INTO notes (body) VALUES ('b')")
    assert store.run(verbs.count()) == 0

    theirs.commit()

    assert store.run(verbs.bodies()) == ["a", "b"]


def test_a_failure_undoes_only_itself(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    theirs.execute("INSERT INTO notes (body) VALUES ('order')")
    with pytest.raises(StoreError):
        joined(theirs, store).run(verbs.put_then_fail("half"))
    with pytest.raises(ValueError, match="no"):
        joined(theirs, store).run(verbs.put_then_raise("half", ValueError("no")))
    theirs.commit()

    assert store.run(verbs.bodies()) == ["order"]


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_in_autocommit_an_operation_commits_by_itself(
    make_store: MakeStore, library: SqliteDriver
) -> None:
    store = make_store(driver=library)
    store.run(verbs.make())
    connection: Any = (
        sqlite3.connect(store.path, isolation_level=None)
        if library == "sqlite3"
        else apsw.Connection(store.path)
    )
    with store.listen(Channel.READY) as hints:
        joined(connection, store).run(verbs.put_and_ring("x", "images"))

        assert not connection.in_transaction
        assert store.run(verbs.bodies()) == ["x"]
        assert "images" in hints.wait(5)

    with pytest.raises(StoreError):
        joined(connection, store).run(verbs.put_then_fail("half"))
    assert not connection.in_transaction
    connection.close()
    assert store.run(verbs.bodies()) == ["x"]


def test_a_transaction_of_apsw_is_joined(make_store: MakeStore) -> None:
    store = make_store(driver="apsw")
    store.run(verbs.make())
    connection = apsw.Connection(store.path)
    with connection:
        connection.execute("INSERT INTO notes (body) VALUES ('order')")
        joined(connection, store).run(verbs.put("confirmation"))
        assert store.run(verbs.count()) == 0
    assert store.run(verbs.count()) == 2

    connection.execute("BEGIN")
    joined(connection, store).run(verbs.put("no"))
    connection.execute("ROLLBACK")
    connection.close()

    assert store.run(verbs.count()) == 2


def test_who_listens_hears_of_the_callers_commit(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    with store.listen(Channel.READY) as hints:
        joined(theirs, store).run(verbs.put_and_ring("x", "images"))
        assert hints.wait(0.2) == set()
        theirs.commit()

        assert hints.wait(5) == {""}


def test_rows_are_ours_whatever_the_caller_makes_of_his(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    theirs.row_factory = sqlite3.Row
    run_on(theirs, verbs.put("x"), store.settings, texts=verbs.texts)

    assert joined(theirs, store).run(verbs.bodies()) == ["x"]
    assert theirs.row_factory is sqlite3.Row


def test_rows_of_apsw_likewise(make_store: MakeStore) -> None:
    store = make_store(driver="apsw")
    store.run(verbs.make())
    connection = apsw.Connection(store.path)
    connection.row_trace = lambda cursor, row: {"row": row}
    try:
        assert joined(connection, store).run(verbs.put("x")) == 1
        theirs: Any = connection.execute("SELECT 1").fetchall()
        assert theirs == [{"row": (1,)}]
    finally:
        connection.close()


def test_reads_see_what_is_not_committed(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    connection = joined(theirs, store)
    connection.run(verbs.put("mine"))

    assert connection.run(verbs.bodies()) == ["mine"]
    assert store.run(verbs.bodies()) == []


def test_a_read_begins_nothing(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    joined(theirs, store).run(verbs.count())

    assert not theirs.in_transaction


def test_time_is_the_stores_even_here(make_store: MakeStore) -> None:
    noon = 1_900_000_000_000_000
    store = make_store(driver="sqlite3", clock=lambda: noon)
    store.run(verbs.make())
    store.run(verbs.put("x"))
    behind = make_store(driver="sqlite3", clock=lambda: noon - 1)
    connection = sqlite3.connect(store.path)

    assert joined(connection, behind).run(verbs.now()) == noon
    connection.close()


def test_a_transaction_that_began_by_reading_and_came_too_late(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    theirs.execute("BEGIN")
    theirs.execute("SELECT count(*) FROM notes").fetchall()
    store.run(verbs.put("meanwhile"))

    with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE"):
        joined(theirs, store).run(verbs.put("x"))

    assert theirs.in_transaction


def test_it_takes_its_turn_before_it_begins(
    store: SqliteStore, theirs: sqlite3.Connection, start: Start
) -> None:
    child = start("hold_turn", store.path)
    assert child.hear() == "in"
    with pytest.raises(StoreUnavailable, match="no turn"):
        joined(theirs, store).run(verbs.put("x"))
    assert not theirs.in_transaction

    child.tell()
    assert child.hear() == "out"
    joined(theirs, store).run(verbs.put("x"))
    # The turn was left with the beginning; another process can take it.
    assert start("hold_turn", store.path).hear() == "in"
    theirs.commit()


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE", ""])
def test_under_load_every_way_to_begin_gets_its_turn(
    store: SqliteStore, start: Start, begin: str
) -> None:
    # The writers leave the lock free only between their turns, and for a moment.
    writers = [start("drain", store.path, 2, 300) for _ in range(2)]
    for writer in writers:
        assert writer.hear() == "ready"
    patient = replace(store.settings, lock_timeout=20)
    # Whoever begins by himself waits by himself.
    patience = 20 if begin == "BEGIN IMMEDIATE" else 0
    theirs = sqlite3.connect(store.path, isolation_level=None, timeout=patience)
    for writer in writers:
        writer.tell()
    for number in range(100):
        if begin:
            theirs.execute(begin)
        run_on(theirs, verbs.put(f"mine {number}"), patient, texts=verbs.texts)
        if begin:
            theirs.execute("COMMIT")
    assert theirs.execute("SELECT count(*) FROM notes WHERE body LIKE 'mine%'").fetchone() == (100,)
    theirs.close()


def test_how_long_the_caller_waits_stays_as_it_was(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    theirs.execute("PRAGMA busy_timeout = 1234")
    theirs.execute("BEGIN")
    joined(theirs, store).run(verbs.put("x"))
    theirs.rollback()

    assert theirs.execute("PRAGMA busy_timeout").fetchone() == (1234,)


def test_inside_a_transaction_no_turn_is_needed(
    store: SqliteStore, theirs: sqlite3.Connection
) -> None:
    # A writer of ours holds the turn and waits for their commit: waiting for it would deadlock.
    patient = joined(theirs, store)
    patient.run(verbs.put("first"))
    ours = threading.Thread(target=lambda: store.run(verbs.put("ours")))
    ours.start()
    until(lambda: store._turns._fair_lock._owner is not None)

    patient.run(verbs.put("second"))
    theirs.commit()
    ours.join(10)

    assert store.run(verbs.bodies()) == ["first", "second", "ours"]


def test_an_outsider_who_holds_on_is_named(
    store: SqliteStore, theirs: sqlite3.Connection, start: Start
) -> None:
    theirs.execute("PRAGMA busy_timeout = 0")
    child = start("hold_transaction", store.path)
    assert child.hear() == "in"

    with pytest.raises(StoreUnavailable, match=f"process {child.pid}"):
        joined(theirs, store).run(verbs.put("x"))


def test_a_library_with_the_bug_checkpoints_rarely(
    store: SqliteStore, theirs: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "is_vulnerable", lambda version: True)
    joined(theirs, store)

    assert theirs.execute("PRAGMA wal_autocheckpoint").fetchall() == [(autocheckpoint.RARELY,)]


def test_a_sound_library_is_left_as_it_is(
    store: SqliteStore, theirs: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs.execute("PRAGMA wal_autocheckpoint = 700")
    monkeypatch.setattr(sqlite_connection, "is_vulnerable", lambda version: False)
    joined(theirs, store)

    assert theirs.execute("PRAGMA wal_autocheckpoint").fetchall() == [(700,)]


def test_the_other_library_is_refused(store: SqliteStore) -> None:
    store.run(verbs.count())
    other = apsw.Connection(":memory:")
    other.close()
    # Opening the file with apsw here would be the very mistake; only the register is asked.
    with pytest.raises(ConfigError, match="two SQLite libraries"):
        handover.note(store.path, "apsw")


def test_a_closed_connection(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    theirs.close()

    with pytest.raises(ConfigError, match="closed"):
        joined(theirs, store)


def test_a_closed_connection_of_apsw(make_store: MakeStore) -> None:
    store = make_store(driver="apsw")
    store.run(verbs.make())
    connection = apsw.Connection(store.path)
    connection.close()

    with pytest.raises(ConfigError, match="closed"):
        joined(connection, store)


def test_a_connection_of_another_thread(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            joined(theirs, store)
        except ConfigError as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(10)

    assert "thread" in str(errors[0])


def test_a_connection_to_another_file(store: SqliteStore, tmp_path: Path) -> None:
    elsewhere = sqlite3.connect(tmp_path / "elsewhere.db")
    nowhere = sqlite3.connect(":memory:")
    try:
        with pytest.raises(ConfigError, match=r"elsewhere\.db.*tasks\.db"):
            joined(elsewhere, store)
        with pytest.raises(ConfigError, match="memory"):
            joined(nowhere, store)
        elsewhere.execute("ATTACH ? AS tasks", (store.path,))
        joined(elsewhere, store).run(verbs.put("attached"))
        elsewhere.commit()
    finally:
        elsewhere.close()
        nowhere.close()

    assert store.run(verbs.bodies()) == ["attached"]


def test_tasks_in_memory_cannot_be_joined(make_store: MakeStore) -> None:
    connection = sqlite3.connect(":memory:")

    with pytest.raises(ConfigError, match="only the app itself"):
        joined(connection, make_store(":memory:"))
    connection.close()


def test_texts_that_are_not_str(store: SqliteStore, theirs: sqlite3.Connection) -> None:
    theirs.text_factory = bytes

    with pytest.raises(ConfigError, match="text_factory"):
        joined(theirs, store)


def test_what_is_no_connection(store: SqliteStore) -> None:
    with pytest.raises(ConfigError, match="str is not a connection"):
        joined("sqlite:///tasks.db", store)


@pytest.mark.parametrize(
    ("raw", "alone"),
    [
        (SimpleNamespace(isolation_level=None), True),
        (SimpleNamespace(isolation_level=""), False),
        (SimpleNamespace(isolation_level="", autocommit=-1), False),
        (SimpleNamespace(isolation_level=None, autocommit=-1), True),
        (SimpleNamespace(isolation_level="", autocommit=True), True),
        (SimpleNamespace(isolation_level=None, autocommit=False), False),
    ],
)
def test_when_a_connection_commits_by_itself(raw: SimpleNamespace, alone: bool) -> None:
    assert sqlite_connection._commits_by_itself(raw) is alone
