from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.store.op import Mode, Op, Steps
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite import connections
from holdfast.store.sqlite.faults import ConstraintViolated
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.support.deadline import until


@pytest.fixture(params=["apsw", "sqlite3", "memory", "sqlite3 memory"])
def any_store(request: pytest.FixtureRequest, make_store: MakeStore) -> SqliteStore:
    """Both libraries, in a file and in memory."""
    library, _, place = request.param.rpartition(" ")
    where = ":memory:" if place == "memory" else None
    store = make_store(where, driver=library or (place if where is None else "apsw"))
    store.run(verbs.make())
    return store


Put = Callable[[str], Op[int]]
either_way = pytest.mark.parametrize(
    "put", [verbs.put, verbs.put_some], ids=["in a transaction", "by itself"]
)


def test_what_was_written_is_read(any_store: SqliteStore) -> None:
    assert any_store.run(verbs.put("a")) == 1
    assert any_store.run(verbs.put_alone("b")) == 2
    assert any_store.run(verbs.bodies()) == ["a", "b"]
    assert any_store.engine == "sqlite"


def test_rows_of_a_table_are_returned_in_order(any_store: SqliteStore) -> None:
    rows = [(os.urandom(16), f"note {n}", verbs.SOME_TIME) for n in range(100)]

    assert any_store.run(verbs.put_all(rows)) == list(range(1, 101))
    assert any_store.run(verbs.bodies()) == [body for _, body, _ in rows]


def test_a_statement_may_be_several_texts(any_store: SqliteStore) -> None:
    assert any_store.run(verbs.put_twice("hey")) == "hey!"
    assert any_store.run(verbs.bodies()) == ["hey", "hey!"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_is_raised_rolls_back(any_store: SqliteStore, error: BaseException) -> None:
    with pytest.raises(type(error)):
        any_store.run(verbs.put_then_raise("x", error))

    assert any_store.run(verbs.count()) == 0
    any_store.run(verbs.put("y"))
    assert any_store.run(verbs.bodies()) == ["y"]


def test_a_failing_statement_rolls_back(any_store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="no such table: nowhere") as caught:
        any_store.run(verbs.put_then_fail("x"))

    assert not caught.value.retryable
    assert any_store.run(verbs.count()) == 0


def test_a_broken_constraint_is_told_apart(any_store: SqliteStore) -> None:
    with pytest.raises(ConstraintViolated, match="not_empty"):
        any_store.run(verbs.put(""))


def test_rows_that_are_alike(any_store: SqliteStore) -> None:
    assert any_store.run(verbs.put_some("a")) == 1
    # What a JSON does not carry is written row by row.
    assert any_store.run(verbs.put_some("b", "c\x00", "d")) == 3
    with pytest.raises(ConstraintViolated):
        any_store.run(verbs.put_some("e", "", "f"))
    assert any_store.run(verbs.bodies()) == ["a", "b", "c\x00", "d"]
    # The time is stored about once a second, whoever writes.
    assert any_store.run(verbs.stored_clock()) is not None


def test_of_rows_that_are_alike_those_that_meet_others_are_left_out(
    any_store: SqliteStore,
) -> None:
    first, second, third = (bytes([number] * 16) for number in range(3))
    assert any_store.run(verbs.put_some("a", "b", ids=[first, second])) == 2
    assert any_store.run(verbs.put_some("c", "d", "e", ids=[second, third, third])) == 1
    assert any_store.run(verbs.bodies()) == ["a", "b", "d"]


def test_threads_share_a_store(any_store: SqliteStore) -> None:
    def work(name: int) -> None:
        for number in range(20):
            any_store.run(verbs.put(f"{name}.{number}"))
            any_store.run(verbs.count())

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert any_store.run(verbs.count()) == 160


def settings_of(store: SqliteStore) -> tuple[int, str, int]:
    store.run(verbs.make())
    writer = store._connections.take_writer()
    names = ("synchronous", "journal_mode", "wal_autocheckpoint")
    synchronous, mode, pages = (writer.execute(f"PRAGMA {name}")[0][0] for name in names)
    store._connections.give_writer(writer)
    return synchronous, mode, pages


def test_settings_of_the_file(make_store: MakeStore, driver: SqliteDriver) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())

    synchronous, mode, pages = settings_of(store)

    assert (synchronous, mode) == (2, "wal")
    assert (pages == 0) is (not store.probe().checkpoints)


def test_less_durable_by_choice(make_store: MakeStore) -> None:
    store = make_store(durable=False)

    assert settings_of(store)[0] == 1


def test_reads_do_not_wait_for_a_writer(store: SqliteStore, start: Start) -> None:
    child = start("hold_transaction", store.path)
    assert child.hear() == "in"

    assert store.run(verbs.count()) == 0


def test_a_read_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(StoreError):
        store.run(verbs.write_in_a_read())

    assert store.run(verbs.count()) == 0


@either_way
def test_an_outsider_is_waited_for(store: SqliteStore, start: Start, put: Put) -> None:
    child = start("hold_transaction", store.path)
    assert child.hear() == "in"
    written: list[int] = []
    thread = threading.Thread(target=lambda: written.append(store.run(put("x"))))
    thread.start()

    child.tell()
    thread.join(10)

    assert written == [1]


@either_way
def test_an_outsider_who_takes_too_long_is_named(
    make_store: MakeStore, start: Start, put: Put
) -> None:
    store = make_store(lock_timeout=0.2)
    store.run(verbs.make())
    child = start("hold_transaction", store.path)
    assert child.hear() == "in"

    with pytest.raises(StoreUnavailable) as caught:
        store.run(put("x"))

    assert f"process {child.pid}" in str(caught.value)
    assert "database is locked" not in str(caught.value)
    child.tell()
    assert child.hear() == "out"
    store.run(put("x"))


def test_our_own_open_transaction_is_recognised(make_store: MakeStore) -> None:
    store = make_store(driver="sqlite3", lock_timeout=0.1)
    store.run(verbs.make())
    ours = sqlite3.connect(store.path)
    ours.execute("INSERT INTO notes (body) VALUES ('theirs')")
    try:
        with pytest.raises(StoreUnavailable, match=r"this process itself.*app\.using"):
            store.run(verbs.put("x"))
    finally:
        ours.close()


def test_killed_writers_leave_everything_they_acknowledged(
    store: SqliteStore, start: Start
) -> None:
    acknowledged = 0
    for _ in range(4):
        children = [start("put_many", store.path, 100_000) for _ in range(2)]
        acknowledged += sum(child.hear().isdigit() for child in children * 10)
        for child in children:
            child.signal(signal.SIGKILL)
        for child in children:
            child.wait()
        store.run(verbs.put("between"))
        acknowledged += 1

    assert store.run(verbs.count()) >= acknowledged
    assert _integrity(store) == "ok"


def test_a_failing_disk_and_its_repair(path: Path, start: Start, make_store: MakeStore) -> None:
    child = start("fill_disk", path)
    assert child.hear().startswith("StoreUnavailable True True the disk failed under")

    acknowledged, found = map(int, child.hear().split())

    # The commit that failed may have landed: that is what commit_unknown says.
    assert found - 1 in (acknowledged, acknowledged + 1)
    assert child.wait() == 0
    store = make_store()
    assert store.run(verbs.count()) == found
    assert _integrity(store) == "ok"


def _integrity(store: SqliteStore) -> str:
    def check(schema: object) -> str:
        ((answer,),) = schema._connection.execute("PRAGMA integrity_check")  # type: ignore[attr-defined]
        return str(answer)

    return store.with_schema(check, lock=False)


def test_eight_processes_open_a_new_file_at_once(
    make_store: MakeStore, path: Path, start: Start
) -> None:
    children = [start("race_to_open", path) for _ in range(8)]
    for child in children:
        assert child.hear() == "ready"
    for child in children:
        child.tell()

    assert [child.hear() for child in children] == ["done"] * 8
    bodies = make_store().run(verbs.bodies())
    assert sorted(bodies) == sorted(str(c.pid) for c in children)


def test_the_libraries_of_two_processes_may_differ(store: SqliteStore, start: Start) -> None:
    assert start("put", store.path, "sqlite3", "theirs").hear() == "done"
    store.run(verbs.put("ours"))

    assert store.run(verbs.bodies()) == ["theirs", "ours"]


@either_way
def test_a_full_disk(make_store: MakeStore, driver: SqliteDriver, put: Put) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())
    writer = store._connections.take_writer()
    ((pages,),) = writer.execute("PRAGMA page_count")
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    store._connections.give_writer(writer)

    with pytest.raises(StoreUnavailable, match="no space") as caught:
        store.run(put("x" * 100_000))

    assert caught.value.retryable
    assert not caught.value.commit_unknown
    assert store.run(put("small")) == 1


def test_a_file_that_vanished_is_noticed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
    store.run(verbs.put("x"))
    for side in Path(store.path).parent.glob("tasks.db*"):
        if side.is_file():
            side.unlink()

    monkeypatch.setattr(connections, "_LOOK_SECONDS", 60.0)
    store._connections._looked = -60.0
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="vanished"):
            store.run(verbs.put("y"))

    assert not Path(store.path).exists()


def test_nothing_is_written_into_a_file_that_was_deleted(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SURE_SECONDS", 0.0)
    store.run(verbs.put("x"))
    Path(store.path).unlink()

    with pytest.raises(StoreUnavailable, match="vanished"):
        store.run(verbs.put("y"))


def test_nothing_is_written_into_a_file_that_was_replaced(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SURE_SECONDS", 0.0)
    store.run(verbs.put("x"))
    for side in ("", "-wal", "-shm"):
        Path(store.path + side).unlink()
    theirs = sqlite3.connect(store.path)
    theirs.execute("CREATE TABLE mine (a)")
    theirs.commit()
    theirs.close()

    with pytest.raises(StoreError, match="no such table: notes"):
        store.run(verbs.put("y"))


def test_a_file_that_was_replaced_is_opened_anew(
    make_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
    backup = make_store(tmp_path / "backup.db")
    backup.run(verbs.make())
    backup.run(verbs.put("from the backup"))
    backup.close()
    store = make_store()
    store.run(verbs.make())
    store.run(verbs.put("lost"))
    for side in ("-wal", "-shm"):
        Path(store.path + side).unlink()
    shutil.copy(backup.path, tmp_path / "copy.db")
    (tmp_path / "copy.db").replace(store.path)

    assert store.run(verbs.bodies()) == ["from the backup"]
    store.run(verbs.put("new"))
    assert make_store().run(verbs.bodies()) == ["from the backup", "new"]


def test_a_closed_store_refuses(any_store: SqliteStore) -> None:
    any_store.close()

    with pytest.raises(StoreError, match="closed"):
        any_store.run(verbs.count())
    with pytest.raises(StoreError, match="closed"):
        any_store.run(verbs.put("x"))
    any_store.close()


def test_readers_are_limited_and_wait(make_store: MakeStore) -> None:
    store = make_store(max_connections=2, lock_timeout=0.1)
    store.run(verbs.make())
    inside, leave = threading.Event(), threading.Event()

    def slow() -> None:
        def steps() -> Steps[None]:
            yield from verbs.count()
            inside.set()
            leave.wait(10)

        store.run(Op(steps(), Mode.READ, "slow"))

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait(10)
    with pytest.raises(StoreUnavailable, match="max_connections"):
        store.run(verbs.count())
    leave.set()
    thread.join(10)

    assert store.run(verbs.count()) == 0


def test_a_read_sees_one_moment(store: SqliteStore) -> None:
    def steps() -> Steps[tuple[int, int]]:
        before = yield from verbs.count()
        store.run(verbs.put("meanwhile"))
        after = yield from verbs.count()
        return before, after

    assert store.run(Op(steps(), Mode.READ, "two_counts")) == (0, 0)
    assert store.run(verbs.count()) == 1


def test_what_is_known_about_the_file(store: SqliteStore) -> None:
    info = store.probe()

    assert info.path == store.path
    assert info.library == "apsw"
    assert info.journal_mode == "wal"
    assert info.bytes > 0
    assert info.checkpoints


def test_a_relative_path_survives_a_change_of_directory(
    make_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = make_store("relative.db")
    monkeypatch.chdir("/")
    store.run(verbs.make())

    assert (tmp_path / "relative.db").exists()


def test_a_wait_ends_in_time_although_nobody_moves(make_store: MakeStore, start: Start) -> None:
    store = make_store(lock_timeout=0.3)
    store.run(verbs.make())
    child = start("hold_turn", store.path)
    assert child.hear() == "in"
    child.signal(signal.SIGSTOP)

    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="held by process"):
        store.run(verbs.put("x"))

    assert time.monotonic() - began < 5
    child.signal(signal.SIGCONT)


def test_a_store_forgotten_is_not_kept(make_store: MakeStore, tmp_path: Path) -> None:
    import gc
    import weakref

    from holdfast.store.settings import parse_url

    store = SqliteStore(parse_url(f"sqlite:///{tmp_path}/gone.db"), texts=verbs.texts)
    store.run(verbs.make())
    store.close()
    seen = weakref.ref(store)
    del store

    def is_gone() -> bool:
        gc.collect()
        return seen() is None

    until(is_gone)


@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_a_read_that_takes_too_long_is_ended(
    place: str, driver: SqliteDriver, make_store: MakeStore
) -> None:
    where = None if place == "file" else place
    store = make_store(where, driver=driver, statement_timeout=0.05)
    store.run(verbs.make())
    with pytest.raises(StoreUnavailable, match="longer than `statement_timeout`"):
        store.run(verbs.read_for_ever())
    assert store.run(verbs.put("a")) == 1
    assert store.run(verbs.count()) == 1
