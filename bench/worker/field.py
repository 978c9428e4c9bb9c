"""Where ours and peers run: databases, environments, a Redis server once needed, and the marks.

Owns a drain: a queue is filled, a worker is started, and every task has to run exactly once. What
counts is the time between the first and the last, by the clock that the tasks themselves read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count as counter
from pathlib import Path
from types import MappingProxyType

from bench.peers.environment import NotInstalled, install
from bench.peers.mark import Mark, Marks
from bench.peers.redis import RedisServer, find_server
from bench.peers.roster import Peer
from bench.place import Place, Places
from bench.worker.measured_worker import ROOT, MeasuredWorker, NotDone
from holdfast import Holdfast
from holdfast.store.settings import Engine

PATIENCE_S = 120.0
_AT_ONCE = 5_000
_numbers = counter(1)
_NOTHING: Mapping[str, str] = MappingProxyType({})

PROCESSES = 2
FAILURES = (NotDone, subprocess.CalledProcessError)
"""What a peer's drain may raise."""


def command(*arguments: str, app: str = "bench.worker.program:app") -> tuple[str, ...]:
    """How a worker of ours is started."""
    return (sys.executable, "-m", "holdfast", "worker", app, *arguments)


OURS = command("-c", str(PROCESSES))


def fill(place: Place, count: int, *, first: int = 0, name: str = "bench.mark") -> None:
    """Put tasks into the queue of the measured application."""
    with Holdfast(place.url) as app:

        @app.task(name)
        def marked(number: int) -> int:
            return number

        for start in range(first, first + count, _AT_ONCE):
            end = min(start + _AT_ONCE, first + count)
            marked.send_many([(number,) for number in range(start, end)])


Fill = Callable[[Place, int], None]


class Field:
    """Where drains take place."""

    def __init__(self, places: Places, undo: ExitStack) -> None:
        self._places = places
        self._undo = undo
        self._redis: RedisServer | None = None
        self._programs: dict[str, Path] = {}

    def missing(self, peer: Peer, *, wanted: bool = True) -> str:
        """Prepare a peer, and say why it cannot be measured; nothing if it can."""
        if not wanted:
            return "no peers this time"
        try:
            self.prepare(peer)
        except NotInstalled as error:
            return str(error)
        return ""

    def missing_of(self, peers: Iterable[Peer], *, wanted: bool = True) -> dict[Peer, str]:
        """Those of them that cannot be measured, and why."""
        found = ((peer, self.missing(peer, wanted=wanted)) for peer in peers)
        return {peer: reason for peer, reason in found if reason}

    def prepare(self, peer: Peer) -> None:
        """Install what a peer needs, or raise `NotInstalled`."""
        if peer.needs == "redis" and self._redis is None:
            server = RedisServer(find_server(), self._places.folder)
            self._redis = self._undo.enter_context(server)
        name = peer.program.rpartition("_")[2]
        self._programs[peer.name] = install(name, peer.requirements)

    def ours(
        self,
        engine: Engine,
        count: int,
        environment: Mapping[str, str] = _NOTHING,
        *,
        arguments: tuple[str, ...] = OURS,
        fill: Fill = fill,
    ) -> list[Mark]:
        """Fill a queue of ours and drain it."""
        with self._places.of(engine) as place:
            fill(place, count)
            marks = self.marks()
            with MeasuredWorker(
                arguments, marks=marks, environment={"HOLDFAST_URL": place.url, **environment}
            ) as worker:
                worker.wait_for(count, PATIENCE_S)
        return whole(marks, count)

    def theirs(
        self,
        peer: Peer,
        count: int,
        environment: Mapping[str, str] = _NOTHING,
        *,
        processes: int = PROCESSES,
    ) -> list[Mark]:
        """Fill a peer's queue and drain it."""
        marks = self.marks()
        with self.home(peer, marks) as url:
            environment = {"BENCH_URL": url, **environment}
            subprocess.run(
                self.program(peer, str(count)),
                env=self.environment(environment),
                cwd=marks.folder.parent,
                check=True,
            )
            with self.worker(peer, marks, environment, processes=processes) as worker:
                worker.wait_for(count, PATIENCE_S)
        return whole(marks, count)

    def program(self, peer: Peer, *words: str) -> tuple[str, ...]:
        """A peer's program, which does what it is asked (`bench.peers.asked`)."""
        return (str(self._programs[peer.name] / "python"), "-m", peer.program, *words)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What such a program needs to find us, and its database."""
        return {**os.environ, "PYTHONPATH": str(ROOT), **environment}

    def worker(
        self, peer: Peer, marks: Marks, environment: Mapping[str, str], *, processes: int
    ) -> MeasuredWorker:
        """A peer's worker."""
        program, *words = peer.command(processes)
        return MeasuredWorker(
            (str(self._programs[peer.name] / program), *words),
            marks=marks,
            environment=environment,
            copies=peer.copies(processes),
        )

    def marks(self) -> Marks:
        """A new directory for what tasks note."""
        return Marks(self._places.folder / f"marks_{next(_numbers)}")

    @contextmanager
    def home(self, peer: Peer, marks: Marks) -> Iterator[str]:
        """Where a peer keeps its queue: new, or emptied."""
        if peer.needs == "postgresql":
            server = self._places.server
            name = server.create_database().rpartition("/")[2]
            yield server.url_of(name, unix=True)
            server.drop_database(f"/{name}")
        elif peer.needs == "redis":
            assert self._redis is not None
            self._redis.flush()
            yield self._redis.url
        else:
            yield str(marks.folder.with_suffix(".db"))


def whole(marks: Marks, count: int) -> list[Mark]:
    """Every run in the order of their ends; each task has run exactly once."""
    runs = marks.read()
    numbers = sorted(run.number for run in runs)
    assert numbers == list(range(count)), "a task ran twice, or never"
    return runs


def processors(runs: list[Mark], at_once: int = 1) -> float:
    """How many processors the code of tasks got, of those that ended after the first `at_once`.

    A machine whose processors are now faster and now slower, as those of virtual machines are,
    changes how long each task takes; it does not change this.
    """
    began = runs[at_once - 1].at_ns
    return sum(run.used_ns for run in runs[at_once:]) / max(runs[-1].at_ns - began, 1)


def rate(runs: list[Mark], at_once: int = 1) -> float:
    """Tasks a second, of those that ended after the first `at_once` of them had."""
    begins = runs[at_once - 1].at_ns
    return (len(runs) - at_once) / max(runs[-1].at_ns - begins, 1) * 1e9
