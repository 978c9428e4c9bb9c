"""Whoever serves a file keeps its WAL short, in a way that its library can bear."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite import checkpoint, opener
from holdfast.store.sqlite.drivers.driver import Connection
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.support.deadline import until


@pytest.fixture(params=["sound", "vulnerable"])
def store(
    request: pytest.FixtureRequest, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> SqliteStore:
    """A store of a library that may checkpoint at any time, and of one that may not."""
    vulnerable = request.param == "vulnerable"
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: vulnerable)
    driver: SqliteDriver = "sqlite3" if vulnerable else "apsw"
    made = make_store(driver=driver, lock_timeout=1.0)
    made.run(verbs.make())
    return made


def fill(store: SqliteStore) -> None:
    for _ in range(20):
        store.run(verbs.put("x" * 2000))


def test_a_checkpoint_lets_the_wal_begin_anew(store: SqliteStore) -> None:
    fill(store)
    before = store.probe().wal_bytes
    assert before > 0

    done = store.checkpoint()

    assert done is not None
    assert done.wal_pages == done.copied_pages > 0
    for _ in range(5):
        store.run(verbs.put("x"))
    assert store.probe().wal_bytes == before


def test_under_load_the_wal_stays_small(store: SqliteStore, start: Start) -> None:
    # Some three pages of 4 KiB each: 12 MiB if it only grew.
    child = start("put_many", store.path, 1_000)
    for number in range(1_000):
        assert child.hear() == str(number)
        if number % 200 == 0:
            store.tend()

    assert store.probe().wal_bytes < 8 * 1024 * 1024


def test_a_vulnerable_library_copies_only_while_nobody_can_write(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: True)
    store = make_store(driver="sqlite3")
    store.run(verbs.make())
    fill(store)
    refused: list[str] = []
    copy = checkpoint._copy

    def watched(connection: Connection) -> checkpoint.WalCheckpoint:
        with closing(sqlite3.connect(store.path, isolation_level=None, timeout=0)) as outsider:
            try:
                outsider.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return copy(connection)

    monkeypatch.setattr(checkpoint, "_copy", watched)

    done = store.checkpoint()

    assert done is not None
    assert done.is_complete
    assert refused == ["database is locked"]
    # And the lock is free again.
    store.run(verbs.put("after"))


def test_its_connections_never_do_it_by_themselves(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: True)
    store = make_store(driver="sqlite3")
    store.run(verbs.make())
    writer = store._connections.take_writer()
    pages = writer.execute("PRAGMA wal_autocheckpoint")
    store._connections.give_writer(writer)

    assert pages == [(0,)]
    assert not store.probe().checkpoints


def test_where_nobody_serves_whoever_writes_does_it(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: True)
    monkeypatch.setattr(checkpoint, "_LONG_WAL", 100_000)
    monkeypatch.setattr(checkpoint, "_LOOK_SECONDS", 0.0)
    store = make_store(driver="sqlite3")
    store.run(verbs.make())
    for _ in range(10):
        fill(store)

    # 200 notes of two pages and more.
    assert store.probe().wal_bytes < 400_000


def test_nothing_new_is_nothing_to_do(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: True)
    store = make_store(driver="sqlite3")
    store.run(verbs.make())
    store.checkpoint()
    monkeypatch.setattr(store._checkpointer, "_begin", lambda: pytest.fail("it began to write"))

    store.tend()


def test_a_checkpoint_waits_for_a_writer_who_takes_no_turns(store: SqliteStore) -> None:
    fill(store)
    theirs = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    theirs.execute("BEGIN IMMEDIATE")
    done: list[object] = []
    ours = threading.Thread(target=lambda: done.append(store.checkpoint()))
    ours.start()
    theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
    theirs.execute("COMMIT")
    ours.join(10)
    theirs.close()

    assert done
    assert store.run(verbs.bodies())[-1] == "theirs"


def test_memory_has_nothing_to_checkpoint(make_store: MakeStore) -> None:
    assert make_store(":memory:").checkpoint() is None


def test_a_store_that_switches_libraries_checkpoints_on(make_store: MakeStore) -> None:
    store = make_store()
    store.run(verbs.make())
    fill(store)
    sqlite3.connect(store.path).close()
    fill(store)

    def complete() -> bool:
        done = store.checkpoint()
        return done is not None and done.is_complete

    until(complete)
    assert store.probe().library == "sqlite3"
