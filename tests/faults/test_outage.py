"""The database goes away: an outage stops nothing, a silence stops code in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from holdfast import StoreUnavailable, TaskHandle, TaskStatus
from tests.support.postgres import PostgresServer
from tests.support.site import Site
from tests.support.worker import until

PROGRAM = "tests.faults.programs.load"
LEASE = 2.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of one's own, to be harmed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def site(server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    with Site(PROGRAM, server.create_database(), tmp_path) as site:
        yield site


def passed(seconds: float) -> None:
    """Wait for a stretch of time that is itself the point of a test."""
    end = monotonic() + seconds
    until(lambda: monotonic() > end, within=seconds + 5)


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
    site.ledger.open_gate(*names[4:])
    back = monotonic()
    for handle, name in zip(handles, names, strict=True):
        assert handle.get(20) == name
    assert monotonic() - back < 10
    assert site.ledger.count("begun") == 8
    for handle in handles:
        assert (handle.info().attempt, handle.info().crash_count) == (1, 0)
    away = [line for line in worker.said.splitlines() if "store is away" in line]
    assert len(away) <= LEASE * 3 + 10, "at most a line a second"
    assert site.send("step", 1).get(10) == 1
    assert worker.stop() == other.stop() == 0


def test_a_silent_database_stops_code_before_its_lease_ends(
    site: Site, server: PostgresServer
) -> None:
    """Nobody says that nobody is served, so another worker may be."""
    worker = site.worker("-c", "2", "--lease", "4", "--kill-grace", "0.5").ready()
    handle = site.send("held", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    frozen = monotonic()
    server.freeze()
    try:
        until(lambda: "silent" in worker.said, within=10)
        assert monotonic() - frozen < 4.0 + 0.5
        until(lambda: not Path(f"/proc/{line.pid}").exists(), within=3)
    finally:
        server.thaw()
    site.ledger.open_gate("a")
    assert handle.get(30) == "a"


@pytest.mark.slow
def test_five_crashes_of_the_server_under_load(site: Site, server: PostgresServer) -> None:
    _crashes(site, server, crashes=5, tasks=1000)


def test_two_crashes_of_the_server_under_load(site: Site, server: PostgresServer) -> None:
    _crashes(site, server, crashes=2, tasks=300)


def _crashes(site: Site, server: PostgresServer, *, crashes: int, tasks: int) -> None:
    """What was acknowledged is there, once, and ends."""
    worker = site.worker("-c", "2", "--lease", "3").ready()
    sent: list[TaskHandle[int]] = []
    for number in range(tasks):
        if number and number % (tasks // (crashes + 1)) == 0:
            server.kill()
            server.start()
        try:
            sent.append(site.send("step", number, 0.005))
        except StoreUnavailable as error:
            sent.append(site.app.resend(error))
    site.app.wait(sent, timeout=60)
    assert len({handle.id for handle in sent}) == tasks
    for number, handle in enumerate(sent):
        assert handle.status() is TaskStatus.COMPLETED
        assert handle.get(1) == number
        assert handle.attempts()[-1].number == handle.info().attempt
    assert worker.process.poll() is None
    assert worker.stop() == 0
