"""How soon an idle worker runs a task, and how soon its result is there: ours, and peers.

One task at a time, each into an empty queue, with a pause between them that is in step with
nothing. Two turns of everybody; the times of both are taken together.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from bench.figure import Figure, Sizes, absent, at_most
from bench.peers.asked import WARM_UP, Ping, ping
from bench.peers.mark import Marks
from bench.peers.roster import BESIDE_WORK, Peer
from bench.place import ENGINES, Places
from bench.rounds import quantile
from bench.worker.field import FAILURES, OURS, PROCESSES, Field
from bench.worker.measured_worker import MeasuredWorker, NotDone
from holdfast import Holdfast
from holdfast.store.settings import Engine

_TURNS = 2
_PATIENCE_S = 30.0
_CODE_MS: dict[Engine, float] = {"postgresql": 2.2, "sqlite": 1.8}
_GET_MS: dict[Engine, float] = {"postgresql": 4.5, "sqlite": 3.5}
_LONGEST_MS = 15.0


class Waits(NamedTuple):
    """Milliseconds of each task."""

    code: list[float]
    """From the return of `send` to the first line of the task's code."""
    called: list[float]
    """The same from the call of `send`."""
    get: list[float]
    """From the call of `send` to the result; nothing of a peer that keeps none."""

    def add(self, pings: list[Ping], marks: Marks, *, has_results: bool) -> None:
        """Take what one turn has found."""
        began = {run.number: run.began_ns for run in marks.read()}
        for one in pings[WARM_UP:]:
            self.code.append((began[one.number] - one.returned_ns) / 1e6)
            self.called.append((began[one.number] - one.began_ns) / 1e6)
            if has_results:
                self.get.append((one.got_ns - one.began_ns) / 1e6)


def latency(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """From `send` to the code, and to the result."""
    with ExitStack() as undo:
        field = Field(places, undo)
        missing = field.missing_of(BESIDE_WORK, wanted=sizes.peers)
        peers = [peer for peer in BESIDE_WORK if peer not in missing]
        ours = {engine: Waits([], [], []) for engine in ENGINES}
        theirs = {peer: Waits([], [], []) for peer in peers}
        each = max(1, sizes.pings // _TURNS)
        for _ in range(_TURNS):
            for engine in ENGINES:
                _of_ours(field, places, engine, each, ours[engine])
            for peer in peers:
                try:
                    _of_theirs(field, peer, each, theirs[peer])
                except FAILURES as error:
                    missing[peer] = str(error)
    for engine in ENGINES:
        yield from _figures(engine, ours[engine])
    for peer, waits in theirs.items():
        if peer not in missing:
            yield from _shown(peer, waits)
    for peer, reason in missing.items():
        yield absent(f"idle: send → code, p50, {peer.name}", peer.needs, None, reason)


def _of_ours(field: Field, places: Places, engine: Engine, count: int, waits: Waits) -> None:
    marks = field.marks()
    with places.of(engine) as place:
        environment = {"HOLDFAST_URL": place.url}
        with MeasuredWorker(OURS, marks=marks, environment=environment), Holdfast(place.url) as app:

            @app.task("bench.mark")
            def noop(number: int) -> int:
                return number

            found = ping(count, noop.send, lambda sent: sent.get(timeout=_PATIENCE_S))
    waits.add(found, marks, has_results=True)


def _of_theirs(field: Field, peer: Peer, count: int, waits: Waits) -> None:
    marks = field.marks()
    ask: Callable[..., subprocess.CompletedProcess[str]] = partial(
        subprocess.run, capture_output=True, text=True, check=True, cwd=marks.folder.parent
    )
    with field.home(peer, marks) as url:
        environment = field.environment({"BENCH_URL": url})
        # Those that need tables make them when they are asked to send nothing.
        ask(field.program(peer, "0"), env=environment)
        with field.worker(peer, marks, {"BENCH_URL": url}, processes=PROCESSES) as worker:
            said = ask(field.program(peer, "ping", str(count)), env=environment).stdout
            worker.wait_for(WARM_UP + count, _PATIENCE_S)
    found = [Ping(*map(int, line.split())) for line in said.splitlines()]
    if len(found) != WARM_UP + count:
        raise NotDone(said)
    waits.add(found, marks, has_results=peer.has_results)


def _figures(engine: Engine, waits: Waits) -> Iterator[Figure]:
    code, get = waits.code, waits.get
    yield at_most(
        "idle: send returned → code runs, p50",
        engine,
        quantile(code, 0.5),
        _CODE_MS[engine],
        unit="ms",
        detail=(
            f"p90 {quantile(code, 0.9):.1f}, p99 {quantile(code, 0.99):.1f} ms; "
            f"from the call of send {quantile(waits.called, 0.5):.1f}"
        ),
    )
    yield at_most(
        "idle: send returned → code runs, p99", engine, quantile(code, 0.99), _LONGEST_MS, unit="ms"
    )
    yield at_most(
        "idle: send → get, p50",
        engine,
        quantile(get, 0.5),
        _GET_MS[engine],
        unit="ms",
        detail=f"p90 {quantile(get, 0.9):.1f}, p99 {quantile(get, 0.99):.1f} ms",
    )
    yield at_most("idle: send → get, p99", engine, quantile(get, 0.99), _LONGEST_MS, unit="ms")


def _shown(peer: Peer, waits: Waits) -> Iterator[Figure]:
    yield at_most(
        f"idle: send returned → code runs, p50, {peer.name}",
        peer.needs,
        quantile(waits.code, 0.5),
        None,
        unit="ms",
        detail=(
            f"p99 {quantile(waits.code, 0.99):.1f} ms; "
            f"from the call of send {quantile(waits.called, 0.5):.1f}"
        ),
    )
    if waits.get:
        yield at_most(
            f"idle: send → get, p50, {peer.name}",
            peer.needs,
            quantile(waits.get, 0.5),
            None,
            unit="ms",
            detail=f"p99 {quantile(waits.get, 0.99):.1f} ms",
        )
