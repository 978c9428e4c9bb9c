"""How fast a queue of no-op tasks is drained: ours, and every peer in the same minutes.

The queue is filled first, then the worker starts. What counts is the time from the first to
the last task, by the clock that the tasks themselves read, and every task has to have run
exactly once. Ours and the peers take turns; a ratio is taken within a turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count as counter
from pathlib import Path
from statistics import median
from types import MappingProxyType

from bench.figure import Figure, Sizes, absent, at_least
from bench.peers.environment import NotInstalled, install
from bench.peers.mark import Marks
from bench.peers.redis import RedisServer, find_server
from bench.peers.roster import PEERS, Peer
from bench.place import ENGINES, Place, Places
from bench.worker.measured_worker import ROOT, MeasuredWorker, NotDone
from holdfast import Holdfast
from holdfast.store.settings import Engine

_PATIENCE_S = 120.0
_AT_ONCE = 5_000
_numbers = counter(1)

OURS = (sys.executable, "-m", "holdfast", "worker", "bench.worker.program:app", "-c", "2")


def drain(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks a second, as a multiple of each peer's."""
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            wanted = [peer for peer in PEERS if (peer.needs == "sqlite") is (engine == "sqlite")]
            yield from _compare(field, engine, wanted, sizes)


def _compare(
    field: Field, engine: Engine, wanted: Sequence[Peer], sizes: Sizes
) -> Iterator[Figure]:
    ours: list[float] = []
    theirs: dict[Peer, list[float]] = {}
    failed: dict[Peer, str] = {}
    for peer in wanted:
        try:
            if not sizes.peers:
                raise NotInstalled("no peers this time")
            field.prepare(peer)
            theirs[peer] = []
        except NotInstalled as error:
            failed[peer] = str(error)
    for _ in range(sizes.drains):
        ours.append(field.ours(engine, sizes.drained))
        for peer in [peer for peer in theirs if peer not in failed]:
            try:
                theirs[peer].append(field.theirs(peer, round(sizes.drained * peer.share)))
            except (NotDone, subprocess.CalledProcessError) as error:
                failed[peer] = str(error)
    rate = f"{median(ours):,.0f}/s"
    for peer in wanted:
        if peer in failed:
            yield absent(_title(peer), engine, peer.bound, f"ours {rate}; {failed[peer]}")
            continue
        rates = theirs[peer]
        yield at_least(
            _title(peer),
            engine,
            median(mine / other for mine, other in zip(ours, rates, strict=True)),
            peer.bound,
            unit="x",
            detail=f"{rate} against {median(rates):,.0f}/s",
        )


def _title(peer: Peer) -> str:
    return f"no-op tasks drained, of {peer.name}"


class Field:
    """Where ours and peers run: databases, environments, and a Redis server once needed."""

    def __init__(self, places: Places, undo: ExitStack) -> None:
        self._places = places
        self._undo = undo
        self._redis: RedisServer | None = None
        self._programs: dict[str, Path] = {}

    def prepare(self, peer: Peer) -> None:
        """Install what a peer needs, or raise `NotInstalled`."""
        if peer.needs == "redis" and self._redis is None:
            server = RedisServer(find_server(), self._places.folder)
            self._redis = self._undo.enter_context(server)
        name = peer.program.rpartition("_")[2]
        self._programs[peer.name] = install(name, peer.requirements)

    def ours(
        self, engine: Engine, count: int, extra: Mapping[str, str] = MappingProxyType({})
    ) -> float:
        """Fill a queue of ours and drain it; tasks a second."""
        with self._places.of(engine) as place:
            fill(place, count)
            marks = self.marks()
            with MeasuredWorker(
                OURS, marks=marks, environment={"HOLDFAST_URL": place.url, **extra}
            ) as worker:
                worker.wait_for(count, _PATIENCE_S)
        return _rate(marks, count)

    def theirs(
        self, peer: Peer, count: int, extra: Mapping[str, str] = MappingProxyType({})
    ) -> float:
        """Fill a peer's queue and drain it; tasks a second."""
        programs = self._programs[peer.name]
        marks = self.marks()
        with self._home(peer, marks) as url:
            environment = {"BENCH_URL": url, **extra}
            subprocess.run(
                [programs / "python", "-m", peer.program, str(count)],
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                cwd=marks.folder.parent,
                check=True,
            )
            command = (str(programs / peer.worker[0]), *peer.worker[1:])
            with MeasuredWorker(
                command, marks=marks, environment=environment, copies=peer.copies
            ) as worker:
                worker.wait_for(count, _PATIENCE_S)
        return _rate(marks, count)

    def marks(self) -> Marks:
        """A new directory for what tasks note."""
        return Marks(self._places.folder / f"marks_{next(_numbers)}")

    @contextmanager
    def _home(self, peer: Peer, marks: Marks) -> Iterator[str]:
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


def fill(place: Place, count: int, *, first: int = 0) -> None:
    """Put tasks into the queue of the measured application."""
    with Holdfast(place.url) as app:

        @app.task("bench.mark")
        def noop(number: int) -> int:
            return number

        for start in range(first, first + count, _AT_ONCE):
            end = min(start + _AT_ONCE, first + count)
            noop.send_many([(number,) for number in range(start, end)])


def _rate(marks: Marks, count: int) -> float:
    runs = marks.read()
    assert sorted(run.number for run in runs) == list(range(count)), "a task ran twice, or never"
    return (count - 1) / max(runs[-1].at_ns - runs[0].at_ns, 1) * 1e9
