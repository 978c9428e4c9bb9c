"""Servers that go away, come back, or lose the answer to a commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.store.op import Op, Statement, Steps, writes
from holdfast.store.postgres import backoff, connection
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import verbs
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.proxy import Proxy

Admin = Callable[[str], list[tuple[Any, ...]]]
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'holdfast' AND datname = current_database()"
)


def unavailable(store: PostgresStore, op: Op[Any]) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        store.run(op)
    return caught.value


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that this test may harm, with the table `notes`."""
    with PostgresServer(fsync=False) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE notes (id uuid PRIMARY KEY, body text)")
        yield server


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy.to(url) as proxy:
        yield proxy


def test_a_restart_between_operations_is_not_noticed(
    server: PostgresServer, make_store: MakeStore
) -> None:
    store = make_store(server.url)
    store.run(verbs.put("a"))
    server.restart()
    assert store.run(verbs.put("b")) == 1
    server.kill()
    server.start()
    assert store.run(verbs.put_each(["c"])) == 1
    assert store.run(verbs.bodies()) == ["a", "b", "c"]


def test_while_the_server_is_away_it_is_refused_not_silent(
    server: PostgresServer, make_store: MakeStore
) -> None:
    store = make_store(server.url)
    store.run(verbs.put("a"))
    server.stop()
    began = time.monotonic()
    errors = [unavailable(store, verbs.put("b")) for _ in range(6)]
    waited = time.monotonic() - began
    assert not any(error.silent or error.commit_unknown for error in errors)
    # A loop that only tries again is slowed down, and not too much.
    assert 0.2 < waited < 6 * backoff.CAP_S + 2.0
    server.start()
    began = time.monotonic()
    assert store.run(verbs.put("b")) == 1
    assert time.monotonic() - began < backoff.CAP_S + 2.0
    assert store.run(verbs.bodies()) == ["a", "b"]


def test_a_server_that_shuts_down_in_the_middle(
    server: PostgresServer, make_store: MakeStore
) -> None:
    store = make_store(server.url)
    error = unavailable(store, verbs.put_each(["a"], lambda: server.stop("fast")))
    # The goodbye of the server is what COMMIT meets: whether it landed cannot be told.
    assert error.commit_unknown
    server.start()
    assert store.run(verbs.bodies()) == []


def test_a_frozen_server_is_silent(
    server: PostgresServer, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLACK_S", 0.3)
    store = make_store(server.url, statement_timeout=0.3)
    store.run(verbs.put("a"))
    server.freeze()
    try:
        began = time.monotonic()
        read = unavailable(store, verbs.bodies())
        assert time.monotonic() - began < 5.0
        assert read.silent
        assert not read.commit_unknown
    finally:
        server.thaw()
    assert store.run(verbs.bodies()) == ["a"]
    server.freeze()
    try:
        write = unavailable(store, verbs.put("b"))
        assert write.silent
        assert write.commit_unknown
    finally:
        server.thaw()


def test_a_terminated_idle_backend_is_replaced(store: PostgresStore, admin: Admin) -> None:
    store.run(verbs.put("a"))
    for number in range(3):
        assert admin(TERMINATE) == [(True,)]
        until(lambda: not admin(TERMINATE))
        assert store.run(verbs.put(f"b{number}")) == 1


def test_a_backend_terminated_inside_a_transaction(store: PostgresStore, admin: Admin) -> None:
    # Nothing was being committed: the next statement meets the end of the session.
    @writes
    def put_twice() -> Steps[None]:
        yield Statement("put_silently", {"id": verbs.new_id(), "body": "a"})
        admin(TERMINATE)
        yield Statement("put_silently", {"id": verbs.new_id(), "body": "b"})

    error = unavailable(store, put_twice())
    assert not error.commit_unknown
    assert not error.silent
    assert store.run(verbs.bodies()) == []


@pytest.mark.parametrize(
    ("make", "cut_at"),
    [
        (lambda: verbs.put_each(["landed"]), b"COMMIT"),
        (lambda: verbs.put("landed"), b"landed"),
    ],
    ids=["commit", "alone"],
)
@pytest.mark.parametrize("far", [False, True])
def test_a_lost_answer_to_a_commit_is_not_known(
    proxy: Proxy,
    make_store: MakeStore,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], Op[int]],
    cut_at: bytes,
    far: bool,
) -> None:
    monkeypatch.setattr(connection, "FAR_S", -1.0 if far else float("inf"))
    store = make_store(proxy.url)
    store.run(verbs.put("first"))
    store.run(verbs.put_each(["second"]))
    proxy.lose_answer_to(cut_at)
    error = unavailable(store, make())
    assert error.commit_unknown
    assert "not known" in str(error)
    assert proxy.lost == 1
    proxy.lose_answer_to(None)
    # It had landed, and the store says so when it is asked again.
    assert store.run(verbs.bodies()) == ["first", "landed", "second"]


@pytest.mark.parametrize("far", [False, True])
def test_a_cut_before_the_commit_is_known(
    proxy: Proxy, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, far: bool
) -> None:
    monkeypatch.setattr(connection, "FAR_S", -1.0 if far else float("inf"))
    store = make_store(proxy.url)
    proxy.lose_answer_to(b"doomed")
    for op in (verbs.put_each(["doomed"]), verbs.put_together(["doomed", "more"])):
        error = unavailable(store, op)
        assert not error.commit_unknown
    proxy.lose_answer_to(None)
    assert store.run(verbs.bodies()) == []


def test_a_lost_answer_to_a_read_leaves_nothing_open(proxy: Proxy, make_store: MakeStore) -> None:
    store = make_store(proxy.url)
    proxy.lose_answer_to(b"ORDER BY body")
    assert not unavailable(store, verbs.bodies()).commit_unknown
    proxy.lose_answer_to(None)
    assert store.run(verbs.bodies()) == []


def test_a_silent_network_ends_the_wait(
    proxy: Proxy, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLACK_S", 0.2)
    store = make_store(proxy.url, statement_timeout=0.3, connect_timeout=2)
    store.run(verbs.put("a"))
    proxy.mute()
    assert unavailable(store, verbs.bodies()).silent
    began = time.monotonic()
    assert unavailable(store, verbs.bodies()).silent
    assert time.monotonic() - began < 5.0
    proxy.unmute()
    assert store.run(verbs.bodies()) == ["a"]


def test_threads_share_few_connections(url: str, make_store: MakeStore, admin: Admin) -> None:
    store = make_store(url, max_connections=3)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                store.run(verbs.put(f"{number}-{turn}"))
        except BaseException as error:  # noqa: BLE001 - reported below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(store.run(verbs.bodies())) == 80
    [(sessions,)] = admin(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'holdfast' AND datname = current_database()"
    )
    # One of the three is kept for the listener.
    assert sessions <= 2
