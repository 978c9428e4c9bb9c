"""An idle worker: how soon it answers, what it costs to have one, how soon it is there."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from statistics import median
from time import monotonic, monotonic_ns, sleep
from types import MappingProxyType

from bench.figure import Figure, Sizes, at_most
from bench.peers.mark import Marks
from bench.place import ENGINES, Place, Places
from bench.rounds import quantile
from bench.worker.drain import OURS, fill
from bench.worker.measured_worker import MeasuredWorker
from holdfast import Holdfast
from holdfast.store.settings import Engine

_PATIENCE_S = 30.0
_MOST_MS: dict[Engine, float] = {"postgresql": 4.0, "sqlite": 3.0}


def _start(
    place: Place, marks: Marks, environment: Mapping[str, str] = MappingProxyType({})
) -> MeasuredWorker:
    return MeasuredWorker(OURS, marks=marks, environment={"HOLDFAST_URL": place.url, **environment})


def _marks(places: Places, name: str) -> Marks:
    return Marks(places.folder / name)


def latency(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """From the return of `send` to the first line of the task's code."""
    for engine in ENGINES:
        marks = _marks(places, f"latency_{engine}")
        with places.of(engine) as place, _start(place, marks) as worker:
            waits = _latencies(place, marks, worker, sizes.pings)
        yield at_most(
            "idle worker: send returned → code runs, p50",
            engine,
            quantile(waits, 0.5),
            _MOST_MS[engine],
            unit="ms",
            detail=f"p90 {quantile(waits, 0.9):.1f}, p99 {quantile(waits, 0.99):.1f} ms",
        )


def _latencies(place: Place, marks: Marks, worker: MeasuredWorker, count: int) -> list[float]:
    """Milliseconds of each task, one at a time."""
    returned: dict[int, int] = {}
    with Holdfast(place.url) as app:

        @app.task("bench.mark")
        def noop(number: int) -> int:
            return number

        # The first ones find connections that are being opened, and plans being made.
        for number in range(-5, count):
            noop.send(number + 5)
            returned[number + 5] = monotonic_ns()
            worker.wait_for(number + 6, _PATIENCE_S)
            # Not in step with anything that the worker does now and then.
            sleep(random.uniform(0.03, 0.07))
    runs = {run.number: run.at_ns for run in marks.read()}
    return [(runs[number] - returned[number]) / 1e6 for number in range(5, count + 5)]


def upkeep(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Processor time and memory of a worker that has nothing to do, with two children."""
    for engine in ENGINES:
        marks = _marks(places, f"upkeep_{engine}")
        with places.of(engine) as place, _start(place, marks) as worker:
            # Both children have run something, and the pages that running touches are theirs.
            fill(place, sizes.drained // 10)
            worker.wait_for(sizes.drained // 10, _PATIENCE_S)
            sleep(sizes.seconds / 2)
            began, used = monotonic(), worker.cpu_seconds()
            sleep(sizes.seconds * 4)
            share = (worker.cpu_seconds() - used) / (monotonic() - began)
            memory = worker.memory_mb()
            processes = len(worker.tree())
        yield at_most("idle worker: of one processor", engine, share * 100, 1.0, unit="%")
        yield at_most(
            "idle worker: proportional set size",
            engine,
            memory,
            120.0,
            unit="MB",
            detail=f"supervisor, template and children: {processes} processes",
        )


def start(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """From the command to the first line of a task that was waiting."""
    # Compiled modules are kept, as they are wherever a package is installed; the first worker
    # compiles them, and is not counted.
    compiled = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(places.folder / "compiled"),
    }
    for engine in ENGINES:
        seconds = [
            _start_of(places, engine, f"start_{engine}_{turn}", compiled)
            for turn in range(1 + sizes.drains)
        ][1:]
        yield at_most(
            "worker: command → first task",
            engine,
            median(seconds),
            1.0,
            unit="s",
            detail=f"{min(seconds):.2f} to {max(seconds):.2f} s",
        )


def _start_of(places: Places, engine: Engine, name: str, environment: Mapping[str, str]) -> float:
    marks = _marks(places, name)
    with places.of(engine) as place:
        fill(place, 1)
        with _start(place, marks, environment) as worker:
            worker.wait_for(1, _PATIENCE_S)
            (run,) = marks.read()
            return run.at_ns / 1e9 - worker.began
