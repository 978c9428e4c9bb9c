"""What each duty of a worker does about a row that somebody's transaction holds (PostgreSQL)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any, LiteralString, cast

import pytest

from holdfast.core.outcome import Returned
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.duties.claimer import Claimer
from holdfast.runtime.supervisor.duties.evidence_recorder import EvidenceRecorder
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.duties.lease_keeper import LeaseKeeper
from holdfast.runtime.supervisor.duties.lock_watch import LockWatch
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state import blocked_rows
from holdfast.runtime.supervisor.state.blocked_rows import HeldRows
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.runtime.wire.messages import Job, Note
from holdfast.store.op import Op
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.verbs import claims
from tests.support.deadline import until
from tests.support.hands import Hands
from tests.support.locks import impatient, locked_rows, locked_table
from tests.support.stores import Kind, Lab, Labs
from tests.support.verbs import HOST, LEASE_US, WORKER

CLAIMED, PENDING, RUNNING = TaskStatus.CLAIMED, TaskStatus.PENDING, TaskStatus.RUNNING
COMPLETED = TaskStatus.COMPLETED
NOBODY_WAITS_S = 1.0


@pytest.fixture
def lab(labs: Labs) -> Iterator[Lab]:
    with labs.open(Kind.POSTGRES) as found:
        yield found


@pytest.fixture
def store(lab: Lab) -> Iterator[PostgresStore]:
    with impatient(lab) as store:
        yield store


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def claimer_of(store: PostgresStore, hands: Hands) -> Claimer:
    return Claimer(store, hands.ledger, Outage(1.0), worker_id=WORKER, hostname=HOST)


def test_a_claimed_task_is_left_out_of_the_start(
    lab: Lab, store: PostgresStore, hands: Hands
) -> None:
    """The others begin; it goes back to its queue once it is free."""
    lab.send_many(3)
    tasks = lab.claim(3).tasks
    hands.hold(*tasks)
    held, *others = tasks
    claimer = claimer_of(store, hands)
    began = monotonic()
    with locked_rows(lab, [held.id]):
        told: list[Job] = []

        def both_told() -> bool:
            claimer.tick()
            told.extend(hands.told())
            return len(told) == 2

        until(both_told, within=5)
        assert monotonic() - began < NOBODY_WAITS_S
        assert lab.statuses([task.id for task in tasks]) == [CLAIMED, RUNNING, RUNNING]
    hands.ledger.stop_accepting()
    until(lambda: claimer.tick() == 0.0 and lab.status(held.id) is PENDING, within=5)
    assert held.token in hands.tokens
    assert hands.tokens[held.token] == len(others)


def test_claimed_tasks_go_back_at_a_stop_but_for_the_held_one(
    lab: Lab, store: PostgresStore, hands: Hands
) -> None:
    lab.send_many(3)
    tasks = lab.claim(3).tasks
    hands.hold(*tasks)
    hands.ledger.stop_accepting()
    claimer = claimer_of(store, hands)
    ids = [task.id for task in tasks]
    with locked_rows(lab, ids[:1]):
        until(
            lambda: claimer.tick() == 0.0 and lab.statuses(ids) == [CLAIMED, PENDING, PENDING],
            within=NOBODY_WAITS_S * 2,
        )
        assert hands.ledger.held_up
        renewed = store.run(_renewal(tasks[0]))
        assert not renewed.held, "nobody holds a lease while it waits for a task"
    until(lambda: claimer.tick() == 0.0 and lab.status(ids[0]) is PENDING, within=5)
    assert hands.ledger.is_idle


def _renewal(task: ClaimedTask) -> Op[Any]:

    return claims.renew([task.token], lease_us=LEASE_US)


def test_a_lease_that_is_held_is_not_lost(lab: Lab, store: PostgresStore, hands: Hands) -> None:
    """The others are renewed in time, and it as soon as it is free."""
    held, other = lab.running(), lab.running()
    for task in (held, other):
        hands.ended(task, Returned("1"))
    keeper = LeaseKeeper(store, hands.ledger, Outage(1.0))
    with locked_rows(lab, [held.token], table="leases", key="token"):
        lab.clock.advance(LEASE_US / 1_000_000 + 1)
        began = monotonic()
        keeper.tick()
        keeper.tick()
        assert monotonic() - began < NOBODY_WAITS_S
        assert _expired(lab) == {held.token}
    keeper.tick()
    assert _expired(lab) == set()
    assert set(hands.tokens) == {held.token, other.token}


def _expired(lab: Lab) -> set[bytes]:
    return {row[0] for row in lab.sql("SELECT token FROM holdfast_leases WHERE expires_at < :now")}


def finisher_of(store: PostgresStore, hands: Hands) -> Finisher:
    nobody = cast("Any", None)
    return Finisher(
        store,
        hands.ledger,
        Outage(1.0),
        nobody,
        worker_id=WORKER,
        kill=lambda child: None,
        put_off=lambda: None,
    )


def test_an_end_is_written_without_the_held_one(
    lab: Lab, store: PostgresStore, hands: Hands
) -> None:
    tasks = [lab.running() for _ in range(4)]
    for task in tasks:
        hands.ended(task, Returned("1"))
    held, *others = [task.id for task in tasks]
    finisher = finisher_of(store, hands)
    with locked_rows(lab, [held]):
        began = monotonic()
        finisher.tick()
        assert lab.statuses([held, *others]) == [RUNNING] + [COMPLETED] * 3
        hands.ended(later := lab.running(), Returned("1"))
        finisher.tick()
        assert lab.status(later.id) is COMPLETED
        assert monotonic() - began < NOBODY_WAITS_S
        finisher.tick()
        assert hands.ledger.known_keys() == {tasks[0].key}
        assert hands.ledger.held_up
    until(lambda: finisher.tick() == 0.0 and lab.status(held) is COMPLETED, within=5)
    assert hands.ledger.is_idle
    assert len(lab.attempts(held)) == 1


def test_notes_of_a_held_task_wait_and_gather(lab: Lab, store: PostgresStore, hands: Hands) -> None:
    tasks = [lab.running() for _ in range(2)]
    held, other = (
        Assignment(slot, task, cast("Any", None), hands.child, 0, attempt=1, started=True)
        for slot, task in enumerate(tasks)
    )
    recorder = EvidenceRecorder(store, hands.ledger, Outage(1.0))
    with locked_rows(lab, [held.task.id]):
        for run in (held, other):
            recorder.noted(run, Note(run.slot, progress="1", output="a"))
        began = monotonic()
        recorder.tick()
        recorder.noted(held, Note(held.slot, progress="2", output="b"))
        recorder.tick()
        assert monotonic() - began < NOBODY_WAITS_S / 2
        assert lab.task(other.task.id).output == "a"
        assert lab.task(held.task.id).output is None
    recorder.tick()
    assert lab.task(held.task.id).output == "ab"
    assert lab.task(held.task.id).progress == "2"


@pytest.mark.parametrize("what", ["task", "lease"])
def test_the_log_names_who_holds_a_row(
    lab: Lab,
    store: PostgresStore,
    what: blocked_rows.Kind,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocked_rows, "SAY_AFTER", 0.0)
    task = lab.running()
    key, table, column = (
        (task.id, "tasks", "id") if what == "task" else (task.token, "leases", "token")
    )
    rows = HeldRows()
    watch = LockWatch(store, rows)
    with (
        caplog.at_level(logging.WARNING, "holdfast.worker"),
        locked_rows(lab, [key], table=table, key=column) as somebody,
    ):
        somebody.execute("SET application_name = 'reporting'")
        pid = somebody.info.backend_pid
        rows.held(what, key, "that row")
        watch.tick()
        watch.tick()
    (said,) = caplog.messages
    assert f"backend pid {pid} (" in said
    assert "application_name 'reporting'" in said
    assert "idle in transaction" in said
    assert "in a transaction since 20" in said


def test_the_log_names_who_may_hold_a_unique_key(
    lab: Lab,
    store: PostgresStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that is not committed cannot be seen, but who writes can."""
    monkeypatch.setattr(blocked_rows, "SAY_AFTER", 0.0)
    task = lab.running()
    rows = HeldRows()
    with caplog.at_level(logging.WARNING, "holdfast.worker"), locked_rows(lab, [task.id]) as other:
        lab.clock.move_to(2**52)
        pid = other.info.backend_pid
        rows.held("unique key", b"a", "the unique key 'a'")
        LockWatch(store, rows).tick()
    (said,) = caplog.messages
    assert f"backend pid {pid} (" in said


@pytest.mark.parametrize("table", ["tasks", "leases", "task_attempts"])
@pytest.mark.parametrize("mode", ["SHARE", "ACCESS EXCLUSIVE"])
def test_the_log_names_who_has_locked_a_table(
    lab: Lab,
    store: PostgresStore,
    table: str,
    mode: LiteralString,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it waits for no table to find that out."""
    monkeypatch.setattr(blocked_rows, "SAY_AFTER", 0.0)
    task = lab.running()
    rows = HeldRows()
    with (
        caplog.at_level(logging.WARNING, "holdfast.worker"),
        locked_table(lab, table, mode) as other,
    ):
        rows.held("task", task.id, "that row")
        began = monotonic()
        LockWatch(store, rows).tick()
        assert monotonic() - began < NOBODY_WAITS_S / 2
        pid = other.info.backend_pid
    (said,) = caplog.messages
    assert f"backend pid {pid} (" in said
    assert f"which has locked holdfast_{table} (" in said
    assert "nothing else waits" not in said


def test_a_claim_that_a_table_lock_holds_up_is_told(
    lab: Lab,
    store: PostgresStore,
    hands: Hands,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocked_rows, "SAY_AFTER", 0.0)
    lab.send_many(1)
    claimer = claimer_of(store, hands)
    watch = LockWatch(store, hands.ledger.held_rows)
    with (
        caplog.at_level(logging.WARNING, "holdfast.worker"),
        locked_table(lab, "leases", "SHARE") as other,
    ):

        def is_said() -> bool:
            claimer.tick()
            watch.tick()
            return bool(caplog.messages)

        until(is_said, within=5)
        pid = other.info.backend_pid
    said = caplog.messages[0]
    assert said.startswith("a table that claims need has been held")
    assert f"backend pid {pid} (" in said
    assert "holdfast_leases" in said

    def is_claimed() -> bool:
        claimer.tick()
        return bool(hands.told())

    until(is_claimed, within=5)
    assert not hands.ledger.held_rows.due()
