"""Code that does its worst: the worker lives, each task gets its right end, neighbours finish."""

from __future__ import annotations

import pytest

from holdfast import ErrorCode, TaskStatus
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive, until

LEASE = 2.0


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.faults.programs.load")


@pytest.fixture(scope="module")
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", str(LEASE), "--kill-grace", "1").ready()


@pytest.fixture(autouse=True)
def lives(site: Site, worker: WorkerProcess) -> None:
    """Before each test a neighbour is sent, and it is the same worker that runs it."""
    assert site.send("step", 1).get(20) == 1
    assert worker.process.poll() is None, worker.said


def test_code_that_holds_the_interpreter_for_three_leases(site: Site) -> None:
    handle = site.send("at-the-gil", "gil", LEASE * 3)
    site.begun("gil")
    neighbours = site.module.step.send_many([(n,) for n in range(20)])
    site.app.wait(neighbours, timeout=20)
    assert handle.get(LEASE * 3 + 20) == "gil"
    assert (handle.info().attempt, site.ledger.count("begun", "gil")) == (1, 1)


def test_code_that_blocks_signals(site: Site) -> None:
    handle = site.send("deaf-to-signals")
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT


def test_a_process_that_is_left_behind_ends_with_its_worker(make_site: MakeSite) -> None:
    site = make_site("tests.faults.programs.load")
    worker = site.worker("-c", "1").ready()
    left: int = site.send("leaves-a-process").get(20)
    assert worker.stop() == 0
    until(lambda: not alive(left), within=5, what="the process that was left behind to end")


def test_code_that_closes_every_descriptor(site: Site) -> None:
    handle = site.send("closes-everything")
    assert handle.wait(30).is_terminal


def test_a_hundred_megabytes_of_output(site: Site) -> None:
    handle = site.send("prints", 100)
    assert handle.get(60) == "printed"
    kept = site.printed(handle)
    assert len(kept) < 1_200_000
    assert b"bytes left out" in kept


def test_an_exception_without_words(site: Site) -> None:
    handle = site.send("awkward")
    assert handle.wait(20) is TaskStatus.FAILED
    info = handle.info()
    assert info.error_code == ErrorCode.UNHANDLED_EXCEPTION
    assert info.error is not None
    assert "Awkward" in str(info.error.exception)
