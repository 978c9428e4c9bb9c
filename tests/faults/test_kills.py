"""Children, supervisors and whole trees are killed: nothing is lost, and nothing is left over."""

from __future__ import annotations

import os
import random
import signal
from time import monotonic

import pytest

from holdfast import TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive, until

PROGRAM = "tests.faults.programs.load"
LEASE = 3.0


def start(site: Site, *arguments: str) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", str(LEASE), "--kill-grace", "1", *arguments).ready()


def test_a_killed_child_costs_only_the_task_it_had_begun(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    worker = site.worker("-c", "1", "--lease", str(LEASE)).ready()
    warm = site.module.step.send_many([(n,) for n in range(300)])
    site.app.wait(warm, timeout=30)
    # The child is known to be quick now, so a whole window goes to it at once.
    long = site.send("held", "long")
    behind = site.module.step.send_many([(n,) for n in range(2000, 2050)])
    site.begun("long")
    (line,) = site.ledger.lines("begun", "long")
    os.kill(line.pid, signal.SIGKILL)
    site.ledger.open_gate("long")
    site.app.wait(behind, timeout=30)
    for handle in behind:
        assert handle.status() is TaskStatus.COMPLETED
        assert handle.info().crash_count == 0
    assert long.get(20) == "long"
    assert long.info().crash_count == 1
    first = long.attempts()[0]
    assert first.outcome is AttemptOutcome.WORKER_FAILURE
    assert first.exit_signal == signal.SIGKILL
    assert worker.process.poll() is None


def test_a_dead_child_is_noticed_within_a_second(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    start(site)
    handle = site.send("held", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    os.kill(line.pid, signal.SIGKILL)
    killed = monotonic()
    until(lambda: site.ledger.count("begun", "a") == 2, within=5)
    assert site.ledger.lines("begun", "a")[1].at - killed < 1.0
    site.ledger.open_gate("a")
    assert handle.get(20) == "a"


def test_a_vanished_worker_is_replaced_within_its_lease_and_two_seconds(
    fresh_site: MakeSite,
) -> None:
    site = fresh_site(PROGRAM)
    first = start(site)
    handle = site.send("held", "a")
    site.begun("a")
    second = start(site)
    children = first.descendants()
    first.kill()
    killed = monotonic()
    until(lambda: not any(map(alive, children)), within=1, what="its children to die with it")
    until(lambda: site.ledger.count("begun", "a") == 2, within=LEASE + 10)
    assert site.ledger.lines("begun", "a")[1].at - killed < LEASE + 2
    site.ledger.open_gate("a")
    assert handle.get(20) == "a"
    assert handle.info().crash_count == 1
    assert second.stop() == 0


def test_children_die_with_their_supervisor_even_at_the_gil(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    worker = start(site)
    site.send("at-the-gil", "a", 30.0)
    site.begun("a")
    children = worker.descendants()
    assert len(children) >= 3
    worker.kill()
    until(lambda: not any(map(alive, children)), within=1, what="everything to be gone")


def test_cancelled_while_running_then_the_worker_dies(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    worker = site.worker("-c", "1", "--lease", str(LEASE), "--kill-grace", "60").ready()
    handle = site.send("at-the-gil", "a", 30.0)
    site.begun("a")
    handle.cancel()
    worker.kill()
    start(site)
    assert handle.wait(LEASE + 10) is TaskStatus.CANCELLED
    assert site.ledger.count("begun", "a") == 1


@pytest.mark.slow
def test_twenty_kills_in_two_thousand_tasks(fresh_site: MakeSite) -> None:
    _storm(fresh_site(PROGRAM), tasks=2000, kills=20, seconds=0.02)


def test_six_kills_in_three_hundred_tasks(fresh_site: MakeSite) -> None:
    _storm(fresh_site(PROGRAM), tasks=300, kills=6, seconds=0.02)


def _storm(site: Site, *, tasks: int, kills: int, seconds: float) -> None:
    draw = random.Random(7)
    workers = [start(site), start(site)]
    handles = site.module.step.send_many([(n, seconds) for n in range(tasks)])
    processes: set[int] = set()
    for number in range(kills):
        wanted = (number + 1) * tasks // (kills + 2)
        until(lambda wanted=wanted: site.ledger.count("done") >= wanted, within=60)
        victim = draw.randrange(len(workers))
        worker = workers[victim]
        processes |= worker.descendants()
        match draw.choice(["child", "supervisor", "tree"]):
            case "child":
                child = max(worker.descendants())
                os.kill(child, signal.SIGKILL)
            case "supervisor":
                worker.kill()
                workers[victim] = start(site)
            case _:
                for pid in worker.descendants():
                    os.kill(pid, signal.SIGKILL)
                worker.kill()
                workers[victim] = start(site)
    site.app.wait(handles, timeout=60)
    begun, lines = site.ledger.tally("begun"), site.ledger.lines("begun")
    assert len(begun) == tasks
    extra = 0
    for number, handle in enumerate(handles):
        info, attempts = handle.info(), handle.attempts()
        assert info.status is TaskStatus.COMPLETED
        assert [attempt.number for attempt in attempts] == list(range(1, info.attempt + 1))
        assert attempts[-1].outcome is AttemptOutcome.COMPLETED
        assert all(a.outcome is not AttemptOutcome.COMPLETED for a in attempts[:-1])
        # The code ran no more often than there were starts that a kill hit.
        assert begun[str(number)] <= info.attempt
        extra += begun[str(number)] - 1
    # Two processes run one task each, and a window of finished ones may not have been told of.
    assert extra <= kills * 2 * 256, extra
    assert len(lines) == tasks + extra
    for worker in workers:
        processes |= worker.descendants()
        assert worker.stop() == 0
    until(lambda: not any(map(alive, processes)), within=3, what="no orphan")
