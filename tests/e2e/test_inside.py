"""Inside a task: sending, waiting and operating, through the supervisor."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast import TaskStatus
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.executors")
    site.worker("-c", "2", "--lease", "5").ready()
    return site


@pytest.mark.parametrize("name", ["parent", "parent-thread", "parent-async"])
def test_a_task_sends_another_and_waits_for_it(site: Site, name: str) -> None:
    handle = site.send(name, 21)
    child, value = handle.get(20)
    assert value == 42
    info = site.app.handle(child).info()
    assert info.parent_id == handle.id
    assert info.root_id == handle.id
    assert UUID(child) == info.id


def test_many_at_once(site: Site) -> None:
    assert site.send("parent-of-many", 100).get(30) == sum(range(0, 200, 2))


def test_the_failure_of_another_task(site: Site) -> None:
    assert site.send("parent-of-failure").get(20) == "ValueError: negative"


def test_what_an_operator_does(site: Site) -> None:
    assert site.send("operator").get(20) == ["SCHEDULED", "CANCELLED", "['a task']"]


def test_many_tasks_that_wait_for_others(site: Site) -> None:
    handles = [site.send("parent-async", number) for number in range(20)]
    assert set(site.app.wait(handles, 30)) == {TaskStatus.COMPLETED}


def test_children_never_open_the_store(site: Site) -> None:
    assert site.send("connections").get(20) == []


def test_a_task_may_wait_for_others_with_one_process_only(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.executors")
    worker = site.worker("-c", "1", "--lease", "5").ready()
    # The template, and one child of each kind.
    before = 4
    until(lambda: len(worker.descendants()) == before)
    assert site.send("parent", 21).get(20)[1] == 42
    assert site.send("nest", 3).get(30) == 3
    assert site.send("gather", [1, 2, 3]).get(20) == 12
    assert site.send("gather-async-inside", [1, 2, 3]).get(20) == 12
    # One is heard of while the others have not begun.
    assert site.send("gather-unequal", [1, 1, 1]).get(20) == 6
    # A whole workflow is waited for like a task.
    assert site.send("parent-of-workflow", [1, 2]).get(20) == [2, 4]
    assert site.send("gather-workflows", [1, 2]).get(20) == 6
    # A child that was not needed after all has not died young: nobody waits on its account.
    assert "died" not in worker.said
    # The children that stood in for those that waited are gone again.
    until(lambda: len(worker.descendants()) == before, within=10)
    assert worker.stop() == 0
