"""Time: limits that end code, signs of life, and what comes too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import ErrorCode, TaskStatus
from holdfast.core.status import AttemptOutcome
from holdfast.store.verbs import workers
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")

KILL_GRACE = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.e2e.programs.timing")


@pytest.fixture(scope="module", autouse=True)
def worker(site: Site) -> WorkerProcess:
    return site.worker(
        *("-c", "3", "-q", "default,one-by-one=1"),
        *("--lease", "5", "--kill-grace", str(KILL_GRACE)),
    ).ready()


def test_a_timeout_ends_the_code_and_not_its_neighbours(site: Site) -> None:
    neighbours = [site.send("neighbour", name) for name in ("left", "right")]
    site.begun("left", "right")
    late = site.send("overruns", "late")
    assert late.wait(10) is TaskStatus.FAILED
    info, attempt = late.info(), only_attempt(late)
    assert info.error_code == ErrorCode.TASK_TIMEOUT
    assert (attempt.outcome, attempt.error_code) == (
        AttemptOutcome.FAILED,
        ErrorCode.TASK_TIMEOUT,
    )
    assert info.crash_count == 0
    (begun,) = site.ledger.lines("begun", "late")
    (unwound,) = site.ledger.lines("finally", "late")
    # Its line is written a moment after the code began, from when the 0.3 s are counted.
    assert 0.25 <= unwound.at - begun.at < 0.3 + KILL_GRACE
    # The child of the late one is replaced while the neighbours are in theirs.
    assert site.send("deadline").get(10) > 0
    site.ledger.open_gate("left", "right")
    assert [handle.get(10) for handle in neighbours] == ["left", "right"]
    assert [handle.info().attempt for handle in neighbours] == [1, 1]


def test_a_timeout_counts_as_listed(site: Site) -> None:
    handle = site.send("overruns-once")
    assert handle.get(10) == 2
    first, _ = handle.attempts()
    assert (first.error_code, first.will_retry) == (ErrorCode.TASK_TIMEOUT, True)


def test_a_timeout_can_be_left_out(site: Site) -> None:
    handle = site.send("overruns-never-again")
    assert handle.wait(10) is TaskStatus.FAILED
    assert (handle.info().error_code, handle.info().attempt) == (ErrorCode.TASK_TIMEOUT, 1)


def test_blocked_signals_do_not_keep_code_from_being_ended(site: Site) -> None:
    handle = site.send("blocks-signals", "blocked")
    assert handle.wait(10) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED


@pytest.mark.parametrize("name", ["ignores-signals", "swallows"])
def test_code_that_will_not_be_told_is_killed(site: Site, name: str) -> None:
    handle = site.send(name, name)
    assert handle.wait(10) is TaskStatus.FAILED
    attempt = only_attempt(handle)
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    assert attempt.outcome is AttemptOutcome.FAILED
    assert 0.3 + KILL_GRACE <= attempt.duration.total_seconds() < 0.3 + KILL_GRACE + 1.0


def test_what_code_raises_when_it_is_told_to_end_is_that_end(site: Site) -> None:
    handle = site.send("renames", "renames")
    assert handle.wait(10) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT


def test_the_next_task_does_not_meet_a_child_that_leaves(site: Site) -> None:
    for number in range(3):
        assert site.send("overruns", f"again-{number}").wait(10) is TaskStatus.FAILED
        handle = site.send("deadline")
        handle.get(10)
        assert handle.info().attempt == 1


def test_work_that_was_done_is_not_denied(site: Site) -> None:
    handle = site.send("stubborn-value", "stubborn")
    assert handle.get(10) == "finished all the same"


def test_time_in_the_queue_does_not_count(site: Site) -> None:
    handles = [site.send("short") for _ in range(4)]
    assert site.app.wait(handles, 20) == [TaskStatus.COMPLETED] * 4
    assert [handle.info().attempt for handle in handles] == [1] * 4


def test_a_silent_task_is_stalled(site: Site) -> None:
    handle = site.send("silent", "silent")
    assert handle.wait(10) is TaskStatus.STALLED
    info, attempt = handle.info(), only_attempt(handle)
    assert (info.error_code, info.dead) == (ErrorCode.TASK_STALLED, True)
    assert info.last_heartbeat is not None
    assert attempt.outcome is AttemptOutcome.STALLED
    assert 0.4 <= attempt.duration.total_seconds() < 1.5


def test_a_task_that_gives_signs_of_life_goes_on(site: Site) -> None:
    handle = site.send("beating")
    handle.get(10)
    info = handle.info()
    assert info.last_heartbeat is not None
    assert info.started_at is not None
    assert info.last_heartbeat.at - info.started_at > timedelta(seconds=0.5)


def test_the_deadline_is_known_to_the_code(site: Site) -> None:
    assert 59 < site.send("deadline").get(10) <= 60


def test_what_nobody_claims_in_time_expires(site: Site) -> None:
    handle = site.options(good_for=0.3).send("unserved")
    sent = datetime.now(UTC)
    assert handle.wait(10) is TaskStatus.EXPIRED
    info = handle.info()
    assert (info.error_code, info.attempt, handle.attempts()) == (ErrorCode.TASK_EXPIRED, 0, [])
    assert info.finished_at is not None
    assert timedelta(seconds=0.25) <= info.finished_at - sent < timedelta(seconds=2)
    assert site.ledger.count("unserved") == 0


def test_a_retry_that_would_come_too_late_is_a_failure(site: Site) -> None:
    handle = site.options(good_for=2).send("late-retry")
    assert handle.wait(10) is TaskStatus.FAILED
    info = handle.info()
    assert (info.attempt, info.error_code) == (1, ErrorCode.UNHANDLED_EXCEPTION)
    assert not only_attempt(handle).will_retry


def test_what_had_begun_in_time_may_end_later(site: Site) -> None:
    handle = site.options(good_for=1).send("neighbour", "long")
    site.begun("long")
    until(lambda: datetime.now(UTC) > _good_until(handle.info().good_until))
    site.ledger.open_gate("long")
    assert handle.get(10) == "long"


def _good_until(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment


def test_the_worker_is_known_to_be_there(site: Site) -> None:
    # Also after more than a lease: whoever explains a task's state looks for living workers.
    handle = site.options(delay=3600).send("stamp")
    (registered,) = site.run(workers.list_workers)
    until(lambda: site.run(workers.list_workers)[0].seen_at > registered.seen_at, within=5)
    assert "no worker" not in str(handle.why())
