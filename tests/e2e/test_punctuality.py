"""Delayed tasks and retries start at their time, not at the next poll."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest

from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite

pytestmark = pytest.mark.alone

TIMES = 5
USUAL = 0.1
WORST = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.timing")
    site.worker("-c", "2", "--lease", "5").ready()
    site.send("stamp").wait(10)
    return site


def test_a_delayed_task_starts_at_its_time(site: Site) -> None:
    late: list[float] = []
    for _ in range(TIMES):
        handle = site.options(delay=0.4).send("stamp")
        wanted = time.monotonic() + 0.4
        handle.wait(10)
        (line,) = site.ledger.lines("stamp", handle.id)
        late.append(line.at - wanted)
    assert min(late) > -0.05
    assert median(late) < USUAL, late
    assert max(late) < WORST, late


def test_a_retry_starts_at_its_time(site: Site) -> None:
    late: list[float] = []
    for _ in range(TIMES):
        handle = site.send("stamp", fail_first=True)
        handle.wait(10)
        first, second = site.ledger.lines("stamp", handle.id)
        late.append(second.at - first.at - 0.3)
    assert min(late) > -0.05
    assert median(late) < USUAL, late
    assert max(late) < WORST, late


def test_a_task_that_was_put_forward_starts_at_its_new_time(site: Site) -> None:
    handle = site.options(delay=3600).send("stamp")
    site.app.control.tasks.reschedule(handle, when=0.3)
    wanted = time.monotonic() + 0.3
    until(lambda: site.ledger.lines("stamp", handle.id), within=5)
    (line,) = site.ledger.lines("stamp", handle.id)
    assert -0.05 < line.at - wanted < WORST


def test_from_the_start_of_a_worker_to_its_first_task(fresh_site: MakeSite, tmp_path: Path) -> None:
    site = fresh_site("tests.e2e.programs.control")
    # Compiled modules are kept, as they are wherever a package is installed; the first worker
    # compiles them, and is not counted.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    took: list[float] = []
    for number in range(4):
        site.send("mark", f"first-{number}")
        began = time.monotonic()
        with site.worker("-c", "2", "--lease", "5", **compiled):
            site.begun(f"first-{number}")
        (line,) = site.ledger.lines("begun", f"first-{number}")
        took.append(line.at - began)
    assert min(took[1:]) < 1.0, took
