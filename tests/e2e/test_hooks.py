"""Hooks: who is called when, with what, where; and that none of them changes an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import TaskHandle, TaskStatus
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("sqlite")


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.e2e.programs.hooked")


@pytest.fixture(scope="module", autouse=True)
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", "5", "--kill-grace", "0.5").ready()


def calls(site: Site, handle: TaskHandle[Any]) -> list[Any]:
    return [line.data for line in site.ledger.lines("hook", handle.id)]


def names(site: Site, handle: TaskHandle[Any]) -> list[str]:
    return [call["hook"] for call in calls(site, handle)]


def test_around_a_success(site: Site) -> None:
    handle = site.send("works", 1)
    assert handle.get(20) == 2
    found = calls(site, handle)
    assert [(call["where"], call["hook"]) for call in found] == [
        ("app", "before_start"),
        ("task", "before_start"),
        ("code", "code"),
        ("app", "on_success"),
        ("task", "on_success"),
        ("app", "after_finish"),
        ("task", "after_finish"),
    ]
    assert found[0]["args"] == [1]
    assert found[3]["result"] == 2


@pytest.mark.parametrize("name", ["works-thread", "works-async"])
def test_coroutines_are_awaited(site: Site, name: str) -> None:
    handle = site.send(name, 1)
    assert handle.get(20) == 2
    assert [(call["where"], call["hook"]) for call in calls(site, handle)] == [
        ("app", "before_start"),
        ("app", "on_success"),
        ("async", "on_success"),
        ("app", "after_finish"),
    ]


def test_around_a_failure(site: Site) -> None:
    handle = site.send("fails")
    handle.wait(20)
    assert names(site, handle) == ["before_start", "on_failure", "after_finish"]
    failure = calls(site, handle)[1]
    assert (failure["code"], failure["exception"]) == ("UNHANDLED_EXCEPTION", "ValueError")


def test_around_a_retry(site: Site) -> None:
    handle = site.send("retries")
    assert handle.get(20) == 2
    found = calls(site, handle)
    assert [(call["hook"], call["attempt"]) for call in found] == [
        ("before_start", 1),
        ("on_retry", 1),
        ("after_finish", 1),
        ("before_start", 2),
        ("on_success", 2),
        ("after_finish", 2),
    ]
    assert found[1]["delay"] == pytest.approx(0.05)


def test_around_a_timeout(site: Site) -> None:
    handle = site.send("hangs", "hangs")
    assert handle.wait(20) is TaskStatus.FAILED
    assert names(site, handle) == ["before_start", "on_failure", "after_finish"]
    assert calls(site, handle)[1]["code"] == "TASK_TIMEOUT"


def test_around_a_cancel(site: Site) -> None:
    handle = site.send("waits", "waits")
    site.begun("waits")
    handle.cancel()
    assert handle.wait(20) is TaskStatus.CANCELLED
    assert names(site, handle) == ["before_start", "on_cancel", "after_finish"]


def test_after_a_crash_hooks_run_in_another_child(site: Site) -> None:
    handle = site.send("crashes-once")
    assert handle.get(20) == 2
    until(lambda: names(site, handle).count("after_finish") == 2, within=5)
    first, _ = site.ledger.lines("ran-in", handle.id)
    (told,) = [line for line in site.ledger.lines("hook", handle.id) if _is(line.data, "on_retry")]
    assert told.pid != first.pid
    assert (told.data["code"], told.data["attempt"]) == ("WORKER_CRASHED", 1)


def test_after_the_last_crash(site: Site) -> None:
    handle = site.send("crashes")
    assert handle.wait(20) is TaskStatus.FAILED
    until(lambda: "after_finish" in names(site, handle), within=5)
    assert names(site, handle) == ["before_start", "on_failure", "after_finish"]


def _is(call: Any, hook: str) -> bool:
    return bool(call["hook"] == hook)


def test_a_raising_hook_changes_no_outcome(site: Site) -> None:
    handle = site.send("bad-hooks", False)
    assert handle.get(20) == "done all the same"
    assert handle.info().attempt == 1
    said = handle.log()
    assert said.count("the bad hook speaks") == 3
    assert "RuntimeError: bad before_start" in said
    assert "RuntimeError: bad on_success" in said
    assert "hook after_finish" in said


@pytest.mark.parametrize("kind", ["process", "thread", "async"])
def test_a_hook_that_meets_a_cancelled_future_neither(site: Site, kind: str) -> None:
    handle = site.send(f"cancelled-hook-{kind}")
    assert handle.get(20) == "done all the same"
    assert handle.info().attempt == 1
    assert handle.log().count("hook on_success") == 1


def test_a_raising_hook_of_a_failure_neither(site: Site) -> None:
    handle = site.send("bad-hooks", True)
    assert handle.wait(20) is TaskStatus.FAILED
    info = handle.info()
    assert info.error is not None
    assert info.error.exception == "builtins.ValueError"


def test_hooks_of_the_worker(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.hooked")
    worker = site.worker("-c", "2", "--lease", "5").ready()
    for name in ("works", "works-thread", "works-async"):
        assert site.send(name, 1).get(20) == 2
    until(lambda: site.ledger.count("worker-hook", "child_started") == 4)
    assert worker.stop() == 0
    heard = site.ledger.tally("worker-hook")
    assert (heard["worker_started"], heard["worker_stopping"]) == (1, 1)
    started = {line.data for line in site.ledger.lines("worker-hook", "child_started")}
    assert {name.partition("-")[0] for name in started} == {"process", "thread", "async"}
    assert heard["child_started"] == len(started) == 4
