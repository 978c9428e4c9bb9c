"""Defects that others' users have met, each shown not to be ours.

`SHOWN` says where. Half of them are shown here, the others by tests that are there anyway.
"""

from __future__ import annotations

import ast
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from holdfast import ErrorCode, Holdfast, PayloadMismatch, StoreUnavailable, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.proxy import Proxy
from tests.support.site import Engine, Site
from tests.support.sites import MakeSite
from tests.support.worker import REPOSITORY, WorkerProcess

LEASE = 2.0

SHOWN: Final = {
    "horsies 1: a send repeated after the task has ended runs it again": (
        "faults/test_defects.py::test_a_send_repeated_after_its_end_is_the_same_task"
    ),
    "horsies 2: so does one repeated because its answer was lost": (
        "faults/test_defects.py::test_a_send_whose_answer_was_lost_is_one_task"
    ),
    "horsies 3: a delayed task loses its retries and its timeout": (
        "faults/test_defects.py::test_a_delayed_task_keeps_its_policy"
    ),
    "horsies 4: one timeout or crash fails the siblings": (
        "e2e/test_timing.py::test_a_timeout_ends_the_code_and_not_its_neighbours"
    ),
    "horsies 5: code that holds the interpreter's lock is taken for dead": (
        "faults/test_hostile.py::test_code_that_holds_the_interpreter_for_three_leases"
    ),
    "horsies 6: an error code of the user's is taken for a message of the system's": (
        "faults/test_defects.py::test_error_codes_are_the_users_own"
    ),
    "horsies 7: a coroutine function can be defined as a task and fails when run": (
        "e2e/test_executors.py::test_each_kind_has_children_of_its_own"
    ),
    "horsies 8: a delayed task starts at the next poll": (
        "e2e/test_punctuality.py::test_a_delayed_task_starts_at_its_time"
    ),
    "horsies 8: the wake-up of a retry is lost with its worker": (
        "faults/test_defects.py::test_a_retry_outlives_its_worker"
    ),
    "horsies 9: the hour that a clock repeats is skipped": (
        "faults/test_defects.py::test_both_of_a_repeated_hour"
    ),
    "horsies 11: a crash fails the task, minutes later": (
        "faults/test_kills.py::test_a_vanished_worker_is_replaced_within_its_lease_and_two_seconds"
    ),
    "horsies 12: a timeout counts the time in the queue": (
        "faults/test_defects.py::test_waiting_for_a_child_is_not_running"
    ),
    "Jobbers 1: tasks of a vanished worker are found only by who can import them": (
        "faults/test_defects.py::test_a_stranger_recovers_what_it_does_not_know"
    ),
    "Jobbers 2: SIGTERM is not handled, and its policies not obeyed": (
        "e2e/test_shutdown.py::test_each_task_has_its_way_after_the_grace"
    ),
    "Jobbers 3: a crash between taking and starting a task loses it": (
        "faults/test_storm.py::test_three_kills_in_150_tasks"
    ),
    "Jobbers 4: a send that is over a limit is answered with yes and dropped": (
        "e2e/test_order.py::test_a_paused_queue"
    ),
    "Jobbers 5: cancelling what is just being claimed": (
        "faults/test_defects.py::test_cancelled_tasks_run_once_or_not_at_all"
    ),
    "Jobbers 6: a join whose parent failed never happens": (
        "store/conformance/test_dependents.py::test_"
    ),
    "Jobbers 7: what is due is taken out before it is put in": (
        "faults/test_defects.py::test_a_retry_outlives_its_worker"
    ),
    "Jobbers 8: the first linear retry does not wait": (
        "e2e/test_outcomes.py::test_retries_with_a_delay"
    ),
    "Jobbers 9: an error is a message without a traceback": (
        "e2e/test_outcomes.py::test_an_exception_with_its_causes"
    ),
    "Jobbers 10: two workers on one SQLite file take the same task": (
        "faults/test_storm.py::test_three_kills_in_150_tasks"
    ),
    "Jobbers 11: blocking code keeps timeouts and cancels from working": (
        "e2e/test_executors.py::test_a_coroutine_that_does_not_yield_costs_its_neighbours_nothing"
    ),
    "Jobbers 12: a send under an existing id overwrites that task": (
        "faults/test_defects.py::test_another_task_under_the_same_id_is_refused"
    ),
    "Jobbers 13: the event loop runs in debug mode": (
        "faults/test_defects.py::test_the_loop_is_not_in_debug_mode"
    ),
}


@pytest.mark.parametrize("place", SHOWN.values(), ids=SHOWN.keys())
def test_each_is_shown_somewhere(place: str) -> None:
    path, _, name = place.partition("::")
    tree = ast.parse((REPOSITORY / "tests" / path).read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert any(found == name or name == "test_" for found in names), names


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.faults.programs.defects")
    start(site)
    return site


def start(site: Site, *arguments: str) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", str(LEASE), "--kill-grace", "0.5", *arguments).ready()


@pytest.mark.parametrize("name", ["effect", "fails"])
def test_a_send_repeated_after_its_end_is_the_same_task(site: Site, name: str) -> None:
    task_id = uuid4()
    first = site.options(id=task_id).send(name, str(task_id))
    ended = first.wait(20)
    again = site.options(id=task_id).send(name, str(task_id))
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id
    # Whatever is sent next is behind it in the queue.
    site.send("effect", "behind").wait(20)
    assert again.status() is ended
    assert site.ledger.count("effect", task_id) == 1
    assert again.info().attempt == 1


def test_many_senders_of_one_id_send_one_task(site: Site) -> None:
    task_id = uuid4()
    created: list[bool] = []

    def send() -> None:
        created.append(site.options(id=task_id).send("effect", str(task_id)).created)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == [False] * 7 + [True]
    assert site.app.handle(task_id).get(20) == str(task_id)
    assert site.ledger.count("effect", task_id) == 1


def test_a_send_whose_answer_was_lost_is_one_task(site: Site, engine: Engine) -> None:
    if engine == "sqlite":
        # Nothing can be lost between a process and its own file; a repeat is the same task.
        handle = site.send("effect", "lost")
        assert site.options(id=handle.id).send("effect", "lost").created is False
        assert handle.get(20) == "lost"
    else:
        with Proxy.to(site.url) as proxy, Holdfast(proxy.url, send_timeout=0) as unlucky:
            unlucky.control.tasks.count()
            proxy.lose_answer_to(b"lost")
            try:
                handle = unlucky.send("effect", "lost")
            except StoreUnavailable as error:
                proxy.lose_answer_to(None)
                # It may have landed and even ended by now.
                until(lambda: site.ledger.count("effect", "lost"), within=5)
                handle = unlucky.resend(error)
            assert handle.get(20) == "lost"
            assert proxy.lost
    site.send("effect", "behind").wait(20)
    assert site.ledger.count("effect", "lost") == 1


def test_a_delayed_task_keeps_its_policy(site: Site) -> None:
    handle = site.options(delay=0.1).send("picky")
    assert handle.get(20) == 3
    first, second, third = handle.attempts()
    assert (first.error_code, first.will_retry) == (ErrorCode.UNHANDLED_EXCEPTION, True)
    assert (second.error_code, second.will_retry) == (ErrorCode.TASK_TIMEOUT, True)
    assert third.outcome is AttemptOutcome.COMPLETED


@pytest.mark.parametrize("code", ["WORKFLOW_STOPPED", "CLAIM_LOST", "landed", "BUSY", "Done"])
def test_error_codes_are_the_users_own(site: Site, code: str) -> None:
    handle = site.send("named-error", code)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == code


def test_a_retry_outlives_its_worker(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.faults.programs.defects")
    worker = start(site)
    handle = site.send("later", "later")
    until(lambda: handle.status() is TaskStatus.SCHEDULED)
    due = handle.info().next_retry_at
    assert due is not None
    worker.kill()
    start(site)
    ready = datetime.now(UTC)
    assert handle.get(20) == 2
    started = handle.attempts()[1].started_at
    assert started >= due
    assert (started - max(due, ready)).total_seconds() < 1.0


def test_both_of_a_repeated_hour(site: Site) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    early, late = (
        site.options(run_at=datetime(2037, 10, 25, 2, 30, tzinfo=berlin, fold=fold)).send(
            "effect", "repeated"
        )
        for fold in (0, 1)
    )
    first, second = early.info().run_at, late.info().run_at
    assert second - first == timedelta(hours=1)
    early.cancel()
    late.cancel()


def test_waiting_for_a_child_is_not_running(site: Site) -> None:
    handles = [site.send("sleeps", 0.6) for _ in range(6)]
    assert set(site.app.wait(handles, 20)) == {TaskStatus.COMPLETED}
    for handle in handles:
        outcomes = {attempt.outcome for attempt in handle.attempts()}
        assert outcomes <= {AttemptOutcome.COMPLETED, AttemptOutcome.INTERRUPTED}


@pytest.mark.slow
def test_a_stranger_recovers_what_it_does_not_know(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.faults.programs.defects")
    worker = start(site)
    held, stalls = site.send("held", "a"), site.send("held-stalls", "b")
    site.begun("a", "b")
    worker.kill()
    stranger = Site("tests.faults.programs.stranger", site.url, site.directory)
    with stranger:
        start(stranger)
        until(lambda: held.status() is TaskStatus.PENDING, within=LEASE + 5)
        until(lambda: stalls.status() is TaskStatus.STALLED, within=5)
    assert held.info().crash_count == 1


def test_cancelled_tasks_run_once_or_not_at_all(site: Site) -> None:
    handles = []
    for number in range(100):
        handles.append(site.send("effect", f"cancel-{number}"))
        if number % 3:
            handles[-1].cancel()
    site.app.wait(handles, 30)
    ran = site.ledger.tally("effect")
    for number, handle in enumerate(handles):
        status, times = handle.status(), ran[f"cancel-{number}"]
        if status is TaskStatus.CANCELLED:
            assert times == len(handle.attempts()) <= 1
        else:
            assert (status, times) == (TaskStatus.COMPLETED, 1)


def test_another_task_under_the_same_id_is_refused(site: Site) -> None:
    handle = site.send("effect", "mine")
    handle.wait(20)
    before = handle.info()
    with pytest.raises(PayloadMismatch):
        site.options(id=handle.id).send("effect", "other")
    assert handle.info() == before


def test_the_loop_is_not_in_debug_mode(site: Site) -> None:
    assert site.send("debug").get(20) is False


def test_a_worker_says_when_it_serves_nobody(fresh_site: MakeSite) -> None:
    """A task nobody knows stays PENDING and says why; it is neither lost nor run."""
    site = fresh_site("tests.faults.programs.defects")
    with Site("tests.faults.programs.stranger", site.url, site.directory) as stranger:
        start(stranger)
        handle = site.send("effect", "unknown")
        began = time.monotonic()
        stranger.send("something-else").wait(20)
        assert time.monotonic() - began < 10
        assert handle.status() is TaskStatus.PENDING
        assert "knows" in str(handle.why())
