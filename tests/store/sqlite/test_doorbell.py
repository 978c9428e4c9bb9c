from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store.op import Channel
from holdfast.store.sqlite import doorbell
from holdfast.store.sqlite.drivers.driver import Connection
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.support.deadline import until


def bells(store: SqliteStore) -> list[Path]:
    return list(Path(f"{store.path}-bell").iterdir())


@pytest.fixture(params=["file", "memory", "no sockets"])
def any_store(
    request: pytest.FixtureRequest, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> SqliteStore:
    if request.param == "no sockets":
        monkeypatch.setattr(doorbell.Doorbell, "_bind", lambda self, channels: None)
    store = make_store(":memory:" if request.param == "memory" else None)
    store.run(verbs.make())
    return store


def test_a_ring_in_the_same_process(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY) as hints:
        any_store.hint(Channel.READY, ["images", "mail"])

        assert hints.wait(5) == {"images", "mail"}


def test_a_commit_rings(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY) as hints:
        any_store.run(verbs.put_and_ring("x", "images"))

        assert hints.wait(5) == {"images"}


def test_a_rollback_does_not(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY) as hints:
        with pytest.raises(Exception, match="not_empty"):
            any_store.run(verbs.put_and_ring("", "images"))

        assert hints.wait(0) == set()


def test_only_the_channel_that_was_asked_for(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.DONE) as done, any_store.listen(Channel.READY) as ready:
        any_store.hint(Channel.READY, ["q"])
        assert done.wait(0) == set()
        assert ready.wait(5) == {"q"}
        any_store.hint(Channel.DONE)
        assert ready.wait(0) == set()
        assert done.wait(5) == {""}


def test_one_listener_for_two_channels(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY, Channel.DONE) as hints:
        any_store.hint(Channel.READY, ["q"])
        assert hints.wait(5) == {"q"}
        any_store.hint(Channel.DONE)
        assert hints.wait(5) == {""}


def test_a_wait_ends_after_its_time(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY) as hints:
        began = time.monotonic()
        assert hints.wait(0.25) == set()

        assert 0.2 < time.monotonic() - began < 2


def test_a_wait_can_be_ended_by_another_thread(any_store: SqliteStore) -> None:
    with any_store.listen(Channel.READY) as hints:
        heard: list[frozenset[str]] = []
        thread = threading.Thread(target=lambda: heard.append(hints.wait(30)))
        thread.start()

        hints.wake()
        thread.join(10)

    assert heard == [frozenset()]


def test_it_can_be_selected_on(any_store: SqliteStore) -> None:
    import select

    with any_store.listen(Channel.READY) as hints:
        assert select.select([hints], [], [], 0)[0] == []
        any_store.hint(Channel.READY, ["q"])
        assert select.select([hints], [], [], 5)[0] == [hints]


def test_closing_ends_a_wait_and_removes_the_socket(store: SqliteStore) -> None:
    hints = store.listen(Channel.READY)
    assert len(bells(store)) == 1
    thread = threading.Thread(target=lambda: hints.wait(30))
    thread.start()

    hints.close()
    thread.join(10)

    assert not thread.is_alive()
    assert bells(store) == []
    hints.close()
    hints.wake()


def test_a_ring_from_another_process(store: SqliteStore, start: Start) -> None:
    with store.listen(Channel.READY) as hints:
        child = start("put_and_ring", store.path, "images")
        assert child.hear() == "ready"
        child.tell("go")

        until(lambda: "images" in hints.wait(5))


def test_a_commit_that_rings_no_bell_is_noticed(store: SqliteStore, start: Start) -> None:
    with store.listen(Channel.READY) as hints:
        child = start("hold_transaction", store.path)
        assert child.hear() == "in"
        assert hints.wait(0.3) == set()
        child.tell()
        assert child.hear() == "out"
        # Nothing was written; now something is.
        assert start("put", store.path, "sqlite3", "x").hear() == "done"

        assert hints.wait(5) == {""}


def test_the_socket_of_a_dead_listener_is_removed(store: SqliteStore, start: Start) -> None:
    child = start("listen", store.path)
    assert child.hear() == "ready"
    store.hint(Channel.READY, ["q"])
    assert child.hear() == "q"
    child.signal(signal.SIGKILL)
    child.wait()
    assert len(bells(store)) == 1

    store.hint(Channel.READY, ["q"])

    assert bells(store) == []


def test_a_new_listener_is_found_at_once(store: SqliteStore) -> None:
    # The directory's time stamp may not tell two changes within a few milliseconds apart.
    for _ in range(30):
        with store.listen(Channel.READY) as hints:
            store.hint(Channel.READY, ["q"])
            assert hints.wait(0) == {"q"}


def test_nobody_is_blocked_by_a_listener_that_sleeps(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        began = time.monotonic()
        for number in range(1_000):
            store.hint(Channel.READY, [f"q{number}"])
        assert time.monotonic() - began < 5

        # Not all were taken in, so it is told that anything may have happened.
        assert doorbell.ANYTHING in hints.wait(5)


def test_ringing_never_raises(store: SqliteStore) -> None:
    bell = Path(f"{store.path}-bell")
    store.hint(Channel.READY, ["nobody listens"])
    with store.listen(Channel.READY):
        (bell / "holdfast_ready.no-socket").touch()
        store.hint(Channel.READY, ["q"])
        store.hint(Channel.READY, ["x" * 100_000])
        store.hint(Channel.READY, ["\udcff"])
        for name in bell.iterdir():
            name.unlink()
        bell.rmdir()
        store.hint(Channel.READY, ["q"])


def test_a_closed_directory_is_not_tried_at_every_commit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user sees it whose permissions were forgotten. (Root may look everywhere.)"""
    bell = Path(f"{store.path}-bell")
    bell.mkdir(0o700)
    asked: list[object] = []

    def refuse(folder: object, *_: object, **__: object) -> bool:
        asked.append(folder)
        return False

    monkeypatch.setattr(os, "access", refuse)
    monkeypatch.setattr(os, "supports_effective_ids", {refuse})
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a closed directory was opened"))
    for _ in range(100):
        store.hint(Channel.READY, ["q"])
    assert asked
    assert len(asked) < 50
    monkeypatch.undo()

    # Somebody has seen to it.
    with store.listen(Channel.READY) as hints:
        store.hint(Channel.READY, ["q"])
        assert "q" in hints.wait(5)


def test_a_directory_that_is_closed_while_it_is_known(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.listen(Channel.READY) as hints:

        def refuse(_: Path) -> Iterator[Path]:
            raise PermissionError

        with monkeypatch.context() as closed:
            closed.setattr(Path, "iterdir", refuse)
            store.hint(Channel.READY, ["unheard"])
        until(lambda: _heard(store, hints))


def _heard(store: SqliteStore, hints: doorbell.DoorbellListener) -> bool:
    store.hint(Channel.READY, ["q"])
    return "q" in hints.wait(0.01)


def test_many_queues_are_just_anything(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        store.hint(Channel.READY, [f"queue-{number}" for number in range(1_000)])

        assert hints.wait(5) == {""}


def test_a_path_too_long_for_an_address(
    make_store: MakeStore, tmp_path: Path, start: Start
) -> None:
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    store = make_store(deep / "tasks.db")
    store.run(verbs.make())
    with store.listen(Channel.READY) as hints:
        assert len(bells(store)) == 1
        store.hint(Channel.READY, ["q"])
        assert hints.wait(0) == {"q"}
        child = start("put_and_ring", store.path, "images")
        assert child.hear() == "ready"
        child.tell("go")
        until(lambda: "images" in hints.wait(5))
    assert bells(store) == []


@pytest.mark.parametrize(("database", "folder"), [(0o600, 0o700), (0o660, 0o770)])
def test_those_who_may_write_may_ring(
    make_store: MakeStore, path: Path, database: int, folder: int
) -> None:
    path.touch()
    path.chmod(database)
    store = make_store()
    store.run(verbs.make())
    with store.listen(Channel.READY):
        bell = Path(f"{store.path}-bell")
        assert stat.S_IMODE(bell.stat().st_mode) == folder
        (socket,) = bells(store)
        assert stat.S_IMODE(socket.stat().st_mode) == database


def test_two_stores_of_a_process_ring_each_other(make_store: MakeStore) -> None:
    first, second = make_store(), make_store()
    first.run(verbs.make())
    with first.listen(Channel.READY) as hints:
        second.hint(Channel.READY, ["q"])
        assert hints.wait(5) == {"q"}


def test_a_listener_outlives_a_store_that_is_unavailable(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.connections._LOOK_SECONDS", 0.0)
    with store.listen(Channel.READY) as hints:
        moved = Path(f"{store.path}.away")
        Path(store.path).rename(moved)
        assert hints.wait(0.3) == set()
        moved.rename(store.path)
        store.hint(Channel.READY, ["q"])
        assert "q" in hints.wait(5)


def test_many_commits_are_heard_once(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        for _ in range(50):
            store.run(verbs.put("x"))

        assert hints.wait(0) == {""}
        assert hints.wait(0) == set()


def test_idle_listening_costs_next_to_nothing(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        before = time.process_time()
        hints.wait(1.0)

        assert time.process_time() - before < 0.05


@pytest.mark.alone
def test_how_fast_it_is(store: SqliteStore, start: Start) -> None:
    with store.listen(Channel.READY) as hints:
        child = start("put_and_ring", store.path, "q")
        assert child.hear() == "ready"
        late = []
        for _ in range(200):
            child.tell("go")
            while not hints.wait(5):
                pass
            heard_at = time.monotonic()
            late.append(heard_at - float(child.hear()))
        # The child looks at its clock after it has rung, so this may even be negative.
        assert sorted(late)[100] < 0.002

    with store.listen(Channel.READY):
        began = time.perf_counter()
        for _ in range(2_000):
            store.hint(Channel.READY, ["q"])
        each = (time.perf_counter() - began) / 2_000
    assert each < 60e-6


def test_a_commit_of_anyone_changes_the_data_version(store: SqliteStore) -> None:
    before = store._commits.version()
    assert store._commits.version() == before
    with sqlite3.connect(":memory:") as unrelated:
        unrelated.execute("CREATE TABLE t (a)")
    unrelated.close()
    assert store._commits.version() == before

    store.run(verbs.put("x"))

    assert store._commits.version() != before


def test_a_file_that_nobody_writes_to_is_only_looked_at(
    store: SqliteStore, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = store._commits.version
    until(lambda: version() == version() and time.time_ns() - _written_at(store) > 100_000_000)
    before = version()
    times: list[str] = []
    take = store._connections.take_watcher

    def counted() -> Connection:
        times.append("asked")
        return take()

    monkeypatch.setattr(store._connections, "take_watcher", counted)
    for _ in range(10):
        assert version() == before
    assert not times
    assert start("put", store.path, "sqlite3", "theirs").hear() == "done"
    assert version() != before


def _written_at(store: SqliteStore) -> int:
    return Path(f"{store.path}-wal").stat().st_mtime_ns


def test_sockets_are_named_for_their_process(store: SqliteStore) -> None:
    with store.listen(Channel.READY, Channel.DONE):
        (socket,) = bells(store)

    assert socket.name.startswith(f"holdfast_ready.holdfast_done.{os.getpid()}.")
