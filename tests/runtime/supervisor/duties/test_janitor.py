"""The janitor: one walk for the fleet, which writes only where there is something to remove."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from holdfast.core.options.limit import Limit
from holdfast.core.options.retention import Retention
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.janitor import Janitor
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.verbs import (
    claims,
    finish,
    inspect,
    leases,
    limits,
    schedules,
    statistics,
    ticks,
)
from holdfast.store.verbs.finish import Completion
from tests.store.plans import filled
from tests.support.schedules import schedule
from tests.support.stores import Kind, Lab, Labs, on_each_engine
from tests.support.workflows import begin, complete, plan_of, status, step

HOUR, DAY = 3600, 86_400
PAGES = 1000


def janitor_of(lab: Lab, **keep: object) -> Janitor:
    """The janitor of one more worker, past its first rest."""
    retention = Retention(**keep)  # type: ignore[arg-type]
    janitor = Janitor(lab.store, WorkerOptions(retention=retention), Outage(1.0))
    janitor.tick()
    return janitor


def walk(janitor: Janitor) -> int:
    """Let it work until it rests; in how many ticks."""
    for number in range(1, PAGES):
        if janitor.tick() > 1:
            return number
    raise AssertionError("the walk has no end")


@on_each_engine
def test_one_walk_serves_all_workers(lab: Lab) -> None:
    first, second = janitor_of(lab), janitor_of(lab)
    lab.send_many(600)
    assert walk(first) == 2
    old = lab.reach(TaskStatus.COMPLETED).id
    lab.clock.advance(31 * DAY)
    assert walk(second) == 2, "long ago"
    assert not lab.run(inspect.statuses([old]))
    newer = lab.reach(TaskStatus.COMPLETED).id
    lab.clock.advance(HOUR / 2)
    for janitor in (first, second, janitor_of(lab, tasks=1)):
        walk(janitor)
        assert lab.run(inspect.statuses([newer])), "half an hour after the last walk nobody walks"
    lab.clock.advance(HOUR)
    walk(janitor_of(lab, tasks=1))
    assert not lab.run(inspect.statuses([newer]))


@on_each_engine
def test_a_walk_whose_worker_is_gone_is_taken_over_where_it_was(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runtime.supervisor.duties.janitor._NOTE_EVERY", -1.0)
    lab.send_many(1600)
    first, second = janitor_of(lab), janitor_of(lab)
    first.tick()
    first.tick()
    lab.clock.advance(60)
    assert walk(second) == 1, "somebody walks"
    lab.clock.advance(600)
    assert walk(second) == 2, "half of the pages were left"


@on_each_engine
def test_counters_are_forgotten(lab: Lab) -> None:
    tally = statistics.Tally.of("w", "q", "t", completed=1)
    lab.run(statistics.add_tallies([tally]))
    lab.clock.advance(8 * DAY)
    lab.run(statistics.add_tallies([tally]))
    lab.run(statistics.fold(lab.clock.advance(60)))
    walk(janitor_of(lab))
    levels = "SELECT level, count(*) FROM holdfast_stats_series GROUP BY level ORDER BY level"
    kept = [("day", 2), ("ever", 1), ("hour", 2), ("minute", 1)]
    assert lab.sql(levels) == kept
    lab.clock.advance(20 * DAY)
    walk(janitor_of(lab, stats=None))
    assert lab.sql(levels) == kept
    (ever,) = lab.run(statistics.totals())
    assert ever.counts["completed"] == 2, "what was ever counted is never forgotten"


@on_each_engine
def test_what_became_of_ticks_is_forgotten_with_tasks(lab: Lab) -> None:
    lab.run(schedules.add(schedule("@daily")))
    lab.run(ticks.run_now("s"))
    lab.clock.advance(29 * DAY)
    walk(janitor_of(lab))
    assert len(lab.run(ticks.history("s"))) == 1
    lab.clock.advance(2 * DAY)
    walk(janitor_of(lab))
    assert lab.run(ticks.history("s")) == []
    assert lab.run(schedules.show("s")).history_from is not None


@pytest.fixture
def postgres_lab(labs: Labs) -> Iterator[Lab]:
    with labs.open(Kind.POSTGRES) as found:
        yield found


def test_a_walk_that_finds_nothing_writes_nothing(postgres_lab: Lab) -> None:
    """Locking a row is a write, too: 20,000 rows would be megabytes of WAL."""
    lab = postgres_lab
    rows = 20_000
    lab.sql(filled.POSTGRES.replace(str(filled.ROWS), str(rows)))
    lab.sql("DELETE FROM holdfast_tasks WHERE status IN ('CLAIMED', 'RUNNING', 'WAITING')")
    # The first to read a new row notes in it that it is committed.
    lab.sql("SELECT count(*) FROM holdfast_tasks WHERE task_name <> ''")
    janitor = janitor_of(lab, tasks=None)
    before = written(lab)
    assert walk(janitor) >= rows * 0.9 // 500
    assert written(lab) - before < 100_000


def written(lab: Lab) -> int:
    """Bytes of WAL so far."""
    found: int = lab.sql("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")[0][0]
    return found


def test_a_healthy_busy_queue_raises_no_alarm(
    postgres_lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    lab = postgres_lab
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            lab.send_many(20)
            tasks = lab.claim(20).tasks
            if tasks:
                lab.start(*tasks)
                lab.run(finish.complete([Completion(t.key, t.token, "1") for t in tasks]))
                lab.run(claims.clean([tasks[0].token]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with caplog.at_level(logging.ERROR, "holdfast.worker"):
            for _ in range(20):
                walk(janitor_of(lab, tasks=None))
                lab.clock.advance(2 * HOUR)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert caplog.messages == []


@on_each_engine
def test_a_task_in_flight_without_a_lease_is_reported(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    lab.running()
    lab.sql("DELETE FROM holdfast_leases")
    with caplog.at_level(logging.ERROR, "holdfast.worker"):
        walk(janitor_of(lab))
    assert "the audit found 1 task(s) in flight without a lease" in caplog.text
    assert lab.run(leases.count()) == 1


@on_each_engine
def test_steps_that_were_miscounted_are_counted_anew(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of(step())
    (only,) = begin(lab, plan)
    janitor = janitor_of(lab)
    lab.sql("UPDATE holdfast_step_counts SET open = 3")
    complete(lab, only)
    assert status(lab, plan) is WorkflowStatus.RUNNING
    walk(janitor)
    assert status(lab, plan) is WorkflowStatus.COMPLETED
    assert "counted anew" in caplog.text


@on_each_engine
def test_counters_of_limits_are_mended_and_forgotten(lab: Lab) -> None:
    lab.run(limits.choose("queue q", [Limit(concurrency=3)]))
    lab.sql("UPDATE holdfast_counters SET held = 3")
    lab.sql("INSERT INTO holdfast_counters (scope) VALUES ('queue q key')")
    walk(janitor_of(lab))
    assert lab.sql("SELECT scope, held FROM holdfast_counters") == [("queue q", 0)]
