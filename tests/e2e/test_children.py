"""Children: how long they live, and what replaces them."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast import TaskStatus
from tests.support.deadline import until
from tests.support.sites import MakeSite
from tests.support.worker import alive

pytestmark = pytest.mark.mostly("sqlite")

PROGRAM = "tests.e2e.programs.control"


def test_a_child_is_replaced_after_so_many_tasks(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    worker = site.worker("-c", "2", "--max-tasks-per-child", "5", "--lease", "5").ready()
    handles = [site.send("who") for _ in range(60)]
    assert set(site.app.wait(handles, 20)) == {TaskStatus.COMPLETED}
    served = Counter(handle.get(1) for handle in handles)
    assert max(served.values()) == 5
    assert len(served) >= 12
    assert {handle.info().attempt for handle in handles} == {1}
    assert worker.stop() == 0


def test_every_task_may_have_a_process_of_its_own(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    site.worker("-c", "2", "--max-tasks-per-child", "1", "--lease", "5").ready()
    handles = [site.send("who") for _ in range(20)]
    assert len({handle.get(20) for handle in handles}) == 20


def test_a_child_is_replaced_when_it_has_grown(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    site.worker("-c", "1", "--max-memory-per-child", "150", "--lease", "5").ready()
    first = site.send("grow", 1).get(10)
    assert site.send("grow", 150).get(10) == first
    until(lambda: site.send("who").get(10) != first, within=5)


def test_nothing_is_left_behind(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    worker = site.worker("-c", "2", "--lease", "5").ready()
    site.send("who").get(10)
    family = worker.descendants()
    assert len(family) >= 3
    assert worker.stop() == 0
    assert not [pid for pid in family if alive(pid)]
