"""Stopping a worker: nothing is lost, a deploy costs no retry, and each task has its way."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from holdfast import ErrorCode, TaskHandle, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import passed, until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

pytestmark = pytest.mark.mostly("sqlite")

PROGRAM = "tests.e2e.programs.stopping"


@pytest.fixture
def site(fresh_site: MakeSite) -> Site:
    return fresh_site(PROGRAM)


def start(site: Site, grace: float = 0.3, *arguments: str) -> WorkerProcess:
    # Nothing here waits for a lease but for what says so; a short one is lost on a busy machine.
    return site.worker(
        *("-c", "3", "--lease", "15", "--grace", str(grace), "--kill-grace", "0.5"), *arguments
    ).ready()


def begin(site: Site, *names: str) -> list[TaskHandle[Any]]:
    """Send the tasks of these names, each with a gate of its own name, and wait for them."""
    handles = [site.send(name, name) for name in names]
    site.begun(*names)
    return handles


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker(site: Site, number: signal.Signals) -> None:
    worker = start(site)
    worker.signal(number)
    asked = time.monotonic()
    assert worker.wait(10) == 0
    assert time.monotonic() - asked < 2.0
    assert "has stopped" in worker.said


def test_when_it_has_ended_nothing_is_left(site: Site) -> None:
    worker = start(site)
    # The template, three processes, and one child each for threads and coroutines.
    until(lambda: len(worker.descendants()) == 6)
    family = worker.descendants()
    assert worker.stop() == 0
    assert not any(map(alive, family))


@pytest.mark.slow
def test_a_template_that_does_not_listen_is_not_waited_for_for_ever(site: Site) -> None:
    worker = start(site)
    family = worker.descendants()
    (template,) = {pid for pid in family if os.getsid(pid) == pid}
    os.kill(template, signal.SIGSTOP)
    assert worker.stop(15) == 0
    assert not any(map(alive, family))


def test_what_ends_within_the_grace(site: Site) -> None:
    worker = start(site, grace=20)
    (handle,) = begin(site, "resubmits")
    worker.signal(signal.SIGTERM)
    until(lambda: "stopping: " in worker.said)
    site.ledger.open_gate("resubmits")
    assert worker.wait(10) == 0
    assert handle.get(1) == 1


def test_each_task_has_its_way_after_the_grace(site: Site) -> None:
    worker = start(site)
    names = ("resubmits", "stops", "resubmits-async", "resubmits-thread", "continues")
    resubmits, stops, by_loop, by_thread, continues = begin(site, *names)
    worker.signal(signal.SIGTERM)
    until(lambda: stops.status() is TaskStatus.STALLED, within=5)
    assert stops.info().error_code == ErrorCode.TASK_STALLED
    assert only_attempt(stops).outcome is AttemptOutcome.STALLED
    put_back = (resubmits, by_loop, by_thread)
    until(lambda: {handle.status() for handle in put_back} == {TaskStatus.PENDING}, within=5)
    for handle in put_back:
        assert only_attempt(handle).outcome is AttemptOutcome.INTERRUPTED
        info = handle.info()
        assert (info.retry_count, info.crash_count, info.error_code) == (0, 0, None)
    assert site.ledger.count("finally", "resubmits") == 1
    assert continues.status() is TaskStatus.RUNNING
    assert worker.process.poll() is None
    site.ledger.open_gate(*names)
    assert worker.wait(10) == 0
    assert continues.get(1) == 1
    # The next worker goes on with what was put back.
    start(site)
    assert [handle.get(20) for handle in put_back] == [2, 2, 2]


def test_a_task_that_must_not_run_twice(site: Site) -> None:
    worker = start(site)
    (handle,) = begin(site, "once")
    assert worker.stop() == 0
    assert handle.status() is TaskStatus.STALLED


def test_a_second_signal_hurries(site: Site) -> None:
    worker = start(site, grace=60)
    resubmits, continues = begin(site, "resubmits", "continues")
    worker.signal(signal.SIGTERM)
    until(lambda: "stopping: " in worker.said)
    worker.signal(signal.SIGTERM)
    assert worker.wait(10) == 0
    for handle in (resubmits, continues):
        assert handle.status() is TaskStatus.PENDING
        assert only_attempt(handle).outcome is AttemptOutcome.INTERRUPTED


@pytest.mark.slow
def test_a_third_signal_does_not_wait(site: Site) -> None:
    worker = start(site, 60, "--kill-grace", "60", "--lease", "3")
    (handle,) = begin(site, "deaf")
    family = worker.descendants()
    worker.signal(signal.SIGTERM)
    until(lambda: "stopping: " in worker.said)
    worker.signal(signal.SIGTERM)
    until(lambda: site.ledger.count("told", "deaf") == 1)
    worker.signal(signal.SIGTERM)
    assert worker.wait(10) == 1
    until(lambda: not any(map(alive, family)), within=2, what="its children to be gone")
    # Its lease runs out, or was given back; the next worker has it again.
    start(site)
    until(lambda: site.ledger.count("begun", "deaf") == 2, within=10)
    assert handle.status() is TaskStatus.RUNNING


def test_code_that_will_not_end_is_killed(site: Site) -> None:
    worker = start(site)
    (handle,) = begin(site, "deaf")
    assert worker.stop() == 0
    assert handle.status() is TaskStatus.PENDING
    assert only_attempt(handle).outcome is AttemptOutcome.INTERRUPTED


def test_nothing_is_claimed_after_the_signal(site: Site) -> None:
    worker = start(site, grace=20)
    (handle,) = begin(site, "resubmits")
    worker.signal(signal.SIGTERM)
    until(lambda: "stopping: " in worker.said)
    later = [site.send("step", number) for number in range(5)]
    site.ledger.open_gate("resubmits")
    assert worker.wait(10) == 0
    assert handle.status() is TaskStatus.COMPLETED
    assert [one.status() for one in later] == [TaskStatus.PENDING] * 5
    assert site.ledger.count("step") == 0


def test_a_signal_to_everybody_is_for_the_supervisor(site: Site) -> None:
    # As a terminal does with Ctrl-C, and a service manager with a whole group.
    worker = start(site, grace=20)
    (handle,) = begin(site, "resubmits")
    for pid in (worker.pid, *worker.descendants()):
        os.kill(pid, signal.SIGTERM)
    for pid in worker.descendants():
        os.kill(pid, signal.SIGINT)
    until(lambda: "stopping: " in worker.said)
    site.ledger.open_gate("resubmits")
    assert worker.wait(10) == 0
    assert handle.get(1) == 1


def test_in_the_middle_of_load(site: Site) -> None:
    worker = start(site, grace=0.5)
    sent: list[TaskHandle[Any]] = []
    for task in (site.module.step, site.module.step_stops, site.module.step_continues):
        sent += task.send_many([(number,) for number in range(len(sent), len(sent) + 100)])
    until(lambda: site.ledger.count("step") > 60, within=20)
    asked = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - asked < 0.5 + 0.5 + 2.0
    counts = site.app.control.tasks.count()
    assert counts.get(TaskStatus.RUNNING, 0) == counts.get(TaskStatus.CLAIMED, 0) == 0
    assert counts[TaskStatus.PENDING] > 0
    start(site)
    # Short tasks end within the grace: nothing is stalled, nothing runs twice.
    assert set(site.app.wait(sent, 30)) == {TaskStatus.COMPLETED}
    assert set(site.ledger.tally("step").values()) == {1}
    for handle in sent:
        info = handle.info()
        assert (info.retry_count, info.crash_count) == (0, 0)
        outcomes = [attempt.outcome for attempt in handle.attempts()]
        assert len(outcomes) == info.attempt
        assert set(outcomes[:-1]) <= {AttemptOutcome.INTERRUPTED}


def test_an_operator_orders_a_worker_to_drain(site: Site) -> None:
    """What runs may take longer than the grace, and nothing more is begun."""
    worker = start(site, 0.1)
    (running,) = begin(site, "stops")
    (name,) = [each.id for each in site.app.control.workers.list()]
    assert site.app.control.workers.drain(name, "nobody") == {name: True, "nobody": False}
    until(lambda: "draining: 1 running task(s)" in worker.said)
    later = site.send("resubmits", "later")
    (shown,) = site.app.control.workers.list()
    assert (shown.command, shown.queues) == ("drain", ())
    # Longer than its grace: a `stop` task would be stalled by an ordinary stop.
    passed(0.3)
    site.ledger.open_gate("stops")
    assert worker.wait(10) == 0
    assert (running.status(), later.status()) == (TaskStatus.COMPLETED, TaskStatus.PENDING)
    assert not site.app.control.workers.list()
    entries = site.app.control.audit.list(verb="drain").entries
    assert [entry.subject for entry in entries] == [f"worker {name}"]


def test_a_stronger_order_makes_an_end_of_draining(site: Site) -> None:
    worker = start(site, 60)
    (running,) = begin(site, "stops")
    (name,) = [each.id for each in site.app.control.workers.list()]
    site.app.control.workers.drain(name)
    until(lambda: "draining: " in worker.said)
    site.app.control.workers.stop(name, interrupt=True)
    assert worker.wait(15) == 0
    assert running.status() is TaskStatus.STALLED
