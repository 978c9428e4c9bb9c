"""Hints are heard, and a dead listener comes back without anyone's help."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from holdfast.store.op import Channel
from holdfast.store.postgres.connection import Opener
from holdfast.store.postgres.hints import PollListener, PostgresListener
from holdfast.store.postgres.listen_route import ListenRoute
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.settings import StoreSettings, parse_url
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.proxy import Proxy

Admin = Callable[[str], list[tuple[Any, ...]]]
READY, DONE = "holdfast_ready", "holdfast_done"


@pytest.fixture
def listener(settings: StoreSettings) -> Iterator[PostgresListener]:
    with PostgresListener(ListenRoute(Opener(settings)), [READY]) as listener:
        settled(listener)
        yield listener


def settled(listener: PostgresListener) -> None:
    """Wait until it listens, and has said so."""
    until(lambda: listener.wait(0.05) == {""})


def lost(listener: PostgresListener) -> bool:
    """Let it look, and see whether it gave its connection up."""
    listener.wait(0.1)
    return listener.fileno() is None


def test_payloads_are_heard_once_each(listener: PostgresListener, admin: Admin) -> None:
    admin("BEGIN; NOTIFY holdfast_ready, 'a'; NOTIFY holdfast_ready, 'b'; COMMIT")
    admin("SELECT pg_notify('holdfast_ready', 'a') FROM generate_series(1, 3)")
    heard: list[str] = []

    def both() -> bool:
        heard.extend(listener.wait(0.05))
        return {"a", "b"} <= set(heard)

    until(both)
    assert listener.wait(0) == frozenset()


def test_other_channels_are_not_heard(listener: PostgresListener, admin: Admin) -> None:
    heard: set[str] = set()

    def the_last() -> bool:
        heard.update(listener.wait(0.05))
        return "a" in heard

    admin("NOTIFY holdfast_done, 'done'")
    admin("NOTIFY holdfast_ready, 'a'")
    until(the_last)
    assert heard == {"a"}


def test_a_wait_ends_with_its_timeout(listener: PostgresListener) -> None:
    began = time.monotonic()
    assert listener.wait(0.2) == frozenset()
    assert 0.2 <= time.monotonic() - began < 2.0
    assert listener.wait(0) == frozenset()
    assert listener.wait(-1) == frozenset()


def test_a_hint_ends_a_long_wait(listener: PostgresListener, admin: Admin) -> None:
    heard: list[frozenset[str]] = []
    thread = threading.Thread(target=lambda: heard.append(listener.wait(60)))
    thread.start()
    admin("NOTIFY holdfast_ready, 'a'")
    thread.join(10)
    assert heard == [{"a"}]


@pytest.mark.parametrize("early", [True, False])
def test_wake_ends_a_wait(listener: PostgresListener, early: bool) -> None:
    heard: list[frozenset[str]] = []
    thread = threading.Thread(target=lambda: heard.append(listener.wait(60)))
    if early:
        listener.wake()
        thread.start()
    else:
        thread.start()
        until(lambda: listener._waiting)
        listener.wake()
    thread.join(10)
    assert heard == [frozenset()]
    assert listener.wait(0) == frozenset()


def test_close_ends_a_wait(settings: StoreSettings) -> None:
    listener = PostgresListener(ListenRoute(Opener(settings)), [READY])
    settled(listener)
    thread = threading.Thread(target=listener.wait, args=(60,))
    thread.start()
    until(lambda: listener._waiting)
    listener.close()
    thread.join(10)
    assert not thread.is_alive()
    listener.close()
    listener.wake()
    assert listener.wait(60) == frozenset()


def test_a_terminated_listener_comes_back(listener: PostgresListener, admin: Admin) -> None:
    for name in ("a", "b"):
        admin(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'holdfast' AND datname = current_database()"
        )
        # Hints may have been missed meanwhile, and it says so.
        until(lambda: "" in listener.wait(0.1))
        admin(f"NOTIFY holdfast_ready, '{name}'")
        until(lambda name=name: name in listener.wait(0.1))  # type: ignore[misc]


def test_a_listener_made_while_the_server_is_away() -> None:
    with PostgresServer(fsync=False) as server:
        settings = parse_url(server.url)
        server.stop()
        with PostgresListener(ListenRoute(Opener(settings)), [READY]) as listener:
            began = time.monotonic()
            assert listener.wait(0.2) == frozenset()
            assert time.monotonic() - began < 2.0
            assert listener.fileno() is None
            server.start()
            until(lambda: listener.wait(0.1) == {""})
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("NOTIFY holdfast_ready, 'a'")
            until(lambda: listener.wait(0.1) == {"a"})
            assert listener.fileno() is not None


def test_a_silently_dead_connection_is_replaced(url: str, admin: Admin) -> None:
    with (
        Proxy.to(url) as proxy,
        PostgresListener(
            ListenRoute(Opener(parse_url(proxy.url, connect_timeout=2.0))),
            [READY],
            probe_s=0.1,
            answer_s=0.3,
        ) as listener,
    ):
        settled(listener)
        # While it answers, nothing happens.
        assert listener.wait(0.5) == frozenset()
        proxy.mute()
        began = time.monotonic()
        until(lambda: lost(listener))
        assert time.monotonic() - began < 5.0
        proxy.unmute()
        until(lambda: "" in listener.wait(0.1))
        admin("NOTIFY holdfast_ready, 'a'")
        until(lambda: "a" in listener.wait(0.1))


def test_a_session_that_stopped_listening_is_replaced(
    settings: StoreSettings, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "holdfast.store")
    with PostgresListener(ListenRoute(Opener(settings)), [READY, DONE], probe_s=0.1) as listener:
        settled(listener)
        connection = listener._connection
        assert connection is not None
        assert listener.wait(0.3) == frozenset()
        # As when a pooler hands the session to somebody else.
        until(
            lambda: (
                not listener.wait(0)
                and listener._probed_at is None
                and not connection.pgconn.is_busy()
            )
        )
        connection.execute("UNLISTEN holdfast_done")
        until(lambda: "" in listener.wait(0.1))
        assert "pooler" in caplog.text
        admin("NOTIFY holdfast_done")
        until(lambda: "" in listener.wait(0.1))


def test_a_store_listens_to_its_schema(url: str, make_store: MakeStore) -> None:
    one, two = make_store(url, schema="one"), make_store(url, schema="two")
    with one.listen(Channel.READY) as listener, two.listen(Channel.READY) as other:
        assert isinstance(listener, PostgresListener)
        assert isinstance(other, PostgresListener)
        settled(listener)
        settled(other)
        one.hint(Channel.READY, ["a"])
        until(lambda: listener.wait(0.1) == {"a"})
        assert other.wait(0) == frozenset()


def test_done_has_no_payload(store: PostgresStore) -> None:
    with store.listen(Channel.DONE) as listener:
        assert isinstance(listener, PostgresListener)
        settled(listener)
        store.hint(Channel.DONE)
        until(lambda: listener.wait(0.1) == {""})


def test_behind_a_pooler_it_only_sleeps(
    url: str, make_store: MakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "holdfast.store")
    store = make_store(url, pooler=True)
    store.listen(Channel.DONE).close()
    with store.listen(Channel.READY) as listener:
        assert isinstance(listener, PollListener)
        assert listener.fileno() is None
        began = time.monotonic()
        assert listener.wait(0.1) == frozenset()
        assert time.monotonic() - began >= 0.1
        listener.wake()
        assert listener.wait(60) == frozenset()
    assert caplog.text.count("listen_url") == 1
