"""Which task comes next: priorities, queues in order or by weight, limits, pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any

import pytest

from holdfast import TaskHandle, TaskStatus
from holdfast.store.verbs import statistics
from tests.support.deadline import passed, until
from tests.support.ledger import Line
from tests.support.site import Site
from tests.support.sites import MakeSite

pytestmark = pytest.mark.mostly("postgresql")

PROGRAM = "tests.e2e.programs.control"


def begun(site: Site) -> list[str]:
    return [line.key for line in site.ledger.lines("begun")]


def most_at_once(lines: Iterable[Line]) -> int:
    running = most = 0
    for line in lines:
        running += {"begun": 1, "ended": -1}[line.kind]
        most = max(most, running)
    return most


def test_priorities_are_exact_within_a_queue(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    wanted = [(priority, turn) for turn in range(3) for priority in (1, 20, 50, 51, 100)]
    random.shuffle(wanted)
    handles: dict[int, dict[str, TaskHandle[Any]]] = {}
    for priority, turn in wanted:
        name = f"{priority}-{turn}"
        handle = site.options(priority=priority).send("mark", name)
        handles.setdefault(priority, {})[name] = handle
    site.worker("-c", "1", "--burst", "--lease", "5").wait()
    right = [name for priority in sorted(handles) for name in handles[priority]]
    # On a machine that stands still for a moment, what waits in a child is taken back from
    # it, and comes after what was at hand.
    taken_back = {
        name
        for sent in handles.values()
        for name, handle in sent.items()
        if handle.info().attempt > 1
    }
    assert len(taken_back) < len(right) / 2
    assert set(begun(site)) == set(right)
    assert [name for name in begun(site) if name not in taken_back] == [
        name for name in right if name not in taken_back
    ]


def test_queues_in_order(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    for queue in ("low", "middle", "high"):
        for number in range(5):
            site.options(queue=queue).send("mark", f"{queue}-{number}")
    site.worker("-c", "1", "--burst", "-q", "high,middle,low", "--lease", "5").wait()
    assert [name.partition("-")[0] for name in begun(site)] == (
        ["high"] * 5 + ["middle"] * 5 + ["low"] * 5
    )


def test_queues_that_are_not_named_are_left_alone(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    other = site.options(queue="other").send("mark", "other")
    site.options(queue="mine").send("mark", "mine")
    site.worker("-c", "1", "--burst", "-q", "mine", "--lease", "5").wait()
    assert begun(site) == ["mine"]
    assert other.status() is TaskStatus.PENDING


def test_queues_by_weight(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    for queue in ("high", "low"):
        for number in range(60):
            site.options(queue=queue).send("mark", f"{queue}-{number}", 0.012)
    site.worker("-c", "1", "--burst", "-q", "high:5,low:1", "--lease", "5").wait()
    names = [name.partition("-")[0] for name in begun(site)]
    assert len(names) == 120
    # By weight, high is done with its 60 when low has had about 12; by turns it would be 60.
    low_before = names[: 120 - names[::-1].index("high")].count("low")
    assert 2 <= low_before <= 40


def test_at_most_so_many_of_a_queue(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    for number in range(6):
        site.options(queue="images").send("mark", f"image-{number}", 0.05)
    site.worker("-c", "3", "--burst", "-q", "images=2", "--lease", "5").wait()
    assert len(begun(site)) == 6
    assert most_at_once(site.ledger.lines()) == 2


def test_at_most_so_many_of_a_task(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    for number in range(6):
        site.send("limited", f"limited-{number}")
    free = [site.send("mark", f"free-{number}") for number in range(6)]
    site.worker("-c", "3", "--burst", "--lease", "5").wait()
    assert site.app.wait(free, 1) == [TaskStatus.COMPLETED] * 6
    limited = [line for line in site.ledger.lines() if line.key.startswith("limited")]
    assert len(limited) == 12
    assert most_at_once(limited) == 2


def test_a_paused_queue(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    site.worker("-c", "2", "--lease", "5").ready()
    site.app.control.queues.pause("default", by="test")
    held = site.send("mark", "held")
    sent = time.monotonic()
    assert "paused" in str(held.why())
    passed(0.5)
    site.app.control.queues.resume("default")
    resumed = time.monotonic()
    assert held.wait(5) is TaskStatus.COMPLETED
    assert time.monotonic() - resumed < 1.0
    (line,) = site.ledger.lines("begun", "held")
    assert line.at > resumed - 0.5
    (minute,) = until(lambda: site.run(statistics.totals), what="it to be counted")
    assert minute.counts["completed"] == 1
    assert minute.counts["wait_us"] / 1_000_000 > resumed - sent - 0.2


def test_a_pause_takes_effect_at_once_under_load(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    site.worker("-c", "2", "--lease", "5").ready()
    handles = site.module.mark.send_many([(f"load-{n}", 0.01) for n in range(400)])
    until(lambda: site.ledger.count("begun") > 20)
    site.app.control.queues.pause("default")
    paused = time.monotonic()
    until(lambda: not _in_flight(site), within=5)
    # What children have been handed already is taken back before it begins.
    after = [line for line in site.ledger.lines("begun") if line.at > paused + 0.3]
    left = [h for h in handles if h.status() is TaskStatus.PENDING]
    assert not after, f"{len(after)} tasks began after the pause"
    assert left
    site.app.control.queues.resume("default")
    assert set(site.app.wait(handles, 20)) == {TaskStatus.COMPLETED}
    assert set(site.ledger.tally("begun").values()) == {1}
    assert {handle.info().crash_count for handle in handles} == {0}


def _in_flight(site: Site) -> bool:
    counts = site.app.control.tasks.count()
    return bool(counts.get(TaskStatus.CLAIMED, 0) + counts.get(TaskStatus.RUNNING, 0))
