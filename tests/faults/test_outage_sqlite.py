"""SQLite cannot be written for a while: code goes on, and every outcome is written later."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deadline import passed, until
from tests.support.site import Site

PROGRAM = "tests.faults.programs.load"
LEASE = 2.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(PROGRAM, f"sqlite:///{tmp_path}/tasks.db", tmp_path) as site:
        yield site


@pytest.mark.slow
def test_a_full_disk(site: Site, tmp_path: Path) -> None:
    worker = site.worker("-c", "4", "--lease", str(LEASE)).ready()
    names = [f"n{number}" for number in range(4)]
    handles = [site.send("held", name) for name in names]
    site.begun(*names)
    # A limit on the size of files is a full disk for this one process, and can be lifted.
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    until(lambda: "store is away" in worker.said, within=10)
    site.ledger.open_gate(*names[:2])
    passed(LEASE * 3)
    assert site.ledger.count("done") == 2
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
    back = time.monotonic()
    assert [handle.get(20) for handle in handles[:2]] == names[:2]
    assert time.monotonic() - back < 5
    site.ledger.open_gate(*names[2:])
    assert [handle.get(20) for handle in handles] == names
    assert {handle.info().attempt for handle in handles} == {1}
    assert worker.stop() == 0


def test_a_full_disk_is_said_once_although_reading_goes_on(site: Site) -> None:
    worker = site.worker("-c", "1").ready()
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    # Nothing is held, so nothing has to be renewed: only claiming it fails.
    handle = site.send("step", 1)
    until(lambda: "store is away" in worker.said, within=10)
    passed(3)
    assert worker.said.count("store is away") == 1
    assert "store is back" not in worker.said
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
    assert handle.get(20) == 1
    until(lambda: "store is back" in worker.said, within=10)
    assert worker.stop() == 0


def test_a_worker_is_stopped_while_the_disk_is_full(site: Site) -> None:
    worker = site.worker(
        *("-c", "1", "--lease", str(LEASE), "--grace", "0.2", "--kill-grace", "0.2")
    ).ready()
    handle = site.send("held", "a")
    site.begun("a")
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    until(lambda: "store is away" in worker.said, within=10)
    site.ledger.open_gate("a")
    until(lambda: site.ledger.count("done") == 1)
    assert worker.stop() == 1
    assert "how 1 run(s) ended is not written" in worker.said
    # Nothing is lost: it runs again elsewhere.
    with site.worker("-c", "1", "--lease", str(LEASE)) as other:
        assert handle.get(20) == "a"
        assert other.stop() == 0


_OUTSIDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


def test_an_outsider_who_keeps_the_file_locked(site: Site, tmp_path: Path) -> None:
    worker = site.worker("-c", "4", "--lease", str(LEASE), HOLDFAST_LOCK_TIMEOUT="1").ready()
    other = site.worker("-c", "1", "--lease", str(LEASE), "-q", "other").ready()
    names = [f"n{number}" for number in range(4)]
    handles = [site.send("held", name) for name in names]
    site.begun(*names)
    with subprocess.Popen(
        [sys.executable, "-c", _OUTSIDER, str(tmp_path / "tasks.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as outsider:
        assert outsider.stdout is not None
        assert outsider.stdout.readline() == "locked\n"
        site.ledger.open_gate(*names[:2])
        passed(LEASE * 3)
        assert f"process {outsider.pid} (" in worker.said, "the log names who it is"
        assert outsider.stdin is not None
        outsider.stdin.close()
    back = time.monotonic()
    site.ledger.open_gate(*names[2:])
    assert [handle.get(20) for handle in handles] == names
    assert time.monotonic() - back < 10
    assert {handle.info().attempt for handle in handles} == {1}
    assert site.ledger.count("begun") == 4
    assert worker.stop() == other.stop() == 0
