"""Code that does its worst: the worker lives, each task gets its right end, neighbours finish."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import ErrorCode, TaskStatus
from holdfast.core.status import AttemptOutcome
from holdfast.runtime.wire.messages import EXIT_CUT_OFF
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

pytestmark = pytest.mark.mostly("postgresql")

LEASE = 2.0
KILL_GRACE = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.faults.programs.hostile")


@pytest.fixture(scope="module")
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", str(LEASE), "--kill-grace", str(KILL_GRACE)).ready()


@pytest.fixture(autouse=True)
def lives(site: Site, worker: WorkerProcess) -> Iterator[None]:
    """It is the same worker before and after, and neighbours are served."""
    yield
    handles = site.module.neighbour.send_many([(n,) for n in range(4)])
    assert [handle.get(20) for handle in handles] == list(range(4))
    assert worker.process.poll() is None, worker.said


@pytest.mark.slow
def test_code_that_holds_the_interpreter_for_three_leases(site: Site) -> None:
    handle = site.send("at-the-gil", "gil", LEASE * 3)
    site.begun("gil")
    neighbours = site.module.neighbour.send_many([(n,) for n in range(20)])
    assert set(site.app.wait(neighbours, timeout=20)) == {TaskStatus.COMPLETED}
    assert handle.get(LEASE * 3 + 20) == "gil"
    assert (handle.info().attempt, site.ledger.count("begun", "gil")) == (1, 1)


@pytest.mark.parametrize("name", ["deaf-to-signals", "stops-itself", "changes-its-group"])
def test_code_that_cannot_be_told_to_end(site: Site, name: str) -> None:
    handle = site.send(name)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    assert only_attempt(handle).duration.total_seconds() < 0.5 + KILL_GRACE + 1.0


def test_a_tracer_that_is_left_behind_sees_no_other_task(site: Site) -> None:
    for _ in range(4):
        site.send("leaves-a-tracer").get(20)
        assert site.send("traced").get(20) == [True, True]


def test_a_process_that_is_left_behind_ends_with_its_child(site: Site) -> None:
    handle = site.send("leaves-a-process-and-dies")
    assert handle.wait(20) is TaskStatus.FAILED
    (line,) = site.ledger.lines("left", "behind")
    until(lambda: not alive(line.data), within=1, what="what was left behind to be gone")


def test_a_process_that_is_left_behind_ends_with_its_worker(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.faults.programs.hostile")
    worker = site.worker("-c", "1").ready()
    left: int = site.send("leaves-a-process").get(20)
    assert worker.stop() == 0
    until(lambda: not alive(left), within=2, what="what was left behind to be gone")


def test_a_forked_process_that_returns_is_not_a_second_outcome(site: Site) -> None:
    handle = site.send("forks-and-returns")
    assert handle.get(20) == "parent"
    assert only_attempt(handle).outcome is AttemptOutcome.COMPLETED


def test_code_that_closes_every_descriptor(site: Site) -> None:
    handle = site.send("closes-everything")
    assert handle.wait(30) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.WORKER_CRASHED
    assert [a.exit_code for a in handle.attempts()] == [EXIT_CUT_OFF] * 2


def test_code_that_closes_its_output_silences_nobody_else(site: Site) -> None:
    handles = [site.send("closes-its-output") for _ in range(4)]
    assert [handle.get(20) for handle in handles] == ["closed"] * 4
    later = [site.send("speaks", f"word {number}") for number in range(4)]
    site.app.wait(later, 20)
    assert [handle.log() for handle in later] == [f"word {number}\n" for number in range(4)]


def test_a_hundred_megabytes_of_output(site: Site, worker: WorkerProcess) -> None:
    handle = site.send("prints", 100)
    assert handle.get(60) == "printed"
    kept = site.printed(handle)
    assert len(kept) < 1_100_000
    assert b"bytes left out" in kept
    assert _resident_mb(worker.pid) < 100


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("awkward", ErrorCode.UNHANDLED_EXCEPTION),
        ("vicious", ErrorCode.UNHANDLED_EXCEPTION),
        ("recurses", ErrorCode.UNHANDLED_EXCEPTION),
        ("too-large", ErrorCode.UNHANDLED_EXCEPTION),
    ],
)
def test_exceptions(site: Site, name: str, code: ErrorCode) -> None:
    handle = site.send(name)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == code
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED


def test_abort(site: Site) -> None:
    handle = site.send("aborts")
    assert handle.wait(20) is TaskStatus.FAILED
    assert only_attempt(handle).exit_signal == signal.SIGABRT


def test_an_alarm_that_goes_off_later(site: Site) -> None:
    handles = [site.send("sets-an-alarm") for _ in range(2)]
    site.app.wait(handles, 20)
    # It may hit whatever runs next in that process; the worker must not mind.
    others = [site.send("at-the-gil", f"after-{n}", 0.2) for n in range(4)]
    assert all(status.is_terminal for status in site.app.wait(others, 20))


def test_a_mess_does_not_keep_the_next_from_being_ended(site: Site) -> None:
    site.app.wait([site.send("makes-a-mess") for _ in range(4)], 20)
    handle = site.send("deaf-to-signals")
    assert handle.wait(20) is TaskStatus.FAILED
    assert site.send("where").wait(20) is TaskStatus.COMPLETED


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
