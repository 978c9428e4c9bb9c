"""The scheduler: fires what is due, and is not stopped by what cannot be fired."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.runtime.supervisor.duties.scheduler import Scheduler
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.op import At
from holdfast.store.verbs import schedules, ticks, workers
from tests.support.schedules import register, schedule
from tests.support.stores import SECOND, Lab, on_each_engine

pytestmark = on_each_engine

FAR = 9 * 10**18 // 1000 * 1000
LATEST = 253_402_300_799_999_999


def scheduler(
    lab: Lab, *declared: ScheduleDefinition, worker: str = "w", poll: float = 1.0
) -> Scheduler:
    register(lab, worker)
    return Scheduler(
        lab.store, Outage(1.0), worker_id=worker, declared=declared, poll=poll, settle_every=0.0
    )


def runs(lab: Lab, name: str = "s") -> int:
    return lab.run(schedules.show(name)).run_count


def test_it_sleeps_until_the_next_tick(lab: Lab) -> None:
    duty = scheduler(lab, schedule(), poll=1000.0)
    assert duty.tick() == pytest.approx(20.0)
    lab.clock.advance(20)
    assert duty.tick() < 0.1
    assert runs(lab) == 1
    assert duty.tick() == pytest.approx(60.0)


def test_without_schedules_it_rests(lab: Lab) -> None:
    assert 0.7 < scheduler(lab).tick() < 1.3


def test_it_looks_often_while_a_tick_waits(lab: Lab) -> None:
    duty = scheduler(lab, schedule(overlap="wait"))
    for _ in range(3):
        lab.clock.advance(60)
        duty.tick()
    assert duty.tick() == pytest.approx(0.25)


def test_who_waits_for_a_long_run_keeps_no_other_waiting_and_nobody_busy(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more schedules than one look takes."""
    monkeypatch.setattr(ticks, "BATCH", 3)
    duty = scheduler(lab, *(schedule(name=f"s{number}", overlap="wait") for number in range(8)))
    for _ in range(4):
        # Several looks, because one takes three.
        lab.clock.advance(60)
        for _ in range(4):
            duty.tick()
    assert {runs(lab, f"s{number}") for number in range(8)} == {1}
    assert duty.tick() >= 0.25
    lab.sql(
        "UPDATE holdfast_tasks SET status = 'COMPLETED', ready = false, finished_at = created_at"
        " WHERE schedule_name = 's7'"
    )
    duty.tick()
    assert runs(lab, "s7") == 2


def test_many_that_are_due_are_fired_together(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    transactions = list[object]()
    attempt = lab.store.attempt

    def counted(make: Any) -> Any:
        transactions.append(make)
        return attempt(make)

    monkeypatch.setattr(lab.store, "attempt", counted)
    definitions = [schedule(name=f"s{number}", overlap="allow") for number in range(30)]
    duty = scheduler(lab, *definitions)
    duty.tick()
    lab.clock.advance(60)
    transactions.clear()
    duty.tick()
    assert len(transactions) == 2
    assert {runs(lab, each.name) for each in definitions} == {1}
    # One that cannot be fired keeps no other from it.
    lab.sql("UPDATE holdfast_schedules SET pattern = 'nonsense' WHERE schedule_name = 's3'")
    lab.clock.advance(60)
    duty.tick()
    lab.sql("UPDATE holdfast_schedules SET pattern = '* * * * *' WHERE schedule_name = 's3'")
    assert sorted({runs(lab, each.name) for each in definitions}) == [1, 2]
    assert runs(lab, "s3") == 1


def test_it_brings_into_force_and_stops(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.worker")
    mine, other = scheduler(lab, schedule()), scheduler(lab, worker="other")
    mine.tick()
    assert "schedule s, as our code declares it: new" in caplog.text
    lab.run(workers.stop("w"))
    other.tick()
    assert "schedule s has stopped: no live worker declares it any more" in caplog.text
    assert lab.run(schedules.show("s")).stopped_at is not None


def test_one_of_another_origin_is_said_once(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.run(schedules.add(schedule("@daily")))
    duty = scheduler(lab, schedule())
    duty.tick()
    duty.tick()
    assert caplog.text.count("was added at run time") == 1


def test_what_is_dropped_is_said(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    duty = scheduler(lab, schedule())
    duty.tick()
    lab.clock.advance(600)
    duty.tick()
    assert "schedule s: 9 tick(s) dropped" in caplog.text


def test_it_rests_while_the_store_is_away(lab: Lab) -> None:
    outage = Outage(1.0)
    outage.noted(StoreUnavailable("away"))
    duty = Scheduler(lab.store, outage, worker_id="w", declared=[], poll=1.0)
    assert duty.tick() == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("pattern", "nonsense"),
        ("pattern", "x" * 10_000),
        ("pattern", "@once 999999999999999999"),
        ("timezone", "Mars/Base"),
        ("timezone", "../../etc/passwd"),
        ("overlap", "perhaps"),
        ("missed", ""),
        ("max_missed", 0),
        ("payload", "{"),
        ("payload", '{"task_name":"a b","version":1}'),
        ("payload", "[" * 100_000),
        ("next_run_at", At(-62_135_596_800_000_000)),
        ("start_at", At(-62_135_596_800_000_000)),
        ("end_at", At(LATEST)),
        ("last_run_at", At(LATEST)),
        ("seen_hashes", "?"),
        ("run_count", 2**62),
        ("dropped_count", -5),
        ("version", -1),
    ],
)
def test_rows_by_hand_keep_no_other_from_firing(lab: Lab, column: str, value: object) -> None:
    duty = scheduler(lab)
    for name in ("bad", "s"):
        lab.run(schedules.add(schedule(name=name)))
    lab.sql(
        f"UPDATE holdfast_schedules SET {column} = :value WHERE schedule_name = 'bad'",
        value=value,
    )
    for _ in range(3):
        lab.clock.advance(60)
        duty.tick()
        duty.tick()
    assert runs(lab) >= 1
    unreadable: list[object] = []
    lab.run(schedules.list_schedules(unreadable))  # type: ignore[arg-type]
    assert lab.run(schedules.delete("bad")) is True


def test_times_beyond_all_years(lab: Lab) -> None:
    far = "'infinity'" if lab.engine == "postgresql" else "9223372036854775807"
    past = "'-infinity'" if lab.engine == "postgresql" else "-9223372036854775808"
    duty = scheduler(lab)
    for number, (column, time) in enumerate(
        (column, time)
        for column in ("next_run_at", "last_tick", "created_at", "end_at")
        for time in (far, past)
    ):
        lab.run(schedules.add(schedule(name=f"bad-{number}")))
        lab.sql(
            f"UPDATE holdfast_schedules SET {column} = {time} WHERE schedule_name = 'bad-{number}'"
        )
    lab.run(schedules.add(schedule()))
    lab.clock.advance(60)
    for _ in range(3):
        assert duty.tick() < 2
    assert runs(lab) == 1
    lab.clock.advance(SECOND)


def test_what_workers_declare_by_hand(lab: Lab) -> None:
    duty = scheduler(lab, schedule())
    duty.tick()
    for text in ("{", "[1]", '{"s":1}', "null", "[" * 100_000):
        register(lab, text[:5])
        lab.sql(
            "UPDATE holdfast_workers SET schedules = :t WHERE worker_id = :w", t=text, w=text[:5]
        )
    lab.clock.advance(20)
    duty.tick()
    assert runs(lab) == 1
