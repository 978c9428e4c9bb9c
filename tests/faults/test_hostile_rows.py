"""Rows that somebody wrote by hand: they stop nobody, and an operator sees them.

The whole corpus of `tests.support.hostile_rows` is for the full run; a sample of it runs always.
"""

from __future__ import annotations

import logging
import os
import random
import time
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from holdfast import TaskStatus
from holdfast.cli.main import main
from holdfast.core.identity import new_id
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.dropper import Dropper
from holdfast.runtime.supervisor.duties.janitor import Janitor
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.open import open_store
from holdfast.store.verbs import inspect
from holdfast.store.verbs.submit import submit
from tests.support.deadline import passed, until
from tests.support.hostile_rows import Database, always, corpus, open_rows
from tests.support.site import Engine, Site, ended
from tests.support.sites import MakeSite
from tests.support.verbs import step
from tests.support.worker import WorkerProcess

PROGRAM = "tests.faults.programs.plain"
SAMPLE = 400
LOOKS = (
    ("tasks", "list"),
    ("tasks", "list", "--limit", "2000", "--json"),
    *(("tasks", "list", "--status", status.value) for status in TaskStatus),
    ("tasks", "list", "--tag", "x"),
    ("tasks", "list", "--queue", "default", "--name", "good"),
    ("tasks", "list", "--error", "INVALID_ROW"),
    ("dead-letters", "list"),
    ("dead-letters", "list", "--json"),
    ("dead-letters", "causes"),
    ("dead-letters", "causes", "--by", "day", "--json"),
    ("routes", "list"),
    ("routes", "list", "--json"),
    ("queues", "list"),
    ("queues", "list", "--json"),
    ("workers", "list", "--all"),
    ("workers", "list", "--all", "--json"),
    ("schedules", "list"),
    ("schedules", "list", "--json"),
    ("workflows", "list"),
    ("workflows", "list", "--json"),
    ("db", "status"),
)


def test_a_sample_of_hostile_rows_stops_nobody(fresh_site: MakeSite) -> None:
    _besieged(fresh_site(PROGRAM), SAMPLE)


@pytest.mark.slow
def test_no_hostile_row_stops_anybody(fresh_site: MakeSite) -> None:
    _besieged(fresh_site(PROGRAM), None)


def test_more_hostile_rows_than_a_batch_holds_keep_nobody_waiting(fresh_site: MakeSite) -> None:
    """Ended rows that have a time to expire, waiting ones that are due, and rows at the head of the
    queue that the store refuses to have changed: more of each than anybody takes at once."""
    site = fresh_site(PROGRAM)
    good = site.send("good", 1)
    with closing(open_rows(site.url)) as hostile:
        is_sqlite = site.url.startswith("sqlite")
        long_ago = "1000000" if is_sqlite else "timestamptz '1990-01-01'"
        no, never = ("0", "1") if is_sqlite else ("false", "timestamptz '1990-01-01'")
        _multiply(
            hostile,
            600,
            status="'COMPLETED'",
            ready=no,
            result="'1'",
            finished_at=long_ago,
            expire_at=long_ago,
        )
        _multiply(hostile, 600, status="'WAITING'", ready=no, due_at=long_ago)
        _multiply(hostile, 1, status="'nonsense'", ready=no)
        _multiply(hostile, 1_500, priority="1", finished_at=never)
        _multiply(hostile, 300, status="'SCHEDULED'", ready=no, due_at=long_ago, finished_at=never)
        if not is_sqlite:
            hostile.execute(
                "ALTER TABLE holdfast_tasks ADD CHECK ((finished_at IS NULL) = (status IN "
                "('PENDING', 'SCHEDULED', 'WAITING', 'CLAIMED', 'RUNNING', 'nonsense'))) NOT VALID"
            )
    worker = site.worker("-c", "1").ready()
    expiring = site.options(queue="elsewhere", good_for=0.5).send("good", 2)
    delayed = site.options(delay=0.5).send("good", 3)

    assert ended(good, 15.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    assert ended(delayed, 15.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    assert ended(expiring, 15.0) is TaskStatus.EXPIRED, worker.said[-5000:]
    site.run(inspect.counts)
    assert worker.stop() == 0
    assert "INVALID_ROW" in worker.said
    assert worker.said.count("\n") < 600
    assert "Traceback" not in worker.said, worker.said[-8000:]
    _look(site)


def test_a_parent_ends_whatever_stands_in_the_rows_of_its_children(fresh_site: MakeSite) -> None:
    spoilt = ("finished_at = created_at", f"good_for_us = {2**63 - 1}", "error_code = 'X'")
    site = fresh_site(PROGRAM)
    workflow = new_id()
    parent = step(workflow, task_name="good", queue_name="default", args="[1]")
    good_child, odd_edge, *children = (
        step(workflow, parent.id, task_name="good", queue_name="default", args="[2]")
        for _ in range(2 + len(spoilt))
    )
    site.run(lambda: submit([parent, good_child, odd_edge, *children]))
    bad = [str(UUID(bytes=child.id)) for child in children]
    with closing(open_rows(site.url)) as hostile:
        odd = str(UUID(bytes=odd_edge.id))
        for id, change in zip(bad, spoilt, strict=True):
            hostile.execute(f"UPDATE holdfast_tasks SET {change} WHERE id = '{id}'")
        hostile.execute(
            f"UPDATE holdfast_task_dependencies SET on_status = 'odd' WHERE child_id = '{odd}'"
        )
        if not site.url.startswith("sqlite"):
            for check in (
                "(finished_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED'))",
                "(error_code IS NOT NULL) = (status IN ('FAILED', 'CANCELLED'))",
            ):
                hostile.execute(f"ALTER TABLE holdfast_tasks ADD CHECK ({check}) NOT VALID")
            hostile.execute(
                "ALTER TABLE holdfast_task_dependencies "
                "ADD CHECK (on_status IN ('success', 'failure', 'always')) NOT VALID"
            )
    worker = site.worker("-c", "1").ready()

    def both() -> bool:
        found = site.run(lambda: inspect.statuses([parent.id, good_child.id]))
        return set(found.values()) == {TaskStatus.COMPLETED}

    until(both, within=20.0, what=f"parent and child to complete:\n{worker.said[-3000:]}")
    for id in bad:
        assert f"INVALID_ROW: task {id}" in worker.said, worker.said[-3000:]
    assert worker.stop() == 0
    assert "Traceback" not in worker.said


def _multiply(hostile: Database, number: int, **columns: str) -> None:
    """So many rows like the first one, but with these expressions in these columns."""
    names = [name for name in hostile.columns("tasks") if name not in ("seq", "id")]
    values = ", ".join(columns.get(name, name) for name in names)
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})"
    id = "gen_random_uuid()"
    if "seq" in hostile.columns("tasks"):
        id = (
            "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-7000-8000-' || "
            "hex(randomblob(6)))"
        )
    hostile.execute(
        f"{numbers} INSERT INTO holdfast_tasks (id, {', '.join(names)}) SELECT {id}, {values} "
        "FROM n, (SELECT * FROM holdfast_tasks ORDER BY created_at LIMIT 1) AS first"
    )


@pytest.mark.slow
def test_arguments_of_300_megabytes_fail_without_being_loaded(
    fresh_site: MakeSite, engine: Engine
) -> None:
    site = fresh_site(PROGRAM)
    bad = site.send("good", 1)
    with closing(open_rows(site.url)) as rows:
        long = "CAST(zeroblob(?) AS TEXT)" if engine == "sqlite" else "repeat('1', %s)"
        mark = "?" if engine == "sqlite" else "%s"
        text = f"UPDATE holdfast_tasks SET args = {long} WHERE id = {mark}"
        rows.execute(text, 300_000_000, str(bad.id))
    worker = site.worker("-c", "1").ready()
    good = site.send("good", 2)

    assert ended(bad, 60.0) is TaskStatus.FAILED
    assert ended(good, 20.0) is TaskStatus.COMPLETED
    assert _peak_megabytes(worker.pid) < 250
    assert "INVALID_ROW" in worker.said
    _look(site)


def _besieged(site: Site, sample: int | None) -> None:
    """A worker, the duties that take their time, and every command, over hostile rows."""
    before = [site.send("good", number) for number in range(20)]
    seed = int(os.environ.get("HOLDFAST_TEST_SEED", "20"))
    with closing(open_rows(site.url)) as hostile:
        everything = list(corpus(hostile))
        chosen = random.Random(seed).sample(everything, sample) if sample else everything
        written = hostile.write([*always(), *chosen])
        if site.url.startswith("sqlite"):
            hostile.execute(
                f"INSERT OR REPLACE INTO holdfast_meta VALUES ('clock', '', {2**63 - 1})"
            )
    assert written > len(chosen) / 3
    worker = site.worker("-c", "2", "--lease", "2").ready()
    after = [site.send("good", number) for number in range(20)]
    for handle in (*before, *after):
        assert ended(handle, 60.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    # Not before the owners of leases had their chance.
    recovered = "INVALID_ROW: the lease "
    until(lambda: recovered in worker.said, what=f"a lease to be dropped:\n{worker.said[-3000:]}")
    _let_settle(site, worker)
    last = [site.send("good", number) for number in range(5)]
    for handle in last:
        assert ended(handle, 10.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    assert _megabytes(worker.pid) < 400
    assert worker.stop() == 0, worker.said[-5000:]
    assert "goes on" not in worker.said, worker.said[-8000:]
    assert "Traceback" not in worker.said, worker.said[-8000:]
    assert "\nERROR forged" not in worker.said
    _walk(site)
    _look(site)


def _let_settle(site: Site, worker: WorkerProcess) -> None:
    """Wait until the worker has nothing more to do, which hostile rows must not keep it from."""

    def is_calm() -> bool:
        assert worker.process.poll() is None, worker.said[-5000:]
        began = _cpu_seconds(worker.pid)
        passed(1.0)
        return _cpu_seconds(worker.pid) - began < 0.3

    until(is_calm, within=60.0, what=f"the worker to rest:\n{worker.said[-3000:]}")


def _walk(site: Site) -> None:
    """What a worker does once an hour."""
    heard = _Errors()
    logger = logging.getLogger("holdfast.worker")
    logger.addHandler(heard)
    store = open_store(site.app.config.store)
    try:
        options = WorkerOptions(drop_unknown_after=3600.0)
        janitor = Janitor(store, options, Outage(1.0))
        janitor.tick()
        while janitor.tick() < 1.0:
            pass
        clock = [1e6]
        dropper = Dropper(store, options, Outage(1.0), known=(), clock=lambda: clock[0])
        for _ in range(200):
            clock[0] += 4.0
            dropper.tick()
    finally:
        logger.removeHandler(heard)
        store.close()
    assert not heard.records, [record.getMessage() for record in heard.records]


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.records.append(record)


def _look(site: Site) -> None:
    """Every command that shows something."""
    for command in LOOKS:
        began = time.monotonic()
        found = CliRunner().invoke(main, [*command, "--url", site.url], prog_name="holdfast")
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise AssertionError(command) from found.exception
        assert found.exit_code == 0, (command, found.stdout[-500:], found.stderr[-500:])
        assert time.monotonic() - began < 20, command


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no peak")


def _megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
