"""Recovery waits until the owners of leases had their chance, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.identity import short_id
from holdfast.core.status import TaskStatus
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.maintenance import Maintenance
from holdfast.runtime.supervisor.outage import Outage
from tests.support.stores import Kind, Lab, Labs
from tests.support.verbs import LEASE_US

LEASE = LEASE_US / 1_000_000
STEP = 0.05


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    labs = Labs(lambda: request.getfixturevalue("postgres_server"), tmp_path)
    with labs.open(Kind.SQLITE_MEMORY) as lab:
        yield lab


class Reaper:
    """The maintenance of one worker, on the store's own clock."""

    def __init__(self, lab: Lab, lease: float = 2.0) -> None:
        self._lab = lab
        self.duty = Maintenance(
            lab.store,
            WorkerOptions(lease=lease),
            Outage(1.0),
            promoted=lambda: None,
            clock=lambda: lab.clock.advance(0) / 1_000_000,
        )

    def work(self, seconds: float) -> None:
        """Look after the store for so long."""
        for _ in range(round(seconds / STEP)):
            self._lab.clock.advance(STEP)
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
