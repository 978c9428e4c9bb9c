"""Workers of which children, supervisors and whole trees are killed, and a record of the kills."""

from __future__ import annotations

import os
import random
import re
import signal
import time

from tests.faults import history
from tests.faults.history import Kill
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.worker import WorkerProcess, alive


class Storm:
    """Some workers, and somebody who kills."""

    def __init__(
        self, site: Site, *, lease: float, seed: int, workers: int = 2, children: int = 2
    ) -> None:
        self._site = site
        self._children = children
        self._lease = lease
        self._draw = random.Random(seed)
        self._seen: set[int] = set()
        self.kills: list[Kill] = []
        site.app.control.tasks.count()
        history.watch(site)
        self.workers = [self._start() for _ in range(workers)]

    def _start(self) -> WorkerProcess:
        arguments = ["-c", str(self._children), "--lease", str(self._lease)]
        return self._site.worker(*arguments).ready()

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
