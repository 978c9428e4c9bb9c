"""Children, supervisors and whole trees are killed under load, and the books must balance."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from functools import partial
from typing import Any

import pytest

from holdfast import TaskHandle
from tests.faults import history
from tests.faults.history import Kill
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

PROGRAM = "tests.faults.programs.load"


class Storm:
    """Two workers, a load, and somebody who kills."""

    def __init__(self, site: Site, *, lease: float, seed: int) -> None:
        self._site = site
        self._lease = lease
        self._draw = random.Random(seed)
        self._seen: set[int] = set()
        self.kills: list[Kill] = []
        site.app.control.tasks.count()
        history.watch(site)
        self.workers = [self._start(), self._start()]

    def _start(self) -> WorkerProcess:
        return self._site.worker("-c", "2", "--lease", str(self._lease)).ready()

    def strike(self) -> None:
        """Kill a child, a supervisor, or a worker with all its processes."""
        turn = self._draw.randrange(len(self.workers))
        worker = self.workers[turn]
        until(lambda: len(worker.descendants()) > 1, what="a child beside the template")
        family = worker.descendants()
        self._seen |= family | {worker.pid}
        began = time.time()
        match self._draw.choice(["child", "supervisor", "tree"]):
            case "child":
                # The template is the eldest.
                victim = self._draw.choice(sorted(family)[1:])
                os.kill(victim, signal.SIGKILL)
                self._note(began, worker, {victim}, whole=False)
            case "supervisor":
                worker.kill()
                self._note(began, worker, family, whole=True)
                until(lambda: not any(map(alive, family)), within=1, what="its children to die")
                self.workers[turn] = self._start()
            case _:
                for pid in (worker.pid, *family):
                    _kill(pid)
                self._note(began, worker, family, whole=True)
                worker.wait()
                self.workers[turn] = self._start()

    def _note(self, began: float, worker: WorkerProcess, pids: set[int], *, whole: bool) -> None:
        found = re.search(r"worker ([0-9a-f]{16}) is at work", worker.said)
        assert found is not None
        self.kills.append(Kill(found[1], frozenset(pids), whole, began))

    def calm(self) -> None:
        """Stop the workers; nothing of them, or of those that were killed, is left."""
        for worker in self.workers:
            self._seen |= worker.descendants()
            assert worker.stop() == 0
        until(lambda: not any(map(alive, self._seen)), within=3, what="no orphan to be left")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(site: Site, *, tasks: int, kills: int, seconds: float, lease: float, seed: int) -> None:
    storm = Storm(site, lease=lease, seed=seed)
    names = list(range(tasks))
    handles: list[TaskHandle[Any]] = site.module.step.send_many([(n, seconds) for n in names])
    for number in range(kills):
        wanted = (number + 1) * tasks // (kills + 2)
        until(partial(_done, site, wanted), within=120, what=f"{wanted} tasks to be done")
        storm.strike()
    site.app.wait(handles, timeout=120)
    storm.calm()
    history.check_rows(site, handles)
    history.check_runs(site, handles, storm.kills, names=names, lease=lease)
    history.check_rest(site)


def _done(site: Site, wanted: int) -> bool:
    return site.ledger.count("done") >= wanted


def test_six_kills_in_three_hundred_tasks(fresh_site: MakeSite) -> None:
    run(fresh_site(PROGRAM), tasks=300, kills=6, seconds=0.02, lease=3, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_kills_in_two_thousand_tasks(fresh_site: MakeSite, seed: int) -> None:
    run(fresh_site(PROGRAM), tasks=2000, kills=20, seconds=0.02, lease=5, seed=seed)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_twenty_kills_among_tasks_that_share_windows(fresh_site: MakeSite) -> None:
    run(fresh_site(PROGRAM), tasks=6000, kills=20, seconds=0.0, lease=5, seed=4)
