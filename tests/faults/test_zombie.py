"""A worker that was thought dead wakes up: what it then writes is refused."""

from __future__ import annotations

import os
import signal

from holdfast import TaskStatus
from tests.support.sites import MakeSite
from tests.support.worker import until

PROGRAM = "tests.faults.programs.load"
LEASE = 2.0


def test_a_frozen_worker_wakes_up_after_its_lease(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    first = site.worker("-c", "1", "--lease", str(LEASE), "--kill-grace", "0.5").ready()
    handle = site.send("held", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    frozen = [first.pid, *first.descendants()]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
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


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
