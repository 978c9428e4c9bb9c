"""Behind a transaction pooler nothing is left on the session, and nothing is expected of it."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from holdfast import ConfigError, Holdfast, Retry, TaskFailed, Unique, WaitTimeout, current_task
from holdfast.store.op import Channel, Statement, Steps, alone, reads, writes
from holdfast.store.postgres import listen_route
from holdfast.store.postgres.connection import OwnConnection
from holdfast.store.postgres.hints import PollListener
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import conftest, verbs
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import passed, until
from tests.support.pooler import TransactionPooler
from tests.support.postgres import PostgresServer

PINS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "transaction_isolation": "read committed",
}


@pytest.fixture
def pooled(url: str, make_store: MakeStore) -> PostgresStore:
    return make_store(url, pooler=True)


def settings_of(names: list[str]) -> Steps[dict[str, str]]:
    found = {}
    for name in names:
        rows = yield Statement("setting", {"name": name})
        found[name] = rows[0][0]
    return found


def test_writes_bring_their_settings_along(pooled: PostgresStore) -> None:
    assert pooled.run(writes(settings_of)(list(PINS))) == PINS
    assert pooled.run(alone(settings_of)(list(PINS))) == PINS


def test_nothing_stays_behind(pooled: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conftest.TEXTS, "traces", "SELECT count(*) FROM pg_prepared_statements")
    for turn in range(10):
        pooled.run(verbs.put(f"a{turn}"))
        pooled.run(verbs.put_each([f"b{turn}", f"c{turn}"]))
        pooled.run(verbs.bodies())
    assert pooled.run(verbs.value("traces")) == 0
    after = pooled.run(reads(settings_of)(list(PINS)))
    assert after["plan_cache_mode"] == "auto"
    assert after["enable_seqscan"] == "on"
    assert after["statement_timeout"] == "0"


def test_hints_are_still_sent(pooled: PostgresStore, store: PostgresStore) -> None:
    with store.listen(Channel.READY) as listener:
        until(lambda: listener.wait(0.1) == {""})
        pooled.run(verbs.put_and_tell("a", "q"))
        until(lambda: "q" in listener.wait(0.1))


TRACES = b"""
    SELECT 'prepared: ' || statement FROM pg_prepared_statements
    UNION ALL
    SELECT 'listens to ' || channel FROM pg_listening_channels() AS channel
    UNION ALL
    SELECT 'setting ' || name FROM pg_settings WHERE source = 'session' AND name <> ALL (%s)
    UNION ALL
    SELECT 'advisory lock' FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    UNION ALL
    SELECT 'temporary ' || relname FROM pg_class WHERE relpersistence = 't'
"""
OF_THE_DRIVER = ["client_encoding", "DateStyle", "TimeZone", "application_name"]
"""What a connection is opened with; a pooler keeps track of these."""


class Pooler:
    """Does to sessions what a transaction pooler may, whenever a transaction has ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.transactions = 0
        self.traces: set[str] = set()
        release = Pool.release

        def between(pool: Pool, connection: OwnConnection) -> None:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                self._look(connection)
            release(pool, connection)

        monkeypatch.setattr(Pool, "release", between)

    def _look(self, connection: OwnConnection) -> None:
        self.transactions += 1
        found = connection.execute(TRACES, [OF_THE_DRIVER], prepare=False).fetchall()
        self.traces.update(str(row[0]) for row in found)
        # Behind the driver's back, which would otherwise forget what it had prepared.
        connection.pgconn.exec_(b"DISCARD ALL")
        if self.transactions % 3 == 0:
            # Somebody else's transaction: the next one of ours is on another server process.
            connection.close()


def test_a_whole_life_with_a_new_session_for_every_transaction(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooler = Pooler(monkeypatch)
    with Holdfast(postgres_url, pooler=True) as app:

        @app.task(retry=Retry(1))
        def divide(a: int, b: int) -> float:
            task = current_task()
            task.set_progress(1, 2)
            return task.checkpoint("division", lambda: a / b)

        assert isinstance(app._access.store().listen(Channel.DONE), PollListener)
        good, bad = divide.send(6, 3), divide.send(1, 0)
        many = divide.send_many([(n, 1) for n in range(50)])
        unique = divide.options(unique=Unique("key"))
        assert unique.send(1, 1).id == unique.send(1, 1).id
        later = divide.schedule(3600, 1, 1)
        assert app.worker().run_until_idle() >= 53
        assert good.get(timeout=10) == 2
        assert [handle.get(timeout=10) for handle in many] == list(range(50))
        with pytest.raises(TaskFailed):
            bad.get(timeout=10)
        assert bad.resubmit() == "PENDING"
        assert (bad.cancel(), later.cancel()) == ("CANCELLED", "CANCELLED")
        assert len(bad.attempts()) == 2
        assert app.control.tasks.count() == {"COMPLETED": 52, "CANCELLED": 2}
        assert app.control.tasks.delete(good) == {good.id: True}
    assert pooler.traces == set()
    assert pooler.transactions > 100


def test_without_the_setting_it_is_noticed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooler = Pooler(monkeypatch)
    with Holdfast(postgres_url) as app:
        handles = (app.send("any").status() for _ in range(10))
        with pytest.raises(ConfigError, match="set pooler=True"):
            list(handles)
    assert any(trace.startswith("prepared") for trace in pooler.traces)
    assert "setting statement_timeout" in pooler.traces


@pytest.fixture
def pooler(postgres_url: str) -> Iterator[TransactionPooler]:
    with TransactionPooler.to(postgres_url) as pooler:
        yield pooler


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not arrive is not waited for long."""
    monkeypatch.setattr(listen_route, "PATIENCE_S", (0.3,))


def test_a_pooler_is_recognised_and_nothing_is_left_on_its_sessions(
    pooler: TransactionPooler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "holdfast.store")
    with Holdfast(pooler.url) as app:

        @app.task
        def add(a: int, b: int) -> int:
            return a + b

        handles = add.send_many([(n, n) for n in range(20)])
        assert app.worker().run_until_idle() == 20
        assert [handle.get(timeout=10) for handle in handles] == [2 * n for n in range(20)]
        assert add.send(1, 1).cancel() == "CANCELLED"
    assert pooler.transactions > 20
    assert caplog.text.count("a connection pooler stands before") == 1
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as looker:
        for _ in range(10):
            traces = looker.execute(TRACES, [OF_THE_DRIVER]).fetchall()
            assert traces == []


def test_what_was_said_about_a_pooler_is_not_questioned(pooler: TransactionPooler) -> None:
    with Holdfast(pooler.url, pooler=False) as app:
        handles = (app.send("any").status() for _ in range(20))
        with pytest.raises(ConfigError, match="set pooler=True"):
            list(handles)


def test_no_pooler_is_seen_where_there_is_none(store: PostgresStore) -> None:
    with store._pool.connection() as connection:
        assert not connection.pooled


def test_where_no_notification_arrives_it_is_said_once_and_polled(
    pooler: TransactionPooler, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(pooler.url) as app:
        store = app._access.store()
        for _ in range(3):
            with store.listen(Channel.READY) as listener:
                until(lambda: "do not arrive" in caplog.text)
                began = monotonic()
                assert listener.wait(0.2) == frozenset()
                assert monotonic() - began >= 0.2
        assert caplog.text.count("do not arrive") == 1
        assert "a transaction pooler stands in between" in caplog.text
        assert "--listen-url" in caplog.text
        handle = app.send("any")
        with pytest.raises(WaitTimeout):
            handle.get(timeout=0.2)


def test_listening_directly_beside_the_pooler(
    pooler: TransactionPooler, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    both: list[dict[str, Any]] = [{}, {"pooler": True}]
    for settings in both:
        with (
            Holdfast(pooler.url, listen_url=postgres_url, **settings) as app,
            app._access.store().listen(Channel.READY) as listener,
        ):
            until(lambda: listener.wait(0.1) == {""})
            app.options(queue="images").send("any")
            until(lambda: "images" in listener.wait(1))
    assert "do not arrive" not in caplog.text


def test_a_listen_url_that_leads_elsewhere_is_named(
    pooler: TransactionPooler,
    postgres_url: str,
    postgres_server: PostgresServer,
    impatient: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for url in (postgres_server.url, pooler.url):
        with (
            Holdfast(postgres_url, listen_url=url) as app,
            app._access.store().listen(Channel.READY),
        ):
            until(lambda: f":{urlsplit(url).port}/" in caplog.text)  # noqa: B023 - called at once
    assert "this listen_url leads to another database" in caplog.text
    assert "this listen_url leads through a transaction pooler, too" in caplog.text


@pytest.mark.parametrize("elsewhere", ["127.0.0.1:1/db", "{here}/absent"])
def test_a_listen_url_that_nobody_answers_is_named_once(
    postgres_url: str, caplog: pytest.LogCaptureFixture, elsewhere: str
) -> None:
    """A wrong port, database or password: all else works, only later than it could."""
    here = postgres_url.rpartition("@")[2].rpartition("/")[0]
    url = f"postgresql://holdfast:hunter2@{elsewhere.format(here=here)}"
    with (
        Holdfast(postgres_url, listen_url=url) as app,
        app._access.store().listen(Channel.READY),
    ):
        until(lambda: "the listen_url cannot be used" in caplog.text)
        # It is tried again, and once is enough.
        passed(1.0)
    assert caplog.text.count("the listen_url cannot be used") == 1
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("url", ["sqlite:///x.db", "u:secret@h/x", "postgres:/u:secret@h/x"])
def test_a_listen_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="listen_url") as caught:
        Holdfast("postgresql://h/x", listen_url=url)
    assert "secret" not in str(caught.value)
