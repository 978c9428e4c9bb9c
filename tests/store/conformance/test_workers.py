"""Workers and their counters: registration, snapshots, statistics per minute."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import UnreadableRow
from holdfast.core.records import WorkerRecord, WorkerState
from holdfast.store.verbs import workers
from tests.support.stores import MORNING, SECOND, Lab

MINUTE = 60 * SECOND


def register(lab: Lab, worker_id: str, **changed: Any) -> workers.Registered:
    facts: dict[str, Any] = {
        "hostname": "host",
        "pid": 7,
        "version": "1.0",
        "lease_us": 30 * SECOND,
        "queues": '["q"]',
        "known": '["t@1"]',
        "settings": '{"concurrency":4}',
    }
    return lab.run(workers.register(worker_id, **{**facts, **changed}))


def test_a_worker_registers_and_reports(lab: Lab) -> None:
    assert register(lab, "w-1") == (None, MORNING)
    now = lab.clock.advance(10)
    assert register(lab, "w-1", queues='["a","b"]', settings="{}") == (None, MORNING)
    (worker,) = lab.run(workers.list_workers())
    assert worker == WorkerRecord(
        worker_id="w-1",
        hostname="host",
        pid=7,
        version="1.0",
        started_at=MORNING,
        seen_at=now,
        stopped_at=None,
        lease_us=30 * SECOND,
        queues='["a","b"]',
        known='["t@1"]',
        settings="{}",
        command=None,
    )


def test_workers_are_listed_the_newest_first(lab: Lab) -> None:
    for name in ("b", "a"):
        register(lab, name)
    lab.clock.advance(1)
    register(lab, "c")
    assert [worker.worker_id for worker in lab.run(workers.list_workers())] == ["c", "a", "b"]


def test_a_worker_says_goodbye_once(lab: Lab) -> None:
    register(lab, "w-1")
    now = lab.clock.advance(5)
    lab.run(workers.stop("w-1"))
    lab.clock.advance(5)
    lab.run(workers.stop("w-1"))
    lab.run(workers.stop("nobody"))
    (worker,) = lab.run(workers.list_workers())
    assert worker.stopped_at == worker.seen_at == now


def test_a_worker_hears_an_operators_order_when_it_reports(lab: Lab) -> None:
    register(lab, "w-1")
    told = lab.run(workers.give_order(["w-1", "nobody"], workers.WorkerOrder.STOP))
    assert told == {"w-1": True, "nobody": False}
    assert register(lab, "w-1").command == "stop"
    assert lab.run(workers.read_order("w-1")) is workers.WorkerOrder.STOP


def test_an_order_is_obeyed_when_the_worker_has_stopped(lab: Lab) -> None:
    register(lab, "w-1")
    assert lab.run(workers.read_order("w-1")) is None
    lab.run(workers.give_order(["w-1"], workers.WorkerOrder.DRAIN))
    lab.run(workers.stop("w-1"))
    assert lab.run(workers.read_order("w-1")) is None
    assert lab.run(workers.give_order(["w-1"], workers.WorkerOrder.DRAIN)) == {"w-1": False}


@pytest.mark.parametrize("text", ["", "explode", "STOP", "x" * 100_000])
def test_what_is_no_order_is_none(lab: Lab, text: str) -> None:
    register(lab, "w-1")
    lab.sql("UPDATE holdfast_workers SET command = :said", said=text)
    assert lab.run(workers.read_order("w-1")) is None


def test_what_each_child_uses_is_kept_until_the_worker_is_seen_again(lab: Lab) -> None:
    said = '[{"name":"process-1","pid":7,"memory_mb":27.5,"cpu_percent":null}]'
    register(lab, "w-1", children=said)
    (worker,) = lab.run(workers.list_workers())
    assert worker.children == said
    register(lab, "w-1")
    (worker,) = lab.run(workers.list_workers())
    assert worker.children is None


def test_children_that_make_no_sense_make_a_row_unreadable(lab: Lab) -> None:
    register(lab, "w-1", children='[{"name":"process-1"}]')
    unreadable: list[UnreadableRow] = []
    assert lab.run(workers.list_workers(unreadable)) == []
    assert "children" in str(unreadable[0])


def test_a_snapshot_keeps_every_setting_and_figure(lab: Lab) -> None:
    state = WorkerState(
        worker_id="w-1",
        hostname="host",
        pid=7,
        processes=4,
        queues='["q"]',
        tasks_running=3,
        tasks_claimed=9,
        worker_started_at=MORNING - 5,
        memory_usage_mb=12.5,
        memory_percent=0.25,
        cpu_percent=99.5,
        max_claim_batch=512,
        max_claim_per_worker=64,
        cluster_wide_cap=100,
        queue_priorities='{"q":1}',
        queue_max_concurrency='{"q":2}',
        recovery_config='{"lease":30}',
        snapshot_at=MORNING,
    )
    lab.run(workers.snapshot(state))
    assert lab.run(workers.states("w-1")) == [state]


def test_what_was_not_measured_is_absent(lab: Lab) -> None:
    plain = WorkerState("w-1", "host", 7, 1, "[]", 0, 0, MORNING, snapshot_at=MORNING)
    lab.run(workers.snapshot(plain))
    assert lab.run(workers.states("w-1")) == [plain]


def test_the_time_series_of_one_worker_the_newest_first(lab: Lab) -> None:
    for _ in range(4):
        for name in ("w-1", "w-2"):
            lab.run(workers.snapshot(WorkerState(name, "h", 1, 1, "[]", 0, 0, MORNING)))
        lab.clock.advance(1)
    found = lab.run(workers.states("w-1", since=MORNING + SECOND, limit=2))
    assert [state.snapshot_at for state in found] == [MORNING + 3 * SECOND, MORNING + 2 * SECOND]
    assert len(lab.run(workers.states("w-1"))) == 4


def test_the_newest_snapshot_of_each_worker(lab: Lab) -> None:
    for pid in (1, 2):
        for name in ("w-1", "w-2", "w-3"):
            lab.run(workers.snapshot(WorkerState(name, "h", pid, 1, "[]", 0, 0, MORNING)))
        lab.clock.advance(1)
    found = lab.run(workers.latest_states(["w-1", "w-2", "nobody"]))
    assert {name: state.pid for name, state in found.items()} == {"w-1": 2, "w-2": 2}
    assert lab.run(workers.latest_states([])) == {}
