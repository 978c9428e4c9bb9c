"""Recovery waits until the owners of leases had their chance, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from holdfast.core.identity import new_id, short_id
from holdfast.core.status import TaskStatus
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.maintenance import Maintenance
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.protocol import Store
from holdfast.store.sqlite import opener
from holdfast.store.verbs import resubmits, steering, timing
from tests.support.locks import impatient, locked_rows
from tests.support.stores import SECOND, Kind, Lab, Labs
from tests.support.verbs import LEASE_US, WORKER, step
from tests.support.workflows import begin, plan_of, status
from tests.support.workflows import step as step_of

PENDING, RUNNING = TaskStatus.PENDING, TaskStatus.RUNNING

LEASE = LEASE_US / 1_000_000
STEP = 0.05


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    labs = Labs(lambda: request.getfixturevalue("postgres_server"), tmp_path)
    with labs.open(Kind.SQLITE_MEMORY) as lab:
        yield lab


class Reaper:
    """The maintenance of one worker, on the store's own clock."""

    def __init__(self, lab: Lab, lease: float = 2.0, store: Store | None = None) -> None:
        self._lab = lab
        self.duty = Maintenance(
            store or lab.store,
            WorkerOptions(lease=lease),
            Outage(1.0),
            promoted=lambda: None,
            clock=lambda: lab.clock.advance(0) / 1_000_000,
        )

    def work(self, seconds: float, step: float = STEP) -> None:
        """Look after the store for so long."""
        for _ in range(round(seconds / step)):
            self._lab.clock.advance(step)
            self.duty.tick()


def test_what_a_vanished_worker_had_is_recovered_within_two_seconds(lab: Lab) -> None:
    reaper = Reaper(lab)
    reaper.work(1)
    task = lab.running()
    reaper.work(LEASE)
    assert lab.task(task.id).status is TaskStatus.RUNNING
    reaper.work(2)
    assert lab.task(task.id).status is TaskStatus.PENDING


def test_what_is_recovered_is_said(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    reaper = Reaper(lab)
    task = lab.running(task_name="mail.send")
    reaper.work(LEASE + 2)
    (line,) = [r.getMessage() for r in caplog.records if r.name == "holdfast.task"]
    assert line == (
        f"mail.send {short_id(task.id)} recovered after attempt 1: its worker vanished: the lease "
        "ran out; runs again at once (crash 1 of 3)"
    )


def test_no_name_of_a_worker_forges_a_line(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    for evil in ("w\nERROR forged", "w\x1b[2J"):
        lab.running()
        lab.sql(
            "UPDATE holdfast_leases SET worker_id = :evil WHERE worker_id = :worker",
            evil=evil,
            worker=WORKER,
        )
    Reaper(lab).work(LEASE + 2)
    assert caplog.text.count(" vanished: 1 of its tasks recovered") == 2
    assert all(message.isprintable() for message in caplog.messages)


def test_what_expires_is_counted(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "holdfast")
    for _ in range(3):
        lab.send(good_until=lab.clock.now + 1_000_000)
    Reaper(lab).work(4)
    assert "3 task(s) expired" in caplog.text
    assert caplog.text.count("expired") == 1


@pytest.mark.parametrize("lease", [1.0, 2.0, 30.0])
def test_after_an_outage_a_keeper_has_its_time(lab: Lab, lease: float) -> None:
    reaper = Reaper(lab, lease)
    task = lab.running()
    reaper.work(LEASE / 2)
    lab.clock.advance(LEASE)  # the store is away
    reaper.work(2.4)
    assert lab.task(task.id).status is TaskStatus.RUNNING
    reaper.work(max(lease / 3, 1.0))
    assert lab.task(task.id).status is TaskStatus.PENDING


def test_a_reaper_that_has_just_started_does_not_wait(lab: Lab) -> None:
    first = Reaper(lab)
    task = lab.running()
    first.work(LEASE - 0.1)
    Reaper(lab).work(1)
    assert lab.task(task.id).status is TaskStatus.PENDING


def test_a_reaper_that_starts_after_an_outage_leaves_the_keeper_its_time(lab: Lab) -> None:
    first = Reaper(lab)
    task = lab.running()
    first.work(LEASE / 2)
    lab.clock.advance(LEASE)
    first.work(1)
    Reaper(lab).work(1)
    assert lab.task(task.id).status is TaskStatus.RUNNING
    Reaper(lab).work(1)
    assert lab.task(task.id).status is TaskStatus.PENDING


def test_a_reaper_that_slept_through_everything_waits_too(lab: Lab) -> None:
    first, sleeper = Reaper(lab), Reaper(lab)
    task = lab.running()
    sleeper.work(LEASE / 2)
    lab.clock.advance(LEASE)
    first.work(1)
    sleeper.work(1)
    assert lab.task(task.id).status is TaskStatus.RUNNING


def test_a_part_that_fails_costs_the_others_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reaper = Reaper(lab)
    reaper.work(1)
    later = lab.send(delay_us=SECOND)
    late = lab.send(good_until=lab.clock.now + SECOND)
    running = lab.running(queue_name="another")
    with monkeypatch.context() as broken:
        broken.setattr(timing, "next_due", lambda *args, **more: 1 / 0)
        reaper.work(LEASE + 2)
        assert lab.status(later) is TaskStatus.SCHEDULED
        assert lab.status(late) is TaskStatus.EXPIRED
        assert lab.status(running.id) is PENDING
    # It is said, and then tried ever more seldom.
    assert 1 < caplog.text.count("promote failed; it is tried again in") < LEASE
    reaper.work(60)
    assert lab.status(later) is PENDING


def test_a_workflow_that_cannot_go_on_keeps_no_other_waiting(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    odd, late = plan_of(step_of()), plan_of(step_of(), deadline_us=1)
    for plan in (odd, late):
        begin(lab, plan)
    lab.run(resubmits.begin(odd.id))
    lab.sql(
        "UPDATE holdfast_workflows SET resubmitted_at = NULL WHERE workflow_id = :id", id=odd.id
    )
    lab.run(steering.pause(late.id))
    Reaper(lab).work(3)
    assert status(lab, late).is_terminal
    (said,) = (r.getMessage() for r in caplog.records if "cannot go on" in r.getMessage())
    assert str(UUID(bytes=odd.id)) in said
    assert "resubmitted_at is missing: resubmit it again" in said


def test_the_wal_of_a_file_is_kept_short(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a library that must not do it by itself."""
    monkeypatch.setattr(opener, "is_vulnerable", lambda version: True)
    with labs.open(Kind.SQLITE3_FILE) as lab:
        reaper = Reaper(lab)
        lengths = set()
        for _ in range(5):
            for _ in range(40):
                lab.send(args=f'["{"x" * 4_000}"]')
            reaper.work(2)
            lengths.add(Path(f"{lab.path}-wal").stat().st_size)
    # What was copied is written over, so it grows once and not five times.
    assert max(lengths) < 1.5 * min(lengths)


# Many workers.


def test_the_fleet_is_stamped_by_whoever_finds_it_due(lab: Lab) -> None:
    """Not by every worker every second: five of them write as often as one."""
    lab.send()
    lab.start(*lab.claim(lease_us=3600 * SECOND).tasks)
    reapers = [Reaper(lab, lease=30.0) for _ in range(5)]
    stamps = set()
    seconds = 12
    for turn in range(seconds * 5):
        # One after the other, so that each looks at a moment of its own.
        lab.clock.advance(0.2)
        reapers[turn % 5].duty.tick()
        stamps |= {row[0] for row in lab.sql(STAMPED)}
    assert seconds / 5.0 <= len(stamps) <= seconds


STAMPED = "SELECT at FROM holdfast_meta WHERE name = 'maintained_at'"


# Rows that somebody holds (PostgreSQL).


@pytest.fixture
def postgres_lab(labs: Labs) -> Iterator[Lab]:
    with labs.open(Kind.POSTGRES) as found:
        yield found


def test_a_lease_that_somebody_held_is_left_to_its_owner_for_a_while(postgres_lab: Lab) -> None:
    """Its owner could not renew it; as soon as it is free he does."""
    lab = postgres_lab
    with impatient(lab) as store:
        reaper = Reaper(lab, store=store)
        reaper.work(1)
        held, other = lab.running(), lab.running()
        with locked_rows(lab, [held.token], table="leases", key="token"):
            reaper.work(LEASE + 2, step=0.2)
            assert lab.statuses([held.id, other.id]) == [RUNNING, PENDING]
        reaper.work(2, step=0.2)
        assert lab.status(held.id) is RUNNING
        reaper.work(2, step=0.2)
        assert lab.status(held.id) is PENDING, "there is no owner"


def test_a_held_step_delays_no_other_expiry_or_recovery(postgres_lab: Lab) -> None:
    """Somebody adds to a workflow and does not commit: only what its step waits for waits."""
    lab = postgres_lab
    workflow = new_id()
    soon = lab.clock.now + 3 * SECOND
    late = step(workflow, good_until=soon)
    after_late = step(workflow, late.id)
    lab.submit(late, after_late)
    plain = lab.send(good_until=soon)
    with impatient(lab) as store:
        reaper = Reaper(lab, store=store)
        reaper.work(1, step=0.2)
        running = lab.running(queue_name="another")
        with locked_rows(lab, [after_late.id]):
            reaper.work(LEASE + 2, step=0.2)
            assert lab.status(plain) is TaskStatus.EXPIRED
            assert lab.status(late.id) is PENDING
            assert lab.status(running.id) is PENDING
        reaper.work(2, step=0.2)
        assert lab.status(late.id) is TaskStatus.EXPIRED
        assert lab.status(after_late.id) is TaskStatus.CANCELLED
