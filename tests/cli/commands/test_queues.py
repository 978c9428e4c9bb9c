"""`queues` and `workers`: what waits, what is paused, who is there."""

from __future__ import annotations

import getpass
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from holdfast.core.records import WorkerState
from holdfast.store.verbs import workers
from tests.cli.conftest import Operator, run
from tests.support.stores import Lab


def test_no_queues(operator: Operator) -> None:
    said = operator("queues", "list")
    assert said.lines == ["QUEUE  PENDING  OLDEST  SCHEDULED  PAUSED  BY"]
    assert said.err.startswith("nothing waits in any queue, and none is paused (")
    assert operator("queues", "list", "--json").json == {"queues": []}


def test_pausing_and_resuming(operator: Operator, lab: Lab) -> None:
    lab.send_many(3, queue_name="mail")
    lab.send(queue_name="late", delay_us=90_000_000)
    said = operator("queues", "pause", "mail", "idle", "--by", "ada", "--force")
    assert said.lines == ["mail  paused", "idle  paused"]
    assert operator("queues", "list").rows == [
        ["idle", "0", "-", "0", "2030-03-17T17:46:40Z", "ada"],
        ["late", "0", "-", "1", "-", "-"],
        ["mail", "3", "2030-03-17T17:46:40Z", "0", "2030-03-17T17:46:40Z", "ada"],
    ]
    assert lab.claim(queue="mail").tasks == []
    said = operator("queues", "resume", "mail", "other")
    assert said.lines == ["mail  resumed", "other  was not paused"]
    assert len(lab.claim(queue="mail").tasks) == 3
    found = operator("queues", "resume", "idle", "--json").json
    assert found == {"queues": [{"queue": "idle", "resumed": True}]}


def test_a_queue_that_nobody_has_seen_is_not_paused(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="mail")
    join(lab, "worker")
    said = operator("queues", "pause", "b", "mial", code=1)
    assert "nothing was paused" in said.err
    assert "did you mean 'mail'?" in said.err
    assert [q["paused_at"] for q in operator("queues", "list", "--json").json["queues"]] == [None]
    lab.complete(lab.running(queue_name="done"))
    operator("queues", "pause", "b", "done")
    operator("queues", "pause", "mial", "--force")


def test_a_pause_is_signed(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="q")
    operator("queues", "pause", "q")
    (queue,) = operator("queues", "list", "--json").json["queues"]
    assert queue["paused_by"].startswith(f"{getpass.getuser()}@")
    assert queue["paused_at"] == "2030-03-17T17:46:40.000000Z"


def test_a_queue_name_that_cannot_be(operator: Operator) -> None:
    assert "queue name 'a b' is not usable" in operator("queues", "pause", "a b", code=2).err


def test_a_name_of_ten_megabytes_is_listed_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    for _ in range(2):
        assert run("tasks", "send", "resize", "--url", url).code == 0
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as by_hand:
        by_hand.execute("PRAGMA ignore_check_constraints = 1")
        by_hand.execute("UPDATE holdfast_tasks SET queue_name = ?", ("q" * 10_000_000,))
        by_hand.commit()
    began = time.process_time()
    said = run("queues", "list", "--url", url)
    assert time.process_time() - began < 3
    assert "queue_name is longer than 100 characters" in said.out


def test_one_bad_name_among_good_ones_changes_nothing(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="mail")
    operator("queues", "pause", "mail", "sm☃w", "--force", code=2)
    assert operator("queues", "resume", "mail").lines == ["mail  was not paused"]
    operator("queues", "pause", "mail")
    operator("queues", "resume", "mail", "sm☃w", code=2)
    assert operator("queues", "resume", "mail").lines == ["mail  resumed"]


def join(lab: Lab, name: str) -> None:
    lab.run(
        workers.register(
            name,
            hostname="host-1",
            pid=42,
            version="1.0",
            lease_us=30_000_000,
            queues='["a","b"]',
            known='["t@1"]',
            settings='{"processes":2}',
        )
    )


def test_no_workers(operator: Operator) -> None:
    said = operator("workers", "list")
    assert said.err.startswith("no worker is running on this database (")
    assert operator("workers", "list", "--json").json == {"workers": []}


def test_workers(operator: Operator, lab: Lab) -> None:
    join(lab, "silent")
    join(lab, "stopped")
    lab.run(workers.stop("stopped"))
    lab.clock.advance(40)
    join(lab, "alive")
    lab.run(
        workers.snapshot(
            WorkerState(
                worker_id="alive",
                hostname="host-1",
                pid=42,
                processes=2,
                queues='["a","b"]',
                tasks_running=3,
                tasks_claimed=7,
                worker_started_at=lab.clock.now,
                memory_usage_mb=61.6,
                cpu_percent=12.3,
            )
        )
    )
    rows = {row[0]: row[1:] for row in operator("workers", "list").rows}
    began, now = "2030-03-17T17:46:40Z", "2030-03-17T17:47:20Z"
    # Numbers have their age, and a worker that is silent has none that are true.
    assert rows == {
        "alive": ["alive", now, "3", "7", "62MB", "12%", now, "host-1", "42", now, "1.0", "a,b"],
        "silent": ["silent", began, *"-----", "host-1", "42", began, "1.0", "a,b"],
    }
    rows = {row[0]: row[1:] for row in operator("workers", "list", "--all").rows}
    assert rows["stopped"][0] == "stopped"
    (alive,) = [
        worker
        for worker in operator("workers", "list", "--json").json["workers"]
        if worker["state"] == "alive"
    ]
    assert alive["queues"] == ["a", "b"]
    assert alive["tasks"] == ["t@1"]
    assert alive["settings"] == {"processes": 2}
    assert (alive["lease"], alive["tasks_running"]) == (30.0, 3)
