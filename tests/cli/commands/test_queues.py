"""`queues`: what waits, and what is paused."""

from __future__ import annotations

import getpass
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from holdfast.core.options.limit import Limit
from holdfast.store.verbs import declared_limits
from tests.cli.conftest import Operator, join, run
from tests.support.stores import Lab


def test_no_queues(operator: Operator) -> None:
    said = operator("queues", "list")
    assert said.lines == ["QUEUE  PENDING  OLDEST  SCHEDULED  PAUSED  BY  LIMITS"]
    assert said.err.startswith("nothing waits in any queue, and none is paused (")
    assert operator("queues", "list", "--json").json == {"queues": []}


def test_pausing_and_resuming(operator: Operator, lab: Lab) -> None:
    lab.send_many(3, queue_name="mail")
    lab.send(queue_name="late", delay_us=90_000_000)
    said = operator("queues", "pause", "mail", "idle", "--by", "ada", "--force")
    assert said.lines == ["mail  paused", "idle  paused"]
    assert operator("queues", "list").rows == [
        ["idle", "0", "-", "0", "2030-03-17T17:46:40Z", "ada", "-"],
        ["late", "0", "-", "1", "-", "-", "-"],
        ["mail", "3", "2030-03-17T17:46:40Z", "0", "2030-03-17T17:46:40Z", "ada", "-"],
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
    assert queue["paused_by"] == getpass.getuser()
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


def test_a_queue_that_cannot_be_read_hides_no_other(operator: Operator, lab: Lab) -> None:
    for name in ("bad", "good"):
        operator("queues", "pause", name, "--force")
    never = "'infinity'" if lab.engine == "postgresql" else str(2**63 - 1)
    lab.sql(f"UPDATE holdfast_queues SET paused_at = {never} WHERE queue_name = 'bad'")
    said = operator("queues", "list")
    assert said.rows[0][0] == "good"
    beyond = "paused_at is a time beyond all years"
    assert said.lines[2:] == [f"unreadable  row bad of holdfast_queues: {beyond}"]
    found = operator("queues", "list", "--json").json
    assert [queue["name"] for queue in found["queues"]] == ["good"]
    assert [row["key"] for row in found["unreadable"]] == ["bad"]


def test_limiting_a_queue(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="mail")
    said = operator("queues", "limit", "mail")
    assert said.lines == ["mail  no limit"]
    given = ("--concurrency", "5", "--rate", "100/minute", "--key-concurrency", "1", "--strict")
    said = operator("queues", "limit", "mail", *given)
    limit = "5 at a time, 100/minute, per key 1 at a time; strict order"
    assert said.lines == [f"mail  {limit}"]
    assert limit in operator("queues", "list").out
    assert operator("queues", "limit", "mail", "--json").json == {
        "queue": "mail",
        "limits": [
            {
                "concurrency": 5,
                "rate": "100/minute",
                "burst": 1,
                "per_key": {"concurrency": 1, "rate": None, "burst": 1, "per_key": None},
            }
        ],
        "fair": False,
    }
    assert operator("queues", "limit", "mail", "--none", "--fair").lines == ["mail  no limit"]


def test_limiting_a_task(operator: Operator, lab: Lab) -> None:
    lab.run(declared_limits.declare({"sync": [Limit(rate="10/s")]}))
    assert operator("tasks", "limit", "sync").lines == ["sync  10/s"]
    said = operator("tasks", "limit", "sync", "--concurrency", "2", "--key-rate", "1/m")
    assert said.lines == ["sync  2 at a time, per key 1/m"]
    (found,) = operator("tasks", "limit", "sync", "--json").json["limits"]
    assert (found["concurrency"], found["per_key"]["rate"]) == (2, "1/m")
    assert operator("tasks", "limit", "sync", "--none").lines == ["sync  10/s"]
    for wrong in (["--none", "--rate", "1/s"], ["--rate", "fast"], ["--burst", "2"]):
        operator("tasks", "limit", "sync", *wrong, code=2)
    operator("tasks", "limit", "a b", code=2)
