"""Cancelling: what waits is gone at once, what runs hears of it within a second."""

from __future__ import annotations

import time

import pytest

from holdfast import ErrorCode, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite

KILL_GRACE = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.control")
    site.worker("-c", "2", "--lease", "5", "--kill-grace", str(KILL_GRACE)).ready()
    return site


def test_a_waiting_task(site: Site) -> None:
    handle = site.options(queue="nobody").send("mark", "waiting")
    assert handle.cancel() is TaskStatus.CANCELLED
    info = handle.info()
    assert (info.error_code, info.attempt, handle.attempts()) == (ErrorCode.TASK_CANCELLED, 0, [])


def test_a_delayed_task(site: Site) -> None:
    handle = site.options(delay=60).send("mark", "delayed")
    assert handle.cancel() is TaskStatus.CANCELLED


def test_a_task_that_waits_for_its_retry(site: Site) -> None:
    handle = site.send("put-off")
    until(lambda: handle.status() is TaskStatus.SCHEDULED)
    assert handle.cancel() is TaskStatus.CANCELLED
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED


@pytest.mark.parametrize("name", ["endless", "endless-thread", "endless-async"])
def test_a_running_task_hears_within_a_second(site: Site, name: str) -> None:
    handle = site.send(name, name)
    site.begun(name)
    asked = time.monotonic()
    assert handle.cancel() is TaskStatus.RUNNING
    assert handle.wait(5) is TaskStatus.CANCELLED
    (unwound,) = site.ledger.lines("finally", name)
    assert unwound.at - asked < 1.0
    info, attempt = handle.info(), only_attempt(handle)
    assert info.error_code == ErrorCode.TASK_CANCELLED
    assert info.cancel_requested_at is not None
    assert not info.dead
    assert attempt.outcome is AttemptOutcome.CANCELLED


def test_one_that_will_not_hear_is_killed(site: Site) -> None:
    handle = site.send("deaf", "deaf")
    site.begun("deaf")
    asked = time.monotonic()
    handle.cancel()
    assert handle.wait(5) is TaskStatus.CANCELLED
    took = time.monotonic() - asked
    (told,) = site.ledger.lines("told", "deaf")
    assert told.at - asked < 1.0
    assert KILL_GRACE <= took < 1.0 + KILL_GRACE + 1.0
    assert only_attempt(handle).outcome is AttemptOutcome.CANCELLED


def test_the_code_can_ask_whether_it_is_cancelled(site: Site) -> None:
    handle = site.send("watchful", "watchful")
    site.begun("watchful")
    handle.cancel()
    assert handle.wait(5).is_terminal


def test_a_value_returned_all_the_same_is_not_denied(site: Site) -> None:
    handle = site.send("done-anyway", "anyway")
    site.begun("anyway")
    handle.cancel()
    assert handle.get(5) == "done"


def test_a_second_cancel_and_a_late_one_change_nothing(site: Site) -> None:
    handle = site.send("endless", "twice")
    site.begun("twice")
    handle.cancel()
    handle.cancel()
    assert handle.wait(5) is TaskStatus.CANCELLED
    ended = handle.info()
    assert handle.cancel() is TaskStatus.CANCELLED
    assert handle.info() == ended


def test_a_cancelled_task_can_be_resubmitted(site: Site) -> None:
    handle = site.send("endless", "resubmitted")
    site.begun("resubmitted")
    handle.cancel()
    handle.wait(5)
    site.ledger.open_gate("resubmitted")
    handle.resubmit()
    assert handle.wait(5) is TaskStatus.COMPLETED
    assert [a.outcome for a in handle.attempts()] == [
        AttemptOutcome.CANCELLED,
        AttemptOutcome.COMPLETED,
    ]
