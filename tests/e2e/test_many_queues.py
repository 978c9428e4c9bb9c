"""A worker of a thousand queues: idle it costs next to nothing, and it serves every one of them."""

from __future__ import annotations

import pytest

from holdfast import TaskStatus
from tests.support.deadline import passed
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, cpu_seconds

QUEUES = [f"t{number}" for number in range(1_000)]


@pytest.fixture
def site(fresh_site: MakeSite) -> Site:
    return fresh_site("tests.e2e.programs.outcomes")


def start(site: Site, *arguments: str) -> WorkerProcess:
    return site.worker("-c", "1", "-q", ",".join(QUEUES), *arguments).ready()


@pytest.mark.alone
def test_it_is_idle_while_there_is_nothing_to_do(site: Site) -> None:
    worker = start(site)
    site.options(queue="t999").send("value", 1).get(20)
    began = cpu_seconds(worker.pid)
    passed(3.0)
    assert (cpu_seconds(worker.pid) - began) / 3.0 <= 0.02


def test_every_queue_is_served(site: Site) -> None:
    # Some before it starts, some after; the last as soon as the first.
    early = [site.options(queue=queue).send("value", 1) for queue in QUEUES[::100]]
    start(site)
    assert {handle.get(20) for handle in early} == {1}
    late = [site.options(queue=queue).send("value", 2) for queue in QUEUES[99::100]]
    assert {handle.get(20) for handle in late} == {2}


def test_it_stops_when_all_are_empty(site: Site) -> None:
    handles = [site.options(queue=queue).send("value", 1) for queue in ("t0", "t500", "t999")]
    worker = site.worker("-c", "1", "-q", ",".join(QUEUES), "--burst")
    assert worker.wait(20) == 0
    assert {handle.status() for handle in handles} == {TaskStatus.COMPLETED}
