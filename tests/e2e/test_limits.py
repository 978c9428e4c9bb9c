"""Limits with real workers: what runs at a time, what a dead worker held, and whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast import Limit, TaskHandle, TaskStatus
from holdfast.store.verbs import key_walk, limited_claims, limits
from tests.support.deadline import passed, until
from tests.support.site import Site
from tests.support.sites import MakeSite

Handle = TaskHandle[Any]


@pytest.fixture
def site(fresh_site: MakeSite) -> Site:
    return fresh_site("tests.e2e.programs.limits")


def most_at_once(handles: Iterable[Handle]) -> int:
    """How many of these ran at a time, at the most: counted from the history."""
    edges: list[tuple[datetime, int]] = []
    for handle in handles:
        for attempt in handle.attempts():
            edges += [(attempt.started_at, 1), (attempt.finished_at, -1)]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


def nothing_leaks(site: Site) -> None:
    until(lambda: site.run(limits.audit) == [], what="every counter agrees")


def test_no_more_run_at_a_time_in_the_whole_fleet(site: Site) -> None:
    handles = site.module.two.send_many([(0.02,)] * 30)
    for _ in range(2):
        site.worker("-c", "3")
    for handle in handles:
        handle.get(30)
    assert most_at_once(handles) == 2
    nothing_leaks(site)


def test_the_slot_of_a_killed_worker_comes_back_with_its_lease(site: Site) -> None:
    first = site.send("one", "first", 60.0)
    worker = site.worker("-c", "1", "--lease", "1").ready()
    site.begun("first")
    second = site.send("one", "second")
    worker.kill()
    site.app.control.tasks.cancel(first.id)
    site.worker("-c", "1", "--lease", "1")
    second.get(30)
    assert first.status() is TaskStatus.CANCELLED
    nothing_leaks(site)


@pytest.mark.slow
def test_a_slot_that_comes_free_wakes_a_worker_of_another_queue(site: Site) -> None:
    """That one does not look by itself, and what ended was not in its queue."""
    for queue in ("here", "there"):
        site.worker("-c", "1", "-q", queue, "--poll", "60").ready()
    first = site.module.one.options(queue="here").send("first", 1.0)
    site.begun("first")
    second = site.module.one.options(queue="there").send("second")
    second.get(20)
    assert first.status() is TaskStatus.COMPLETED


@pytest.mark.alone
def test_a_rate_holds(site: Site) -> None:
    handles = site.module.paced.send_many([()] * 12)
    site.worker("-c", "2")
    for handle in handles:
        handle.get(30)
    begun = sorted(attempt.started_at for handle in handles for attempt in handle.attempts())
    for first in range(len(begun)):
        for last in range(first, len(begun)):
            # A start is some milliseconds behind the claim that the rate allowed.
            allowed = 2 + (begun[last] - begun[first]) / timedelta(seconds=1 / 20)
            assert last - first + 1 <= allowed + 0.5
    # It sleeps until the next may begin, and not until the next poll.
    assert begun[-1] - begun[0] < timedelta(seconds=2.5)


def test_each_key_runs_one_at_a_time_and_others_beside_it(site: Site) -> None:
    handles = {
        tenant: site.module.sync.send_many([(tenant,)] * 6) for tenant in ("acme", "bolt", "cord")
    }
    site.worker("-c", "3")
    for of_tenant in handles.values():
        for handle in of_tenant:
            handle.get(30)
        assert most_at_once(of_tenant) == 1
    assert most_at_once(h for of_tenant in handles.values() for h in of_tenant) > 1
    nothing_leaks(site)


def test_a_tenant_with_many_tasks_does_not_keep_others_waiting(site: Site) -> None:
    site.module.turn.send_many([("big", 0.05)] * 300)
    worker = site.worker("-c", "1").ready()
    until(lambda: site.app.control.tasks.count().get(TaskStatus.COMPLETED, 0) >= 3)
    small = site.module.turn.send("small")
    assert small.get(5) == "small"
    assert site.app.control.tasks.count()[TaskStatus.COMPLETED] < 60
    worker.kill()


def test_a_limit_that_is_set_while_they_run_holds_at_once(site: Site) -> None:
    site.worker("-c", "3").ready()
    before = site.module.plain.send_many([(0.02,)] * 6)
    for handle in before:
        handle.get(30)
    site.app.control.queues.limit("default", Limit(concurrency=1))
    handles = site.module.plain.send_many([(0.02,)] * 8)
    for handle in handles:
        handle.get(30)
    assert most_at_once(handles) == 1
    site.app.control.queues.limit("default", None)
    more = site.module.plain.send_many([(0.1,)] * 6)
    for handle in more:
        handle.get(30)
    assert most_at_once(more) > 1


@pytest.mark.parametrize(("name", "seconds"), [("one", 1.5), ("slow", 0.0), ("sync", 1.5)])
def test_who_finds_everything_limited_sleeps(
    site: Site, monkeypatch: pytest.MonkeyPatch, name: str, seconds: float
) -> None:
    """Until a slot comes free, or the rate lets the next begin: counted are its claims. Of keys
    there are more than one claim meets."""
    for variable, value in site.environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(key_walk, "MOST_KEYS", 2)
    claims: list[float] = []
    for verb in ("claim", "claim_keys"):
        real = getattr(limited_claims, verb)

        def counted(*args: Any, real: Any = real) -> Any:
            claims.append(time.monotonic())
            return real(*args)

        monkeypatch.setattr(limited_claims, verb, counted)
    task = getattr(site.module, name)
    arguments = [(f"key{number % 3}", seconds) if seconds else () for number in range(6)]
    with site.app.worker(concurrency=4, lease=5, target="tests.e2e.programs.limits:app"):
        handles = [task.send(*given) for given in arguments]
        first, *others = handles
        until(lambda: first.status() is TaskStatus.RUNNING or first.status().is_terminal)
        until(lambda: bool(claims))
        passed(0.2)
        before = len(claims)
        passed(0.6)
        # A hint or a poll may look once more; one that does not sleep claims hundreds of times.
        assert len(claims) - before <= 10
        app = site.app
        app.control.tasks.cancel(*[handle.id for handle in others])
        app.wait(handles, timeout=30)


def test_what_has_no_limit_goes_on_beside_what_has(site: Site) -> None:
    held = site.send("one", "held", 2.0)
    waiting = site.send("one", "waiting")
    site.worker("-c", "2").ready()
    site.begun("held")
    for handle in site.module.plain.send_many([()] * 20):
        handle.get(20)
    assert not held.status().is_terminal
    waiting.get(20)
