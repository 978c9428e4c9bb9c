"""An examination finds what is really there: each condition is made, found, and undone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import apsw
import psycopg
import pytest

from holdfast import Holdfast, Workflow
from holdfast.client.doctor.finding import Diagnosis, Finding, Severity
from holdfast.store.verbs import workers
from tests.client.conftest import Hands
from tests.support.deadline import until

MINUTE = 60_000_000
SERVER = {"fsync-off", "full-page-writes-off"}
"""The server of the tests really runs so."""
OpenApp = Callable[..., Holdfast]


def find(app: Holdfast, code: str, **options: str) -> list[Finding]:
    return [each for each in app.control.doctor(**options).findings if each.code == code]


def found(diagnosis: Diagnosis) -> dict[str, Severity]:
    # The disk of whoever runs the tests may really be full.
    return {
        each.code: each.severity
        for each in diagnosis.findings
        if each.code not in SERVER | {"disk-space", "checkpoints-too-often"}
    }


def join(hands: Hands, name: str = "w-1", known: str = "[]", version: str = "0.0") -> None:
    hands.run(
        workers.register(
            name,
            hostname="host-1",
            pid=42,
            version=version,
            lease_us=30_000_000,
            queues='["default"]',
            known=known,
            settings="{}",
        )
    )


def test_an_empty_store_has_no_worker(app: Holdfast) -> None:
    diagnosis = app.control.doctor()
    assert found(diagnosis) == {"no-worker": Severity.NOTICE}
    assert {"workers", "leases", "rows", "disk", "clock"} <= set(diagnosis.examined)
    assert all(each.meaning and each.remedy for each in diagnosis.findings)
    assert asyncio.run(app.control.adoctor()).engine == diagnosis.engine


def test_tasks_without_a_worker(app: Holdfast) -> None:
    app.send("x")
    app.send("y")
    (finding,) = find(app, "no-worker")
    assert (finding.severity, finding.detail) == (Severity.CRITICAL, {"waiting": 2})


def test_a_queue_that_nobody_serves_and_a_task_that_nobody_knows(
    app: Holdfast, hands: Hands
) -> None:
    join(hands, known='["known@1"]')
    app.send("known")
    assert found(app.control.doctor()) == {}
    for _ in range(3):
        app.send("renamed")
    app.options(queue="nobody").send("known")
    (unknown,) = find(app, "task-unknown")
    assert unknown.detail == {"task": "renamed", "version": 1, "queue": "default", "number": 3}
    (unserved,) = find(app, "queue-unserved")
    assert unserved.detail["queue"] == "nobody"
    assert "-q nobody" in unserved.remedy
    assert not find(app, "queue-behind")
    (behind,) = find(app, "queue-behind", patience="0s")
    assert behind.detail["pending"] == 4


def test_a_queue_that_is_paused(app: Holdfast, hands: Hands) -> None:
    join(hands)
    app.send("x")
    app.control.queues.pause("default", by="ada")
    (finding,) = find(app, "queue-paused")
    assert "ada paused" in finding.what
    assert finding.severity is Severity.NOTICE
    app.control.queues.resume("default")
    assert not find(app, "queue-paused")


def test_a_worker_that_fell_silent(app: Holdfast, hands: Hands) -> None:
    join(hands)
    with raw(app) as (sql, now):
        sql(f"UPDATE holdfast_workers SET seen_at = {now(-MINUTE)}")
    (finding,) = find(app, "worker-silent")
    assert finding.detail == {"worker_id": "w-1", "hostname": "host-1", "pid": 42}
    hands.run(workers.stop("w-1"))
    assert not find(app, "worker-silent")


def test_of_many_alike_some_are_told(app: Holdfast, hands: Hands) -> None:
    for n in range(23):
        join(hands, f"w-{n}")
    with raw(app) as (sql, now):
        sql(f"UPDATE holdfast_workers SET seen_at = {now(-MINUTE)}")
    told = find(app, "worker-silent")
    assert len(told) == 21
    assert told[-1].what == "3 more findings of this kind (worker-silent)"
    assert "nobody is there to take its tasks over" in told[0].meaning


def test_workers_of_two_versions(app: Holdfast, hands: Hands) -> None:
    for name in ("1.0", "1.1"):
        join(hands, name, version=name)
    assert find(app, "versions-differ")[0].detail == {"versions": ["1.0", "1.1"]}


def test_a_lease_that_nobody_recovers(app: Holdfast, hands: Hands) -> None:
    hands.take(app.send("t"))
    assert not find(app, "leases-expired")
    with raw(app) as (sql, now):
        sql(f"UPDATE holdfast_leases SET expires_at = {now(-MINUTE)}")
    (finding,) = find(app, "leases-expired")
    assert (finding.severity, finding.detail["leases"]) == (Severity.WARNING, 1)
    join(hands)
    assert find(app, "leases-expired")[0].severity is Severity.CRITICAL


def test_rows_by_hand(app: Holdfast, hands: Hands) -> None:
    tasks = [app.send("x"), app.send("y")]
    hands.take(tasks[0])
    join(hands)
    with raw(app) as (sql, _):
        sql("UPDATE holdfast_tasks SET args = '{'")
        sql("UPDATE holdfast_workers SET known = 'nope'")
    wrong = {each.detail["column"]: each for each in find(app, "row-unreadable")}
    assert wrong.keys() == {"args", "known"}
    assert "delete --unreadable" in wrong["args"].remedy
    assert len(find(app, "row-unreadable")) == 3


def test_a_schedule_that_is_late(app: Holdfast) -> None:
    @app.task("nightly")
    def nightly() -> None: ...

    app.control.schedules.add("late", timedelta(hours=1), nightly.call())
    assert not find(app, "schedule-late")
    with raw(app) as (sql, now):
        sql(f"UPDATE holdfast_schedules SET next_run_at = {now(-5 * MINUTE)}")
    (finding,) = find(app, "schedule-late")
    assert finding.detail["schedule"] == "late"
    assert finding.detail["late_seconds"] >= 300
    app.control.schedules.pause("late")
    assert not find(app, "schedule-late")


def test_steps_that_are_stuck(app: Holdfast, hands: Hands) -> None:
    @app.task("one")
    def one() -> None: ...

    wf = Workflow("chain")
    first = wf.step(one)
    wf.options(after=[first]).step(one)
    handle = wf.send()
    assert not find(app, "steps-stuck")
    top, below = handle.steps()
    hands.finish(top)
    false = "0" if app.config.store.engine == "sqlite" else "false"
    with raw(app) as (sql, _):
        sql(f"UPDATE holdfast_task_dependencies SET resolved = {false}, satisfied = NULL")
        sql(
            f"UPDATE holdfast_tasks SET status = 'WAITING', ready = {false}, deps_open = 1, "
            "deps_needed = 1 WHERE status = 'PENDING'"
        )
    (finding,) = find(app, "steps-stuck")
    assert finding.detail == {"number": 1, "tasks": [str(below.id)]}


def test_dead_letters(app: Holdfast, hands: Hands) -> None:
    hands.fail(hands.take(app.send("t")))
    assert find(app, "dead-letters")[0].detail == {"number": 1}


def test_commits_that_do_not_wait(url: str, open_app: OpenApp) -> None:
    assert not find(open_app(url), "commits-do-not-wait")
    assert find(open_app(url, durable=False), "commits-do-not-wait")


def test_a_schema_of_other_code(app: Holdfast, url: str, open_app: OpenApp) -> None:
    app.control.now()
    with raw(app) as (sql, now):
        row = f"(9999, 9999, {now(0)})"
        sql(f"INSERT INTO holdfast_schema_version (version, min_code, applied_at) VALUES {row}")
        try:
            diagnosis = open_app(url).control.doctor()
        finally:
            sql("DELETE FROM holdfast_schema_version WHERE version = 9999")
    assert [each.code for each in diagnosis.findings] == ["schema"]
    assert diagnosis.worst is Severity.CRITICAL


def test_what_cannot_be_looked_at_costs_its_own_answer(app: Holdfast) -> None:
    app.send("x")
    with raw(app) as (sql, _):
        sql("ALTER TABLE holdfast_leases RENAME TO holdfast_leases_gone")
        try:
            diagnosis = app.control.doctor()
        finally:
            sql("ALTER TABLE holdfast_leases_gone RENAME TO holdfast_leases")
    assert {"not-examined", "no-worker"} <= found(diagnosis).keys()


# --- PostgreSQL ------------------------------------------------------------------------------


@pytest.fixture
def server(postgres: str, open_app: OpenApp) -> Holdfast:
    return open_app(postgres)


@pytest.fixture
def other(postgres: str) -> Iterator[psycopg.Connection[object]]:
    """Somebody else's session."""
    with psycopg.connect(postgres, application_name="report") as connection:
        yield connection


def test_settings_of_the_server(server: Holdfast) -> None:
    critical = {e.code for e in server.control.doctor().findings if e.severity == "critical"}
    assert critical >= SERVER


def test_a_transaction_that_somebody_holds_open(
    server: Holdfast, other: psycopg.Connection[object]
) -> None:
    other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    other.execute("SELECT count(*) FROM holdfast_tasks")
    assert not find(server, "long-transaction")
    (finding,) = find(server, "long-transaction", patience="0s")
    assert finding.detail["pid"] == other.info.backend_pid
    assert finding.detail["name"] == "report"
    assert "idle in transaction" in finding.what
    assert finding.severity is Severity.WARNING
    other.rollback()
    assert not find(server, "long-transaction", patience="0s")


def test_a_prepared_transaction_is_found(
    server: Holdfast, other: psycopg.Connection[object]
) -> None:
    other.execute("SELECT 1 FROM holdfast_meta FOR UPDATE")
    other.execute("PREPARE TRANSACTION 'left behind'")
    other.commit()
    other.autocommit = True
    try:
        (finding,) = find(server, "prepared-transaction", patience="0s")
    finally:
        other.execute("ROLLBACK PREPARED 'left behind'")
    assert "ROLLBACK PREPARED 'left behind'" in finding.remedy


def test_a_replication_slot_that_nobody_reads(
    server: Holdfast, other: psycopg.Connection[object]
) -> None:
    other.execute("SELECT pg_create_physical_replication_slot('left_behind', true)")
    other.commit()
    try:
        (finding,) = find(server, "replication-slot")
    finally:
        other.execute("SELECT pg_drop_replication_slot('left_behind')")
        other.commit()
    assert finding.detail["name"] == "left_behind"


def test_a_table_that_is_not_cleaned(server: Holdfast, other: psycopg.Connection[object]) -> None:
    server.control.now()
    other.autocommit = True
    # As somebody has written it: the catalogue keeps the word.
    other.execute("ALTER TABLE holdfast_meta SET (autovacuum_enabled = off)")
    try:
        assert find(server, "table-not-vacuumed")[0].detail == {"table": "holdfast_meta"}
        other.execute("INSERT INTO holdfast_meta SELECT 'x' || n FROM generate_series(1, 60000) n")
        other.execute("DELETE FROM holdfast_meta WHERE name LIKE 'x%'")
        other.execute("SELECT pg_stat_force_next_flush()")
        # It leaves its statistics behind a moment later.
        (dead,) = until(lambda: find(server, "dead-rows"))
    finally:
        other.execute("ALTER TABLE holdfast_meta RESET (autovacuum_enabled)")
        other.execute("DELETE FROM holdfast_meta WHERE name LIKE 'x%'")
        other.execute("VACUUM holdfast_meta")
    assert dead.detail["table"] == "holdfast_meta"
    assert dead.detail["dead"] >= 50_000


def test_checkpoints_that_the_clock_did_not_ask_for(
    server: Holdfast, other: psycopg.Connection[object]
) -> None:
    other.autocommit = True
    counted = "checkpointer" if other.info.server_version >= 170_000 else "bgwriter"
    other.execute("SELECT pg_stat_reset_shared(%s)", [counted])
    try:
        assert not find(server, "checkpoints-too-often")
        for _ in range(21):
            other.execute("CHECKPOINT")
        (finding,) = until(lambda: find(server, "checkpoints-too-often"))
    finally:
        other.execute("SELECT pg_stat_reset_shared(%s)", [counted])
    assert finding.detail["requested"] > 20


def test_a_table_of_another_schema_is_named_with_it(
    postgres: str, other: psycopg.Connection[object]
) -> None:
    with Holdfast(postgres, schema="queue_here") as app:
        app.control.now()
        other.autocommit = True
        other.execute("ALTER TABLE queue_here.holdfast_meta SET (autovacuum_enabled = no)")
        (finding,) = find(app, "table-not-vacuumed")
        other.execute("DROP SCHEMA queue_here CASCADE")
    assert finding.remedy.startswith("ALTER TABLE queue_here.holdfast_meta RESET")


def test_connections_that_run_out(server: Holdfast, postgres: str) -> None:
    server.control.now()
    with psycopg.connect(postgres) as connection, ExitStack() as opened:
        asked = connection.execute(
            "SELECT current_setting('max_connections')::int, "
            "current_setting('superuser_reserved_connections')::int, "
            "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
        ).fetchone()
        assert asked is not None
        most, reserved, used = asked
        for _ in range(int(0.85 * (most - reserved)) - used + 1):
            opened.enter_context(psycopg.connect(postgres))
        (finding,) = find(server, "connections")
    assert finding.severity in (Severity.WARNING, Severity.CRITICAL)


def test_what_a_user_without_rights_sees(
    postgres: str, open_app: OpenApp, other: psycopg.Connection[object]
) -> None:
    open_app(postgres).control.now()
    other.autocommit = True
    other.execute("CREATE ROLE doctor_only LOGIN")
    other.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_only")
    try:
        url = postgres.replace("://holdfast@", "://doctor_only@")
        assert url != postgres
        diagnosis = open_app(url).control.doctor()
    finally:
        other.execute("DROP OWNED BY doctor_only")
        other.execute("DROP ROLE doctor_only")
    assert "sessions-hidden" in found(diagnosis)
    assert "not-examined" not in found(diagnosis)


# --- SQLite ----------------------------------------------------------------------------------


def test_a_library_with_the_bug_in_its_wal(sqlite: str, open_app: OpenApp) -> None:
    app = open_app(sqlite, driver="sqlite3")
    expected = sqlite3.sqlite_version_info < (3, 51, 3) and sqlite3.sqlite_version not in (
        "3.44.6",
        "3.50.7",
    )
    assert bool(find(app, "sqlite-version")) is expected


def test_a_reader_that_keeps_the_wal(sqlite: str, tmp_path: Path, open_app: OpenApp) -> None:
    app = open_app(sqlite)
    app.send("x")
    reader = apsw.Connection(str(tmp_path / "tasks.db"))
    try:
        reader.execute("BEGIN").execute("SELECT * FROM holdfast_tasks").fetchall()
        big = "x" * 900_000
        for _ in range(80):
            app.send("x", big)
        (finding,) = find(app, "long-wal")
    finally:
        reader.close()
    assert finding.detail["wal_bytes"] > 64 << 20


def test_time_that_stands_still(sqlite: str, open_app: OpenApp) -> None:
    app = open_app(sqlite)
    assert not find(app, "clock-skew")
    with raw(app) as (sql, now):
        sql(f"REPLACE INTO holdfast_meta (name, at) VALUES ('clock', {now(10 * MINUTE)})")
    (finding,) = find(open_app(sqlite), "clock-skew")
    assert finding.severity is Severity.CRITICAL
    assert timedelta(seconds=finding.detail["seconds"]) > timedelta(minutes=9)


class raw:  # noqa: N801 - used like a function
    """Plain SQL on the store of an app, and the moment so many microseconds from now in it."""

    def __init__(self, app: Holdfast) -> None:
        app.control.now()
        settings = app.config.store
        self._url = settings.address if settings.is_server else f"sqlite:///{settings.address}"
        self._is_server = settings.is_server
        self._at = app.control.now().timestamp()

    def __enter__(self) -> tuple[Callable[[str], object], Callable[[int], str]]:
        self._rows = Session(self._url)
        return self._rows, self._moment

    def __exit__(self, *exc: object) -> None:
        self._rows.close()

    def _moment(self, us: int) -> str:
        at = int(self._at * 1_000_000) + us
        return f"to_timestamp({at / 1_000_000})" if self._is_server else str(at)


class Session:
    """Plain SQL on either engine."""

    def __init__(self, url: str) -> None:
        self._apsw = self._psycopg = None
        if url.startswith("sqlite"):
            self._apsw = apsw.Connection(url.removeprefix("sqlite:///"))
            self._apsw.set_busy_timeout(10_000)
        else:
            self._psycopg = psycopg.connect(url, autocommit=True)

    def __call__(self, text: str) -> object:
        if self._apsw is not None:
            return self._apsw.execute(text).fetchall()
        assert self._psycopg is not None
        return self._psycopg.execute(text.encode())

    def close(self) -> None:
        for connection in (self._apsw, self._psycopg):
            if connection is not None:
                connection.close()
