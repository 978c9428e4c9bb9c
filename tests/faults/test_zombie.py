"""A worker that was thought dead wakes up: what it then writes is refused."""

from __future__ import annotations

import os
import signal

from holdfast import Holdfast, StoreUnavailable, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite

PROGRAM = "tests.faults.programs.load"
LEASE = 2.0


def test_a_frozen_worker_wakes_up_after_its_lease(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    first = site.worker("-c", "1", "--lease", str(LEASE), "--kill-grace", "0.5").ready()
    handle = site.send("held", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    frozen = [first.pid, *sorted(first.descendants())]
    until(lambda: _freezes(site, frozen), within=20, what="it to be frozen outside a transaction")
    second = site.worker("-c", "1", "--lease", str(LEASE)).ready()
    until(lambda: site.ledger.count("begun", "a") == 2, within=LEASE * 2 + 10)
    # Its code finishes as soon as it wakes up, and so it reports an outcome.
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    until(lambda: "lease" in first.said, within=10, what="the first worker to notice")
    until(lambda: not _is_running(line.pid), within=3, what="its code to be stopped")
    assert handle.status() is TaskStatus.RUNNING
    site.ledger.open_gate("a")
    assert handle.get(20) == "a"
    attempts = handle.attempts()
    assert [attempt.number for attempt in attempts] == [1, 2]
    assert attempts[-1].worker_id != attempts[0].worker_id
    assert site.ledger.count("done", "a") == 1
    assert first.process.poll() is None
    assert first.stop() == second.stop() == 0


def test_an_outcome_that_comes_too_late_is_refused(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    first = site.worker("-c", "1", "--lease", str(LEASE), "--kill-grace", "0.5").ready()
    handle = site.send("in-turn", "a")
    site.begun("a-1")
    # Only the supervisor sleeps: the code returns, and its outcome waits to be read.
    until(lambda: _freezes(site, [first.pid]), within=20, what="it to be frozen")
    site.ledger.open_gate("a-1")
    until(lambda: site.ledger.count("done", "a-1") == 1)
    second = site.worker("-c", "1", "--lease", str(LEASE)).ready()
    site.begun("a-2", within=LEASE * 2 + 10)
    os.kill(first.pid, signal.SIGCONT)
    until(lambda: "discarded" in first.said, within=10, what="the outcome to be refused")
    assert handle.status() is TaskStatus.RUNNING
    site.ledger.open_gate("a-2")
    assert handle.get(20) == 2
    assert [attempt.outcome for attempt in handle.attempts()] == [
        AttemptOutcome.WORKER_FAILURE,
        AttemptOutcome.COMPLETED,
    ]
    # It has learnt its lesson and works on.
    second.stop()
    assert site.send("step", 1).get(20) == 1
    assert first.stop() == 0


def _freezes(site: Site, pids: list[int]) -> bool:
    """Freeze processes, unless one of them may write to the file now: nobody else could then."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        with Holdfast(site.url, lock_timeout=0.5) as other:
            other.control.queues.pause("nobody-serves-this")
    except StoreUnavailable:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        return False
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
