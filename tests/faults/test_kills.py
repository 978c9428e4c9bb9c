"""A child or its supervisor is killed: what is noticed when, and who is charged."""

from __future__ import annotations

import os
import signal
from time import monotonic

from holdfast import TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

PROGRAM = "tests.faults.programs.load"
LEASE = 3.0
CRASHED, INTERRUPTED = AttemptOutcome.WORKER_FAILURE, AttemptOutcome.INTERRUPTED


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


def test_a_child_killed_with_a_full_window(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    site.worker("-c", "1", "--lease", str(LEASE)).ready()
    # Known to be quick, so that many are handed over at once.
    site.app.wait(site.module.quick.send_many([(n,) for n in range(200)]), timeout=30)
    site.app.control.queues.pause("default")
    handles = site.module.quick.send_many([(n, n == 1100) for n in range(1000, 1200)])
    site.app.control.queues.resume("default")
    site.app.wait(handles, timeout=30)
    outcomes = {n: handle.attempts() for n, handle in enumerate(handles, 1000)}
    charged = {n for n, found in outcomes.items() if CRASHED in {a.outcome for a in found}}
    assert charged == {1100}
    shared = {n for n, found in outcomes.items() if found[0].outcome is INTERRUPTED}
    assert any(n > 1100 for n in shared), "nothing was behind it"
    for handle in handles:
        info = handle.info()
        assert info.status is TaskStatus.COMPLETED
        assert (info.crash_count, info.retry_count) == (int(info.args == [1100, True]), 0)
    # What was behind it had not begun.
    ran = {(line.key, line.data) for line in site.ledger.lines("begun")}
    assert not {(str(n), 1) for n in shared if n > 1100} & ran


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
