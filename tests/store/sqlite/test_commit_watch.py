"""Commits that ring no bell: found at once where the kernel tells of writes, soon elsewhere."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from holdfast.store.op import Channel
from holdfast.store.sqlite import commit_watch, doorbell, file_events
from holdfast.store.sqlite.file_events import FileEvents
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.support.deadline import passed, until

if TYPE_CHECKING:
    from tests.store.sqlite.conftest import MakeStore


@pytest.fixture(params=["told by the kernel", "by looking"])
def store(
    request: pytest.FixtureRequest, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> SqliteStore:
    if request.param == "by looking":
        monkeypatch.setattr(file_events, "_calls", lambda: None)
    store = make_store(driver="sqlite3")
    store.run(verbs.make())
    return store


def commit_after(store: SqliteStore, seconds: float, times: int = 1) -> Thread:
    """Somebody who knows nothing of bells commits, in a connection of its own."""

    def commit() -> None:
        with closing(sqlite3.connect(store.path)) as connection:
            for _ in range(times):
                time.sleep(seconds)
                with connection:
                    connection.execute("CREATE TABLE IF NOT EXISTS theirs (x)")
                    connection.execute("INSERT INTO theirs VALUES (1)")

    thread = Thread(target=commit)
    thread.start()
    return thread


def test_a_commit_of_others_is_noticed(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        assert hints.wait(0) == set()
        thread = commit_after(store, 0.05, times=3)
        began = time.monotonic()
        assert hints.wait(20) == {doorbell.ANYTHING}
        assert time.monotonic() - began < 10
        thread.join()
        # And the last one, whenever it came.
        until(lambda: hints.wait(0.3) == set())


def test_one_after_a_long_rest(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nobody looks any more unless the kernel tells."""
    monkeypatch.setattr(commit_watch, "_COMMITTED_WITHIN", 0.05)
    with store.listen(Channel.READY) as hints:
        until(lambda: hints.wait(0.3) == set())
        thread = commit_after(store, 0.2)
        assert hints.wait(20) == {doorbell.ANYTHING}
        thread.join()


def test_where_the_kernel_tells_nobody_looks(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.run(verbs.make())
    with store.listen(Channel.READY) as hints:
        until(lambda: hints.wait(0.1) == set() and hints._looks.descriptor is not None)
        assert hints.wait(0.1) == set()
        looks, version = count(), hints._data_version
        monkeypatch.setattr(hints, "_data_version", lambda: (next(looks), version())[1])
        assert hints.wait(1.0) == set()
        # The last one, because a ring or an event may be lost.
        assert next(looks) == 1


def test_events_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with closing(FileEvents(str(path))) as events:
        assert not events.arm()
        path.touch()
        assert events.arm()
        path.write_text("x")
        events.swallow()
        assert events.is_armed
        # Another file has its name now.
        path.with_name("new").write_text("y")
        path.with_name("new").replace(path)

        def is_known() -> bool:
            events.swallow()
            return not events.is_armed

        until(is_known)
        assert events.arm()
    assert not events.arm()


def test_without_the_kernels_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_events, "_calls", lambda: None)
    (tmp_path / "file").touch()
    with closing(FileEvents(str(tmp_path / "file"))) as events:
        assert not events.arm()
        events.swallow()
        assert events.fileno() == -1


def test_a_listener_is_closed_while_it_waits(store: SqliteStore) -> None:
    hints = store.listen(Channel.READY)
    thread = Thread(target=hints.wait, args=(20,))
    thread.start()
    passed(0.05)
    hints.close()
    thread.join(10)
    assert not thread.is_alive()
