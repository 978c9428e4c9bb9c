"""Workers are killed while limits hold back the load: no limit is passed, and no slot is lost.

How many were held at a time is counted from the record that the database keeps of each row's
changes, not from the counters of limits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast import Limit, TaskHandle, TaskStatus
from holdfast.store.verbs import limits
from tests.faults import history
from tests.faults.storm import Storm
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite

PROGRAM = "tests.faults.programs.limited"
TENANTS = ("acme", "bolt", "cord")
WHOLE_QUEUE = 4
Handles = list[TaskHandle[Any]]


def run(site: Site, *, tasks: int, kills: int, workers: int, children: int, seed: int) -> None:
    """A third under a limit of its task, a third under keys and its queue, a third at a rate."""
    site.app.control.queues.limit("tenants", Limit(concurrency=WHOLE_QUEUE))
    storm = Storm(site, lease=3, seed=seed, workers=workers, children=children)
    each = tasks // 3
    narrow: Handles = site.module.narrow.send_many([(0.01,)] * each)
    synced: dict[str, Handles] = {
        tenant: site.module.sync.send_many([(tenant, 0.01)] * (each // len(TENANTS)))
        for tenant in TENANTS
    }
    of_tenants = [handle for some in synced.values() for handle in some]
    paced: Handles = site.module.paced.send_many([(0.0,)] * each)
    everything = [*narrow, *of_tenants, *paced]
    for number in range(kills):
        wanted = (number + 1) * len(everything) // (kills + 2)
        until(partial(done, site, wanted), within=120, what=f"{wanted} tasks to be done")
        storm.strike()
    site.app.wait(everything, timeout=240)
    storm.calm()
    for handle in everything:
        assert handle.status() is TaskStatus.COMPLETED, handle.info()
    history.check_rows(site, everything)
    history.check_rest(site)
    assert history.most_held(site, narrow) == 3
    assert history.most_held(site, of_tenants) <= WHOLE_QUEUE
    for some in synced.values():
        assert history.most_held(site, some) <= 2
    until(partial(counters_agree, site), what="every counter to agree with the rows")


def done(site: Site, wanted: int) -> bool:
    return site.ledger.count("done") >= wanted


def counters_agree(site: Site) -> bool:
    return site.run(limits.audit) == []


@pytest.mark.timeout(180)
def test_four_kills_under_limits(fresh_site: MakeSite) -> None:
    run(fresh_site(PROGRAM), tasks=240, kills=4, workers=2, children=3, seed=5)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [6, 7])
def test_eight_workers_and_twenty_kills_under_limits(fresh_site: MakeSite, seed: int) -> None:
    run(fresh_site(PROGRAM), tasks=3000, kills=20, workers=8, children=2, seed=seed)
