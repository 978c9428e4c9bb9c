"""Children, supervisors and whole trees are killed under load, and the books must balance."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast import TaskHandle
from tests.faults import history
from tests.faults.storm import Storm
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite

PROGRAM = "tests.faults.programs.load"


def run(site: Site, *, tasks: int, kills: int, seconds: float, lease: float, seed: int) -> None:
    storm = Storm(site, lease=lease, seed=seed)
    names = list(range(tasks))
    handles: list[TaskHandle[Any]] = site.module.step.send_many([(n, seconds) for n in names])
    for number in range(kills):
        wanted = (number + 1) * tasks // (kills + 2)
        until(partial(_done, site, wanted), within=120, what=f"{wanted} tasks to be done")
        storm.strike()
    site.app.wait(handles, timeout=120)
    storm.calm()
    history.check_rows(site, handles)
    history.check_runs(site, handles, storm.kills, names=names, lease=lease)
    history.check_rest(site)


def _done(site: Site, wanted: int) -> bool:
    return site.ledger.count("done") >= wanted


def test_three_kills_in_150_tasks(fresh_site: MakeSite) -> None:
    run(fresh_site(PROGRAM), tasks=150, kills=3, seconds=0.02, lease=3, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_kills_in_two_thousand_tasks(fresh_site: MakeSite, seed: int) -> None:
    run(fresh_site(PROGRAM), tasks=2000, kills=20, seconds=0.02, lease=5, seed=seed)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_twenty_kills_among_tasks_that_share_windows(fresh_site: MakeSite) -> None:
    run(fresh_site(PROGRAM), tasks=6000, kills=20, seconds=0.0, lease=5, seed=4)
