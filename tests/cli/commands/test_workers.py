"""`workers`: who is there, and what each said last."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from holdfast.core.records import WorkerState
from holdfast.store.verbs import workers
from holdfast.store.verbs.audit_entries import entries
from tests.cli.conftest import Operator, join
from tests.support.stores import Lab


def test_no_workers(operator: Operator) -> None:
    said = operator("workers", "list")
    assert said.err.startswith("no worker is running on this database (")
    assert operator("workers", "list", "--json").json == {"workers": []}


def tell(lab: Lab, name: str) -> None:
    """What a worker says about itself now and then."""
    lab.run(
        workers.snapshot(
            WorkerState(
                worker_id=name,
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


def test_workers(operator: Operator, lab: Lab) -> None:
    join(lab, "silent")
    join(lab, "stopped")
    tell(lab, "silent")
    tell(lab, "stopped")
    lab.run(workers.stop("stopped"))
    lab.clock.advance(40)
    join(lab, "alive")
    tell(lab, "alive")
    rows = {row[0]: row[1:] for row in operator("workers", "list").rows}
    began, now = "2030-03-17T17:46:40Z", "2030-03-17T17:47:20Z"
    # Numbers have their age, and a worker that is silent has none that are true.
    assert rows == {
        "alive": ["alive", now, "3", "7", "62MB", "12%", now, "host-1", "42", now, "1.0", "a,b"],
        "silent": ["silent", began, *"-----", "host-1", "42", began, "1.0", "a,b"],
    }
    rows = {row[0]: row[1:] for row in operator("workers", "list", "--all").rows}
    assert rows["stopped"][:7] == ["stopped", began, *"-----"]
    (alive,) = [
        worker
        for worker in operator("workers", "list", "--json").json["workers"]
        if worker["state"] == "alive"
    ]
    assert alive["queues"] == ["a", "b"]
    assert alive["tasks"] == ["t@1"]
    assert alive["settings"] == {"processes": 2}
    assert (alive["lease"], alive["tasks_running"]) == (30.0, 3)


def test_a_worker_that_cannot_be_read_hides_no_other(operator: Operator, lab: Lab) -> None:
    for name in ("bad", "good"):
        join(lab, name)
    lab.sql("UPDATE holdfast_workers SET known = 'nope' WHERE worker_id = 'bad'")
    said = operator("workers", "list")
    assert said.rows[0][0] == "good"
    wrong = "known is not the JSON that belongs there"
    assert said.lines[2:] == [f"unreadable  row bad of holdfast_workers: {wrong}"]
    found = operator("workers", "list", "--json").json
    assert [worker["worker_id"] for worker in found["workers"]] == ["good"]
    assert [row["key"] for row in found["unreadable"]] == ["bad"]


def test_orders(operator: Operator, lab: Lab) -> None:
    for name in ("aa11", "aa22", "bb33"):
        join(lab, name)
    lab.run(workers.stop("bb33"))
    said = operator("workers", "drain", "aa1", "bb33")
    assert said.lines == ["aa11  has been asked to drain", "bb33  has stopped already"]
    assert {row[0]: row[1] for row in operator("workers", "list").rows} == {
        "aa11": "draining",
        "aa22": "alive",
    }
    assert "may be any of 2 workers" in operator("workers", "stop", "aa", code=2).err
    assert "begins with zz" in operator("workers", "stop", "zz", code=1).err
    assert "which workers?" in operator("workers", "stop", code=2).err
    assert "give --yes" in operator("workers", "stop", "--all", code=2).err
    told = operator("workers", "stop", "--all", "--interrupt", "-y", "--json").json
    assert {row["worker_id"]: row["told"] for row in told["workers"]} == {
        "aa11": True,
        "aa22": True,
    }
    commands = {w["worker_id"]: w["command"] for w in _listed(operator)}
    assert commands == {"aa11": "interrupt", "aa22": "interrupt"}
    # Nobody is there to obey, so nobody is waited for.
    lab.clock.advance(31)
    join(lab, "cc44")
    assert "has not been seen" in operator("workers", "stop", "aa11", "--wait", code=1).err
    said = operator("workers", "stop", "aa11", "cc44", code=1)
    assert said.lines == [
        "aa11  has not been seen for 31 s; nobody hears this",
        "cc44  has been asked to stop",
    ]
    assert "1 worker is gone, or cut off" in said.err
    told = operator("workers", "stop", "aa11", "--json", code=1).json
    assert told == {"workers": [{"worker_id": "aa11", "told": True, "silent": True}]}
    audit = lab.run(entries(limit=9))
    assert [(entry.verb, entry.count) for entry in audit] == [
        ("stop", 1),
        ("stop", 2),
        ("stop", 1),
        ("interrupt", 2),
        ("drain", 1),
    ]


def test_a_worker_whose_process_is_gone(operator: Operator, lab: Lab) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    assert ended.wait() == 0
    join(lab, "killed")
    join(lab, "here")
    host = "UPDATE holdfast_workers SET hostname = :host, pid = :pid WHERE worker_id = :name"
    lab.sql(host, host=socket.gethostname(), pid=ended.pid, name="killed")
    lab.sql(host, host=socket.gethostname(), pid=os.getpid(), name="here")
    said = operator("workers", "stop", "killed", "here", code=1)
    assert said.lines == [
        f"killed  is gone: there is no process {ended.pid} on this machine; nobody hears this",
        "here  has been asked to stop",
    ]


def _listed(operator: Operator) -> Any:
    return operator("workers", "list", "--json").json["workers"]


def test_waiting_for_those_that_hear_it(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed keeps nobody from waiting for the others, and stops no deployment."""
    join(lab, "killed")
    lab.clock.advance(31)
    join(lab, "live")
    looks: list[float] = []

    def stop_at_the_second(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            lab.run(workers.stop("live"))

    monkeypatch.setattr(time, "sleep", stop_at_the_second)
    said = operator("workers", "drain", "--all", "-y", "--wait")
    assert len(looks) == 2
    assert "killed is not waited for: it has not been seen for its lease" in said.err
    assert "live has stopped" in said.err
