"""An application that is heavy, and has threads: the supervisor stays small, tasks run."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import TaskStatus
from tests.support.site import Site
from tests.support.sites import MakeSite


@pytest.fixture
def site(fresh_site: MakeSite) -> Site:
    return fresh_site("tests.faults.programs.heavy")


def test_the_supervisor_stays_small(site: Site) -> None:
    worker = site.worker("-c", "1", "--lease", "5").ready(30)
    handles = [site.send("weigh") for _ in range(20)]
    assert {handle.get(30) for handle in handles} == {300_000_000}
    # A thread does not survive a fork: the child has its own, from an import of its own.
    assert site.send("ticks").get(30) is True
    assert _resident_mb(worker.pid) < 80
    assert max(map(_resident_mb, worker.descendants())) > 300
    assert worker.stop() == 0
    assert handles[0].status() is TaskStatus.COMPLETED


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
