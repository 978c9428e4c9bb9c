"""PostgreSQL goes away: an outage stops nothing, a silence stops code in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import StoreUnavailable, TaskHandle
from tests.faults import history
from tests.support.deadline import passed, until
from tests.support.postgres import PostgresServer
from tests.support.site import Site
from tests.support.worker import WorkerProcess, alive

PROGRAM = "tests.faults.programs.load"
LEASE = 2.0
RESUMED = 5.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of one's own, to be harmed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def site(server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    with Site(PROGRAM, server.create_database(), tmp_path) as site:
        yield site


def lines_about_the_outage(worker: WorkerProcess) -> int:
    return sum("store is away" in line for line in worker.said.splitlines())


def test_three_leases_without_a_database(site: Site, server: PostgresServer) -> None:
    """Code goes on, and every outcome is written when the database is back."""
    worker = site.worker("-c", "8", "--lease", str(LEASE)).ready()
    other = site.worker("-c", "2", "--lease", str(LEASE), "-q", "other").ready()
    names = [f"n{number}" for number in range(8)]
    handles = [site.send("held", name) for name in names]
    site.begun(*names)
    server.stop("immediate")
    passed(LEASE * 3)
    site.ledger.open_gate(*names[:4])
    until(lambda: site.ledger.count("done") == 4, within=10)
    server.start()
    back = time.monotonic()
    assert site.send("step", 1).get(10) == 1
    assert time.monotonic() - back < RESUMED
    passed(LEASE)
    site.ledger.open_gate(*names[4:])
    for handle, name in zip(handles, names, strict=True):
        assert handle.get(20) == name
        assert (handle.info().attempt, handle.info().crash_count) == (1, 0), worker.said
    assert site.ledger.tally("begun") == {**dict.fromkeys(names, 1), "1": 1}
    assert lines_about_the_outage(worker) <= LEASE * 3 + 10, "at most a line a second"
    assert worker.stop() == other.stop() == 0


def test_a_silent_database_stops_code_before_its_lease_ends(
    site: Site, server: PostgresServer
) -> None:
    """Nobody says that nobody is served, so another worker may be."""
    worker = site.worker("-c", "2", "--lease", "4", "--kill-grace", "0.5").ready()
    handle = site.send("held", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    with psycopg.connect(site.url) as connection:
        found = connection.execute(
            "SELECT extract(epoch FROM max(expires_at))::float8 FROM holdfast_leases"
        ).fetchone()
    assert found is not None
    expires: float = found[0]
    server.freeze()
    try:
        until(lambda: not alive(line.pid), within=10, what="the code to be stopped")
        assert time.time() < expires
        until(lambda: "silent" in worker.said, what="the worker to say why")
        assert worker.process.poll() is None
    finally:
        server.thaw()
    site.ledger.open_gate("a")
    assert handle.get(30) == "a"
    assert worker.stop() == 0


def test_what_must_not_run_twice_stops_in_any_outage(site: Site, server: PostgresServer) -> None:
    site.worker("-c", "2", "--lease", str(LEASE), "--kill-grace", "0.5").ready()
    handle = site.send("once", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    server.stop("immediate")
    until(lambda: not alive(line.pid), within=LEASE + 1, what="the code to be stopped")
    server.start()
    handle.wait(20)
    assert site.ledger.count("begun", "a") == 1


def test_connections_that_are_dropped_again_and_again(site: Site, server: PostgresServer) -> None:
    worker = site.worker("-c", "2", "--lease", "3").ready()
    history.watch(site)
    names = list(range(150))
    handles = site.module.step.send_many([(n, 0.01) for n in names])
    with psycopg.connect(server.url, autocommit=True) as operator:
        for wanted in range(20, 150, 30):
            until(partial(_done, site, wanted), within=30)
            operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = %s AND application_name <> ''",
                [site.url.rpartition("/")[2]],
            )
    site.app.wait(handles, timeout=60)
    history.check_rows(site, handles)
    history.check_runs(site, handles, (), names=names, lease=3)
    assert worker.stop() == 0


def _done(site: Site, wanted: int) -> bool:
    return site.ledger.count("done") >= wanted


def test_a_server_that_has_become_read_only(site: Site, server: PostgresServer) -> None:
    """As after a failover to a standby that is not promoted yet."""
    database = site.url.rpartition("/")[2]
    worker = site.worker("-c", "2", "--lease", "3").ready()
    handle = site.send("held", "a")
    site.begun("a")
    with psycopg.connect(server.url, autocommit=True) as operator:
        _read_only(operator, database, "on")
        until(lambda: "store is away" in worker.said, within=10)
        site.ledger.open_gate("a")
        until(lambda: site.ledger.count("done", "a") == 1)
        _read_only(operator, database, "off")
    back = time.monotonic()
    assert handle.get(20) == "a"
    assert time.monotonic() - back < RESUMED
    assert handle.info().attempt == 1
    assert worker.stop() == 0


def _read_only(operator: psycopg.Connection[Any], database: str, state: str) -> None:
    operator.execute(
        f"ALTER DATABASE {database} SET default_transaction_read_only = {state}".encode()
    )
    operator.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database]
    )


@pytest.mark.slow
def test_five_crashes_of_the_server_under_load(site: Site, server: PostgresServer) -> None:
    _crashes(site, server, crashes=5, tasks=1000)


def test_a_crash_of_the_server_under_load(site: Site, server: PostgresServer) -> None:
    _crashes(site, server, crashes=1, tasks=150)


def _crashes(site: Site, server: PostgresServer, *, crashes: int, tasks: int) -> None:
    """What was acknowledged is there, once, and ends; no code ran twice."""
    worker = site.worker("-c", "2", "--lease", "3").ready()
    history.watch(site)
    sent: list[TaskHandle[int]] = []
    names = list(range(tasks))
    for number in names:
        if number and number % (tasks // (crashes + 1)) == 0:
            server.kill()
            server.start()
        try:
            sent.append(site.send("step", number, 0.005))
        except StoreUnavailable as error:
            sent.append(site.app.resend(error))
    site.app.wait(sent, timeout=60)
    assert len({handle.id for handle in sent}) == tasks
    assert [handle.get(1) for handle in sent] == names
    history.check_rows(site, sent)
    history.check_runs(site, sent, (), names=names, lease=3)
    assert worker.process.poll() is None
    assert worker.stop() == 0
