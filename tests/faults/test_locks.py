"""Somebody's open transaction holds a row that a worker has to write: only that row waits.

PostgreSQL only: on SQLite an open write transaction keeps everybody out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import TaskHandle, TaskStatus, Unique, Workflow
from holdfast.core.status import WorkflowStatus
from tests.support.deadline import passed, until
from tests.support.postgres import PostgresServer
from tests.support.site import Site

PROGRAM = "tests.faults.programs.locks"
LEASE = 2.0
AT_ONCE = 1.5
"""Seconds that a row which somebody holds may cost those who do not need it, once."""


@pytest.fixture
def site(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    url = postgres_server.create_database()
    with Site(PROGRAM, url, tmp_path) as site:
        yield site
    postgres_server.drop_database(url)


@contextmanager
def holding(site: Site, statement: str, *values: object) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody's, which has run this and is open."""
    with psycopg.connect(site.url, application_name="somebody") as connection:
        connection.execute(statement.encode(), values)
        yield connection
        connection.rollback()


@contextmanager
def holding_task(site: Site, handle: TaskHandle[Any]) -> Iterator[psycopg.Connection[Any]]:
    lock = "SELECT FROM holdfast_tasks WHERE id = %s FOR UPDATE"
    with holding(site, lock, handle.id) as connection:
        yield connection


def others_run(site: Site, count: int = 30) -> None:
    """Other tasks are claimed, run and finished as if nothing were."""
    began = time.monotonic()
    assert [handle.get(10) for handle in site.module.quick.send_many((n,) for n in range(count))]
    assert time.monotonic() - began < AT_ONCE
    for number in range(3):
        began = time.monotonic()
        assert site.send("quick", number).get(10) == number
        assert time.monotonic() - began < AT_ONCE / 2


def test_a_running_task_that_somebody_holds(site: Site) -> None:
    """Its end is written when it is free; meanwhile others end, and leases live."""
    worker = site.worker("-c", "3", "--lease", str(LEASE)).ready()
    handle, other = site.send("held", "a"), site.send("held", "b")
    site.begun("a", "b")
    with holding_task(site, handle):
        site.ledger.open_gate("a")
        until(lambda: site.ledger.count("done") == 1)
        others_run(site)
        passed(LEASE * 1.5)
        others_run(site)
        assert handle.status() is TaskStatus.RUNNING
    assert handle.get(AT_ONCE * 2) == "a"
    site.ledger.open_gate("b")
    assert other.get(5) == "b"
    for task in (handle, other):
        assert (task.info().attempt, task.info().crash_count) == (1, 0), worker.said
    assert "away" not in worker.said
    assert worker.stop() == 0


def test_rows_of_all_kinds(site: Site) -> None:
    """A task that waits, a lease, the worker's own row, the queue's: nobody else notices."""
    worker = site.worker("-c", "3", "--lease", str(LEASE)).ready()
    running = site.send("held", "a")
    site.begun("a")
    site.app.control.queues.pause("default")
    waiting = site.send("quick", 7)
    site.app.control.queues.resume("default")
    locks = [
        "SELECT FROM holdfast_leases FOR UPDATE",
        "SELECT FROM holdfast_workers FOR UPDATE",
        "SELECT FROM holdfast_queues FOR UPDATE",
    ]
    with psycopg.connect(site.url) as connection:
        for lock in locks:
            connection.execute(lock.encode())
        site.ledger.open_gate("a")
        assert running.get(AT_ONCE) == "a", "its end does not need its lease"
        assert waiting.get(AT_ONCE) == 7
        later = site.send("held", "b")
        site.begun("b")
        passed(LEASE * 1.5)
        others_run(site)
        connection.rollback()
    site.ledger.open_gate("b")
    assert later.get(5) == "b"
    assert (later.info().attempt, later.info().crash_count) == (1, 0), worker.said
    assert worker.stop() == 0


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT FROM holdfast_step_counts FOR UPDATE",
        "SELECT FROM holdfast_scopes FOR UPDATE",
        "SELECT FROM holdfast_workflows FOR UPDATE",
    ],
)
def test_the_counts_of_a_workflow_that_somebody_holds(site: Site, lock: str) -> None:
    """Its steps end when they are free; meanwhile others do, and nothing runs twice."""
    worker = site.worker("-c", "3", "--lease", str(LEASE)).ready()
    wf = Workflow("counted")
    for name in ("a", "b"):
        wf.options(name=name).step(site.module.held, name)
    handle = wf.send()
    site.begun("a", "b")
    with holding(site, lock):
        site.ledger.open_gate("a", "b")
        until(lambda: site.ledger.count("done") == 2)
        others_run(site)
        passed(LEASE * 1.5)
        others_run(site)
        assert handle.status() is WorkflowStatus.RUNNING
    assert handle.wait(AT_ONCE * 4) is WorkflowStatus.COMPLETED
    for task in handle.steps():
        assert (task.info().attempt, task.info().crash_count) == (1, 0), worker.said
    assert worker.stop() == 0


@pytest.mark.slow
def test_a_task_that_waits_and_is_held_is_passed_over(site: Site) -> None:
    handle = site.send("quick", 7)
    with holding_task(site, handle):
        site.worker("-c", "2", "--lease", str(LEASE)).ready()
        others_run(site)
        assert handle.status() is TaskStatus.PENDING
    assert handle.get(5) == 7


def _waits_for_a_lock(site: Site) -> bool:
    with psycopg.connect(site.url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return found.fetchone() is not None


def test_a_unique_key_that_somebody_is_taking(site: Site) -> None:
    """Whoever wants to send under it waits; whoever sends something else does not."""
    site.worker("-c", "4", "--lease", str(LEASE)).ready()
    handles = [site.send("sending", name, "key") for name in ("a", "b")]
    plain = [site.send("sending", name, None) for name in ("c", "d")]
    site.begun("a-sends", "b-sends", "c-sends", "d-sends")
    with psycopg.connect(site.url) as connection:
        with site.app.using(connection):
            site.options(unique=Unique("key"), queue="elsewhere").send("quick", 1)
        site.ledger.open_gate("a-sends", "b-sends")
        until(lambda: _waits_for_a_lock(site), what="a send to wait for the key")
        for handle, name in zip(plain, ("c", "d"), strict=True):
            began = time.monotonic()
            site.ledger.open_gate(f"{name}-sends")
            assert handle.get(10) == name
            assert time.monotonic() - began < AT_ONCE
        assert site.ledger.tally("sent") == {"c": 1, "d": 1}
        connection.commit()
    assert [handle.get(10) for handle in handles] == ["a", "b"]
    assert len(site.app.control.tasks.list(queue="elsewhere", name="quick").tasks) == 3


def test_progress_of_others_while_one_is_held(site: Site) -> None:
    site.worker("-c", "1", "--lease", str(LEASE)).ready()
    held, other = site.send("noting", "a"), site.send("noting", "b")
    site.begun("a", "b")
    with holding_task(site, held):
        before = other.info().progress
        until(lambda: other.info().progress != before, within=AT_ONCE)
        site.ledger.open_gate("b")
        assert other.get(AT_ONCE) == "b"
    site.ledger.open_gate("a")
    assert held.get(5) == "a"


@pytest.mark.slow
def test_a_stop_while_an_end_cannot_be_written(site: Site) -> None:
    """The grace is what it may cost; then the task is left to its lease."""
    worker = site.worker("-c", "2", "--lease", str(LEASE), "--grace", "1").ready()
    handle = site.send("held", "a")
    site.begun("a")
    with holding_task(site, handle):
        site.ledger.open_gate("a")
        until(lambda: site.ledger.count("done") == 1)
        began = time.monotonic()
        assert worker.stop(within=10) == 0
        assert time.monotonic() - began < 5
        assert "the end of 1 task(s) is not written" in worker.said
    site.worker("-c", "2", "--lease", str(LEASE)).ready()
    assert handle.get(LEASE + 10) == "a"
    assert handle.info().attempt == 2


def test_a_cancel_that_is_not_committed(site: Site) -> None:
    """The worker goes on around it, and obeys when it is."""
    site.worker("-c", "3", "--lease", str(LEASE)).ready()
    handle = site.send("held", "a")
    site.begun("a")
    with psycopg.connect(site.url) as connection:
        with site.app.using(connection):
            handle.cancel()
        others_run(site)
        site.ledger.open_gate("a")
        until(lambda: site.ledger.count("done") == 1)
        others_run(site)
        connection.commit()
    assert handle.wait(5) is TaskStatus.COMPLETED, "work that is done is not denied"
