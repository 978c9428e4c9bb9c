"""One library for each file: our connections follow those of the program, whoever comes first."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.core.errors import ConfigError
from holdfast.store.op import Channel
from holdfast.store.sqlite import connections
from holdfast.store.sqlite.drivers import driver
from holdfast.store.sqlite.one_library import connect_hook, handover, open_files, process_locks
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.store.sqlite.verbs import run_on
from tests.support.deadline import until


def library(store: SqliteStore) -> str:
    return store.probe().library


def use(path: Any, **settings: Any) -> None:
    """What a program does for one request."""
    with closing(sqlite3.connect(path, **settings)) as theirs:
        theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
        theirs.commit()


def sound(store: SqliteStore) -> bool:
    with closing(sqlite3.connect(store.path)) as theirs:
        return theirs.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_apsw_is_the_default(store: SqliteStore) -> None:
    assert library(store) == "apsw"


def test_two_stores_of_one_library(make_store: MakeStore) -> None:
    make_store(driver="sqlite3").run(verbs.make())

    assert make_store(driver="sqlite3").run(verbs.count()) == 0


@pytest.mark.parametrize(("first", "second"), [("apsw", "sqlite3"), ("sqlite3", "apsw")])
def test_two_stores_of_two_libraries_become_of_one(
    make_store: MakeStore, first: str, second: str
) -> None:
    one, other = make_store(driver=first), make_store(driver=second)
    one.run(verbs.make())
    other.run(verbs.put("x"))
    one.run(verbs.put("y"))

    assert {library(one), library(other)} == {"sqlite3"}
    assert other.run(verbs.bodies()) == ["x", "y"]


def test_after_all_are_closed_it_begins_anew(make_store: MakeStore) -> None:
    first = make_store(driver="sqlite3")
    first.run(verbs.make())
    first.close()
    second = make_store()
    second.run(verbs.count())

    assert library(second) == "apsw"


def test_the_second_store_follows_the_first(make_store: MakeStore) -> None:
    make_store(driver="sqlite3").run(verbs.make())
    second = make_store()
    second.run(verbs.count())

    assert library(second) == "sqlite3"


def test_a_store_follows_a_connection_that_was_there_before(make_store: MakeStore) -> None:
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    theirs = sqlite3.connect(setup.path)
    theirs.execute("SELECT count(*) FROM notes")
    try:
        store = make_store()
        store.run(verbs.count())

        assert library(store) == "sqlite3"
    finally:
        theirs.close()


def test_a_connection_among_frozen_objects_is_followed_too(make_store: MakeStore) -> None:
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    with closing(sqlite3.connect(setup.path)):
        # As servers do before they fork.
        gc.freeze()
        try:
            store = make_store()
            store.run(verbs.count())
        finally:
            gc.unfreeze()

        assert library(store) == "sqlite3"


def test_a_file_that_becomes_ours_while_it_is_opened(
    make_store: MakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there yet when the program began to open it."""
    store = make_store()
    make_store(path.with_name("other.db")).run(verbs.make())
    look = connect_hook._files

    def look_then_make(found: Iterable[bytes]) -> list[Any]:
        files = list(look(found))
        monkeypatch.undo()
        store.run(verbs.make())
        assert library(store) == "apsw"
        return files

    monkeypatch.setattr(connect_hook, "_files", look_then_make)
    with closing(sqlite3.connect(path)) as theirs:
        assert library(store) == "sqlite3"
        theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
        theirs.commit()

    assert store.run(verbs.bodies()) == ["theirs"]


def test_a_store_follows_a_connection_that_comes_later(store: SqliteStore) -> None:
    store.run(verbs.put("ours"))
    use(store.path)
    store.run(verbs.put("ours"))

    assert library(store) == "sqlite3"
    assert store.run(verbs.bodies()) == ["ours", "theirs", "ours"]


def test_a_connection_that_never_read_counts_as_well(store: SqliteStore) -> None:
    store.run(verbs.put("ours"))
    sqlite3.connect(store.path).close()

    assert library(store) == "sqlite3"


def test_a_connection_that_could_not_be_opened_keeps_nothing_open(
    store: SqliteStore, make_store: MakeStore
) -> None:
    store.run(verbs.put("ours"))
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{store.path}?mode=nonsense", uri=True)
    file = open_files.identity(store.path)
    store.close()

    assert file not in process_locks._places
    again = make_store()
    again.run(verbs.count())
    assert library(again) == "apsw"


def test_code_of_others_runs_without_our_mutex(
    path: Path, make_store: MakeStore, tmp_path: Path
) -> None:
    """The first connection looks for stores that nobody has closed, so finalizers run then."""
    ended: list[bool] = []

    class Finalized:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            thread = threading.Thread(target=sqlite3.connect, args=(tmp_path / "other.db",))
            thread.start()
            thread.join(5)
            ended.append(not thread.is_alive())

    gc.collect()
    gc.disable()
    try:
        with closing(apsw.Connection(str(path))) as theirs:
            theirs.execute("CREATE TABLE mine (a)")
            (tmp_path / "other.db").touch()
            Finalized()
            make_store().run(verbs.make())
    finally:
        gc.enable()

    assert ended == [True]


def test_another_file_changes_nothing(store: SqliteStore, tmp_path: Path) -> None:
    for place in (tmp_path / "other.db", ":memory:", "", f"file:{tmp_path}/new.db"):
        sqlite3.connect(place, uri=True).close()
    with pytest.raises(TypeError):
        sqlite3.connect(None)  # type: ignore[call-overload]
    with pytest.raises((ValueError, sqlite3.Error)):
        sqlite3.connect("nul\0byte")

    assert library(store) == "apsw"


@pytest.mark.parametrize(
    "name",
    [
        lambda path: path,
        lambda path: str(path),
        lambda path: os.fsencode(path),
        lambda path: path.name,
        lambda path: f"./sub/../{path.name}",
        lambda path: f"file:{path.name}?mode=rw",
        lambda path: f"file:{path}?nolock=0#fragment",
        lambda path: f"{path.as_uri()}?cache=private",
        lambda path: path.as_uri().replace("///", "//localhost/"),
        lambda path: f"file:{str(path).replace('tasks', '%74asks')}",
        lambda path: path.with_name("soft.db"),
        lambda path: path.with_name("hard.db"),
    ],
)
def test_by_whatever_name(
    store: SqliteStore,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: Callable[[Path], Any],
) -> None:
    store.run(verbs.put("ours"))
    path.with_name("sub").mkdir()
    path.with_name("soft.db").symlink_to(path)
    os.link(path, path.with_name("hard.db"))
    monkeypatch.chdir(path.parent)

    sqlite3.connect(name(path), uri=True).close()

    assert library(store) == "sqlite3"


def test_whoever_listens_hears_on(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as hints:
        store.run(verbs.put_and_ring("x", "images"))
        assert "images" in hints.wait(5)
        use(store.path)
        assert hints.wait(5)
        store.run(verbs.put_and_ring("x", "letters"))
        until(lambda: "letters" in hints.wait(5))


def test_nothing_is_lost_while_many_threads_write_and_connect(store: SqliteStore) -> None:
    stop = threading.Event()
    written = [0] * 3

    def write(place: int) -> None:
        while not stop.is_set():
            store.run(verbs.put("ours"))
            store.run(verbs.count())
            written[place] += 1

    threads = [threading.Thread(target=write, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()

    def connect() -> None:
        for _ in range(10):
            use(store.path, timeout=30)

    users = [threading.Thread(target=connect) for _ in range(3)]
    until(lambda: all(written))
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    stop.set()
    for thread in threads:
        thread.join(60)

    bodies = store.run(verbs.bodies())
    assert bodies.count("theirs") == 30
    assert bodies.count("ours") == sum(written)
    assert sound(store)


def test_an_operation_under_way_is_waited_for(store: SqliteStore) -> None:
    began, go_on, connected = threading.Event(), threading.Event(), threading.Event()

    def halfway() -> None:
        began.set()
        go_on.wait(30)

    ours = threading.Thread(target=lambda: store.run(verbs.put_then_call("ours", halfway)))
    ours.start()
    assert began.wait(30)

    def connect() -> None:
        use(store.path)
        connected.set()

    theirs = threading.Thread(target=connect)
    theirs.start()
    assert not connected.wait(0.2)
    go_on.set()
    ours.join(30)
    theirs.join(30)

    assert store.run(verbs.bodies()) == ["ours", "theirs"]


def test_an_operation_that_does_not_end_makes_the_connection_fail(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_PATIENCE", 0.2)
    began, go_on = threading.Event(), threading.Event()

    def halfway() -> None:
        began.set()
        go_on.wait(30)

    ours = threading.Thread(target=lambda: store.run(verbs.put_then_call("ours", halfway)))
    ours.start()
    assert began.wait(30)
    with pytest.raises(sqlite3.OperationalError, match=r"locked.*did not end"):
        sqlite3.connect(store.path)
    go_on.set()
    ours.join(30)

    assert library(store) == "apsw"
    use(store.path)
    assert store.run(verbs.bodies()) == ["ours", "theirs"]


def test_inside_an_operation_it_fails_at_once(store: SqliteStore) -> None:
    """A signal handler, say: waiting for the operation would be waiting for itself."""
    began = time.monotonic()

    with pytest.raises(sqlite3.OperationalError, match="interrupts"):
        store.run(verbs.put_then_call("ours", lambda: use(store.path)))

    assert time.monotonic() - began < 5
    assert store.run(verbs.bodies()) == []


def test_a_callers_own_apsw_cannot_be_closed_so_sqlite3_is_refused(store: SqliteStore) -> None:
    with closing(apsw.Connection(store.path)) as theirs:
        theirs.execute("SELECT count(*) FROM notes")
        with pytest.raises(ConfigError, match="two SQLite libraries") as caught:
            sqlite3.connect(store.path)
        assert caught.value.option == "driver"
        store.run(verbs.put("ours"))

    use(store.path)
    assert store.run(verbs.bodies()) == ["ours", "theirs"]


def test_an_attached_file_of_a_callers_own_apsw_too(store: SqliteStore) -> None:
    with closing(apsw.Connection(":memory:")) as theirs:
        theirs.execute("ATTACH ? AS tasks", (store.path,))
        with pytest.raises(ConfigError, match="two SQLite libraries"):
            sqlite3.connect(store.path)


def test_a_store_beside_a_callers_own_apsw_cannot_be_of_sqlite3(make_store: MakeStore) -> None:
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    with closing(apsw.Connection(setup.path)) as theirs:
        theirs.execute("SELECT count(*) FROM notes")
        with pytest.raises(ConfigError, match="all sqlite3 or all apsw"):
            make_store(driver="sqlite3").run(verbs.count())
        assert make_store().run(verbs.count()) == 0


def test_a_callers_own_apsw_is_known_without_a_store(path: Path, make_store: MakeStore) -> None:
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    with closing(apsw.Connection(str(path))) as theirs:
        run_on(theirs, verbs.put("x"), setup.settings, texts=verbs.texts)
        with pytest.raises(ConfigError, match="two SQLite libraries"):
            sqlite3.connect(path)
    sqlite3.connect(path).close()


def test_a_noted_connection_is_remembered_while_it_is_open(path: Path) -> None:
    path.touch()
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE t (a)")
        handover.note(str(path), "sqlite3")
        with pytest.raises(ConfigError):
            handover.note(str(path), "apsw")

    handover.note(str(path), "apsw")


def test_attach_is_noticed_late_and_cured(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
    left = len(driver.abandoned)
    store.run(verbs.put("ours"))
    with closing(sqlite3.connect(":memory:")) as theirs:
        theirs.execute("ATTACH ? AS tasks", (store.path,))
        assert store.run(verbs.count()) == 1

        assert library(store) == "sqlite3"
        # Closing them would have dropped the locks of the connection above.
        assert len(driver.abandoned) > left
        assert "ATTACH" in caplog.text
        theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
        theirs.commit()
        store.run(verbs.put("ours"))

    assert store.run(verbs.bodies()) == ["ours", "theirs", "ours"]
    assert sound(store)


def test_another_library_in_c_is_noticed_and_the_file_left_alone(
    make_store: MakeStore, start: Start, tmp_path: Path
) -> None:
    """A program of its own: there the file is lost for the rest of the process."""
    one, other = make_store(), make_store(tmp_path / "elsewhere.db")
    one.run(verbs.make())
    other.run(verbs.make())
    child = start("meet_another_library", one.path, other.path)

    said = child.hear()

    assert said.startswith("StoreError another SQLite library than apsw")
    assert child.hear().startswith("ConfigError another SQLite library than apsw and sqlite3")
    assert child.hear() == "done"


def test_one_who_only_copies_the_file_is_no_library(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
    store.run(verbs.put("ours"))
    copy = Path(f"{store.path}-shm").open("rb")  # noqa: SIM115
    gc.collect()
    if open_files.sqlite3_has_any():
        # Left open by another test of this process; then it would be taken for their ATTACH.
        copy.close()
        return
    store._connections._look()
    copy.close()

    assert store.run(verbs.count()) == 1
    assert library(store) == "apsw"


def test_the_hook_costs_other_events_next_to_nothing(store: SqliteStore) -> None:
    assert library(store) == "apsw"
    import sys

    def cost() -> float:
        began = time.perf_counter()
        for _ in range(1_000):
            sys.audit("tests.event", 1)
        return time.perf_counter() - began

    assert min(cost() for _ in range(5)) < 0.01


def test_proxies_in_the_process_are_left_in_peace(path: Path) -> None:
    """Like Django's settings: whoever asks for its class brings it to life, or fails to."""

    def wake(self: object) -> type:
        raise LookupError("not configured yet")

    proxies = [type("Proxy", (), {"__class__": property(wake)})()]

    assert open_files.sqlite3_has_any() in (True, False)
    assert proxies
