"""Forks: connections never cross one, and both sides go on."""

from __future__ import annotations

import _sqlite3
import ctypes
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.errors import StoreError
from holdfast.store import fork
from holdfast.store.op import Channel
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite import connections, opener
from holdfast.store.sqlite.one_library import open_files
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start
from tests.store.sqlite.forked import in_child
from tests.support.deadline import passed, until

# Newer Pythons warn of forks beside threads, which is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_both_sides_go_on(make_store: MakeStore, driver: SqliteDriver) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())
    store.run(verbs.put("before"))

    assert in_child(lambda: store.run(verbs.put("child"))) == "2"
    store.run(verbs.put("parent"))

    assert store.run(verbs.bodies()) == ["before", "child", "parent"]


def test_nothing_is_open_while_the_process_forks(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.listen(Channel.READY) as listener:
        store.run(verbs.count())
        listener.wait(0)
        file = open_files.identity(store.path)
        assert open_files.is_open(file)
        seen: list[bool] = []

        class Witness:
            def before_fork(self) -> None: ...

            def after_fork(self, *, in_child: bool) -> None:
                if in_child:
                    os._exit(int(open_files.is_open(file)))

        # Last to join, so asked in the child before anything is opened again.
        witness = Witness()
        fork.join(witness)
        pid = os.fork()
        seen.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1)
        del witness

    assert seen == [False]
    assert store.run(verbs.put("x")) == 1


@pytest.mark.parametrize("when", ["at once", "after the parent has closed the file"])
def test_a_programs_own_connection_is_inherited(make_store: MakeStore, when: str) -> None:
    """The child loses nothing, although SQLite there believes in locks of the parent."""
    store = make_store()
    store.run(verbs.make())
    store.run(verbs.put("parent"))
    theirs = sqlite3.connect(store.path)
    theirs.execute("SELECT count(*) FROM notes").fetchall()
    store.run(verbs.put("parent"))
    reader, writer = os.pipe()
    forked, ready = os.pipe()

    def work() -> int:
        os.write(ready, b"!")
        if when != "at once":
            os.read(reader, 1)
        use = sqlite3.connect(store.path)
        use.execute("INSERT INTO notes (body) VALUES ('child')")
        use.commit()
        use.close()
        return store.run(verbs.put("child"))

    answers: list[str] = []
    child = threading.Thread(target=lambda: answers.append(in_child(work)))
    child.start()
    assert os.read(forked, 1)
    if when == "at once":
        child.join(30)
    theirs.close()
    store.close()
    if when != "at once":
        # The child is in the file, so the last one here must not clear up.
        assert Path(f"{store.path}-wal").exists()
    os.write(writer, b"!")
    child.join(30)

    again = make_store()
    assert again.run(verbs.bodies()) == ["parent", "parent", "child", "child"]
    assert answers == ["4"]
    for descriptor in (reader, writer, forked, ready):
        os.close(descriptor)


def test_a_programs_own_connection_is_inherited_by_one_who_has_no_store_yet(
    make_store: MakeStore,
) -> None:
    """As Django's is that was used before gunicorn forked, and before the first task was sent."""
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    theirs = sqlite3.connect(setup.path)
    theirs.execute("SELECT count(*) FROM notes").fetchall()
    store = make_store()
    reader, writer = os.pipe()
    forked, ready = os.pipe()

    def work() -> int:
        store.run(verbs.put("child"))
        os.write(ready, b"!")
        os.read(reader, 1)
        return store.run(verbs.put("child"))

    answers: list[str] = []
    child = threading.Thread(target=lambda: answers.append(in_child(work)))
    child.start()
    assert os.read(forked, 1)
    theirs.close()
    assert Path(f"{store.path}-wal").exists()
    os.write(writer, b"!")
    child.join(30)

    assert answers == ["2"]
    assert make_store().run(verbs.bodies()) == ["child", "child"]
    for descriptor in (reader, writer, forked, ready):
        os.close(descriptor)


def test_a_child_of_a_parent_in_a_transaction_keeps_nobody_waiting(store: SqliteStore) -> None:
    """SQLite in it takes the file for locked, for good; it must not have the turn for so long."""
    theirs = sqlite3.connect(store.path, isolation_level=None)
    store.run(verbs.put("before"))
    theirs.execute("BEGIN IMMEDIATE")
    forked, ready = os.pipe()
    reader, writer = os.pipe()

    def work() -> str:
        os.write(ready, b"!")
        os.read(reader, 1)
        began = time.monotonic()
        with pytest.raises(StoreError, match="in a transaction of another thread"):
            store.run(verbs.put("child"))
        with pytest.raises(StoreError, match="in a transaction of another thread"):
            store.run(verbs.put("child"))
        return "soon" if time.monotonic() - began < 5 else "late"

    answers: list[str] = []
    child = threading.Thread(target=lambda: answers.append(in_child(work)))
    child.start()
    assert os.read(forked, 1)
    theirs.execute("COMMIT")
    os.write(writer, b"!")
    child.join(30)

    assert answers == ["soon"]
    assert store.run(verbs.put("after")) == 2
    theirs.close()
    for descriptor in (forked, ready, reader, writer):
        os.close(descriptor)


def test_a_child_in_which_sqlite_hangs_keeps_nobody_waiting(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of the parent was inside SQLite, and what it had locked there stays locked."""
    monkeypatch.setattr(opener, "_TRIAL_SECONDS", 0.3)
    setup = make_store()
    setup.run(verbs.make())
    setup.close()
    store = make_store(driver="sqlite3")
    inside, leave = threading.Event(), threading.Event()

    def open_something() -> None:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_mutex_alloc.restype = ctypes.c_void_p
        of_open_files = ctypes.c_void_p(library.sqlite3_mutex_alloc(11))
        library.sqlite3_mutex_enter(of_open_files)
        inside.set()
        leave.wait(30)
        library.sqlite3_mutex_leave(of_open_files)

    thread = threading.Thread(target=open_something)
    thread.start()
    assert inside.wait(10)
    try:
        said = in_child(lambda: store.run(verbs.put("child")))
    finally:
        leave.set()
        thread.join()

    assert said.startswith("StoreError: this process was forked while its parent was using")
    assert store.run(verbs.put("parent")) == 1


def test_idle_connections_keep_nobody_from_wal_mode(path: Path, make_store: MakeStore) -> None:
    """Two processes with a connection each to a file that is not in WAL mode yet."""
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE mine (a)")
    theirs.commit()
    store = make_store()

    assert in_child(lambda: store.run(verbs.make())) == "None"
    store.run(verbs.put("parent"))

    theirs.close()
    assert store.probe().journal_mode == "wal"


@pytest.mark.slow
def test_forks_while_the_program_connects_and_sends(make_store: MakeStore) -> None:
    """A child that says it has written has written, whatever its parent was doing."""
    for number in range(5):
        store = make_store(f"{make_store().path}{number}", durable=False)
        store.run(verbs.make())
        stop = threading.Event()
        counts = {"ours": 0, "theirs": 0}

        def send(store: SqliteStore = store, counts: dict[str, int] = counts) -> None:
            while not stop.is_set():  # noqa: B023 - it ends within the round
                store.run(verbs.put("ours"))
                counts["ours"] += 1

        def connect(store: SqliteStore = store, counts: dict[str, int] = counts) -> None:
            for _ in range(20):
                with closing(sqlite3.connect(store.path, timeout=30)) as theirs:
                    theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
                    theirs.commit()
                    passed(0.03)
                    counts["theirs"] += 1

        def work(store: SqliteStore = store) -> str:
            with closing(sqlite3.connect(store.path, timeout=2)) as theirs:
                theirs.execute("INSERT INTO notes (body) VALUES ('child')")
                theirs.commit()
            store.run(verbs.put("child"))
            return "written"

        threads = [threading.Thread(target=send), threading.Thread(target=connect)]
        for thread in threads:
            thread.start()
        # If the parent was in a transaction, the library in the child says that it is locked.
        said = [in_child(work) for _ in range(4)]
        threads[1].join(60)
        stop.set()
        threads[0].join(60)

        bodies = store.run(verbs.bodies())
        assert {body: bodies.count(body) for body in counts} == counts
        assert bodies.count("child") >= 2 * said.count("written")
        assert "malformed" not in str(said)


def test_a_child_may_fork_again(store: SqliteStore) -> None:
    def grandchild() -> str:
        store.run(verbs.put("child"))
        return in_child(lambda: store.run(verbs.put("grandchild")))

    assert in_child(grandchild) == "2"
    assert store.run(verbs.bodies()) == ["child", "grandchild"]


def test_forks_while_threads_write(store: SqliteStore) -> None:
    stop = threading.Event()
    written = [0] * 3

    def work(place: int) -> None:
        while not stop.is_set():
            store.run(verbs.put("parent"))
            store.run(verbs.count())
            written[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            assert in_child(lambda: store.run(verbs.put("child"))).isdigit()
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)

    bodies = store.run(verbs.bodies())
    assert bodies.count("child") == 15
    assert bodies.count("parent") == sum(written)


def test_a_child_writes_while_the_parent_waits_for_its_turn(
    store: SqliteStore, start: Start
) -> None:
    holder = start("hold_turn", store.path)
    assert holder.hear() == "in"
    thread = threading.Thread(target=lambda: store.run(verbs.put("parent")))
    thread.start()
    # The thread is in the kernel's queue, with a descriptor that the child inherits.
    until(lambda: store._turns._locks is not None and store._turns._locks._waiting)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, str(store.run(verbs.put("child"))).encode())
        os._exit(0)

    holder.tell()
    thread.join(30)

    assert os.read(reader, 10).isdigit()
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)
    bodies = store.run(verbs.bodies())
    assert sorted(bodies) == ["child", "parent"]


def test_the_parents_locks_survive_the_child(store: SqliteStore, start: Start) -> None:
    # If the child closed a descriptor of ours, our locks would be gone and this would hang or
    # corrupt; so write on both sides, end the child, and let a third process look.
    for _ in range(3):
        in_child(lambda: store.run(verbs.put("child")))
        store.run(verbs.put("parent"))
    assert start("put", store.path, "sqlite3", "other").hear() == "done"

    assert store.run(verbs.count()) == 7


def _work_in_pool(number: int) -> int:
    assert _pool_store is not None
    return _pool_store.run(verbs.put(f"pool {number}"))


_pool_store: SqliteStore | None = None


def test_multiprocessing_by_fork(store: SqliteStore) -> None:
    global _pool_store
    store.run(verbs.put("before"))
    _pool_store = store
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(_work_in_pool, range(10))
    finally:
        _pool_store = None

    assert store.run(verbs.count()) == 11


def test_a_store_that_was_never_used_before_the_fork(make_store: MakeStore) -> None:
    store = make_store()

    assert in_child(lambda: (store.run(verbs.make()), store.run(verbs.put("x")))[1]) == "1"
    assert store.run(verbs.bodies()) == ["x"]


def test_memory_is_copied(make_store: MakeStore) -> None:
    store = make_store(":memory:")
    store.run(verbs.make())
    store.run(verbs.put("before"))

    assert in_child(lambda: store.run(verbs.put("child"))) == "2"
    assert store.run(verbs.bodies()) == ["before"]


def test_a_fork_without_hooks_is_noticed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.run(verbs.put("x"))
    # As if the fork had been made by a C library: no hook has run, but the process is another.
    monkeypatch.setattr(fork, "process", -1)

    with pytest.raises(StoreError, match="forked while its parent was using"):
        store.run(verbs.put("y"))


@pytest.mark.slow
def test_a_fork_during_a_long_transaction_loses_only_the_child(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_FORK_PATIENCE", 0.05)
    inside, leave = threading.Event(), threading.Event()

    def slowly(connection: object) -> None:
        inside.set()
        leave.wait(10)

    thread = threading.Thread(target=lambda: store.with_schema(slowly, lock=True))
    thread.start()
    inside.wait(10)
    said = in_child(lambda: store.run(verbs.put("child")))
    leave.set()
    thread.join(10)

    assert said.startswith("StoreError: this process was forked while its parent was using")
    assert store.run(verbs.put("parent")) == 1


def test_a_fork_inside_a_transaction_commits_only_in_the_parent(store: SqliteStore) -> None:
    reader, writer = os.pipe()
    children: list[int] = []

    def fork_inside(schema: object) -> None:
        schema._connection.execute("INSERT INTO notes (body) VALUES ('once')")  # type: ignore[attr-defined]
        children.append(os.fork())

    try:
        store.with_schema(fork_inside, lock=True)
    except StoreError as error:
        if children == [0]:
            os.write(writer, str(error).encode())
            os._exit(0)
        raise
    if children == [0]:
        os._exit(1)

    assert b"forked inside a transaction" in os.read(reader, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert store.run(verbs.bodies()) == ["once"]
    os.close(reader)
    os.close(writer)


def test_a_listener_stays_the_parents(store: SqliteStore) -> None:
    with store.listen(Channel.READY) as listener:
        ready, go = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
        store.hint(Channel.READY, ["q"])
        assert listener.wait(5) == {"q"}
        folder = Path(f"{store.path}-bell")
        assert len(list(folder.iterdir())) == 1
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for fd in (*ready, *go):
            os.close(fd)
