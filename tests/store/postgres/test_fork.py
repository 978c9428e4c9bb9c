"""A forked child works on its own connections and leaves the parent's alone."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable

import psycopg
import pytest

from holdfast.store import fork
from holdfast.store.op import Channel
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import verbs
from tests.support.deadline import until

# What Python 3.12 warns of is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def in_child(work: Callable[[], object]) -> int:
    """Run this in a forked child; its exit status is 0 if nothing was raised."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - a child must never return into pytest
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def test_both_sides_of_a_fork_work(store: PostgresStore) -> None:
    store.run(verbs.put("before"))
    backend = store.run(verbs.value("backend"))

    def child() -> None:
        assert store.run(verbs.put("child")) == 1
        assert store.run(verbs.put_each(["child too"])) == 1
        assert store.run(verbs.value("backend")) != backend
        store.close()

    assert in_child(child) == 0
    assert store.run(verbs.value("backend")) == backend
    assert store.run(verbs.put("after")) == 1
    assert store.run(verbs.bodies()) == ["after", "before", "child", "child too"]


def test_a_fork_while_other_threads_are_inside(store: PostgresStore) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        inside.set()
        go_on.wait(20)

    thread = threading.Thread(target=lambda: store.run(verbs.put_each(["parent"], pause)))
    thread.start()
    inside.wait(20)
    # Also with every lock of the pool and the limiter held at the moment of the fork.
    with store._pool._lock, store._limiter._changed:
        status = in_child(lambda: store.run(verbs.put("child")))
    assert status == 0
    go_on.set()
    thread.join(20)
    assert store.run(verbs.bodies()) == ["child", "parent"]


def test_the_child_does_not_keep_the_parents_sessions_alive(store: PostgresStore) -> None:
    store.run(verbs.put("a"))
    [descriptor] = [connection.fileno() for connection in store._pool._all]

    def child() -> None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    assert in_child(child) == 0
    os.fstat(descriptor)


def test_multiprocessing(store: PostgresStore) -> None:
    store.run(verbs.put("parent"))
    process = multiprocessing.get_context("fork").Process(
        target=lambda: store.run(verbs.put("child"))
    )
    process.start()
    process.join(20)
    assert process.exitcode == 0
    assert store.run(verbs.bodies()) == ["child", "parent"]


def test_a_child_of_a_closed_store_finds_it_closed(store: PostgresStore) -> None:
    store.run(verbs.put("a"))
    store.close()
    assert in_child(lambda: store.run(verbs.bodies())) == 1


def test_a_fork_that_ran_no_hooks_is_noticed(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.run(verbs.put("a"))
    backend = store.run(verbs.value("backend"))

    def child() -> None:
        # What the process would look like had the hooks not run: it still believes to be another.
        pool = store._pool
        connection = psycopg.connect(store.settings.address)
        monkeypatch.setattr(fork, "process", os.getppid())
        pool._all.add(connection)  # type: ignore[arg-type]
        assert store.run(verbs.value("backend")) != backend
        assert connection not in pool._all

    assert in_child(child) == 0


def test_hints_of_a_child(store: PostgresStore) -> None:
    with store.listen(Channel.READY) as listener:
        until(lambda: listener.wait(0.1) == {""})
        store.hint(Channel.READY, ["parent"])
        until(lambda: "parent" in listener.wait(1.0))

        def child() -> None:
            store.hint(Channel.READY, ["child"])
            store.close()

        assert in_child(child) == 0
        until(lambda: "child" in listener.wait(1.0))


def test_a_listener_in_the_child_listens_by_itself(store: PostgresStore) -> None:
    with store.listen(Channel.READY) as listener:
        until(lambda: listener.wait(0.1) == {""})

        def child() -> None:
            until(lambda: listener.wait(0.1) == {""})
            store.hint(Channel.READY, ["x"])
            until(lambda: "x" in listener.wait(1.0))
            listener.close()

        assert in_child(child) == 0
        # The parent still hears; what the child did to its copy did not reach ours.
        until(lambda: "x" in listener.wait(1.0))
        store.hint(Channel.READY, ["y"])
        until(lambda: "y" in listener.wait(1.0))
