"""An idle worker: what it costs to have one, and how soon it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic, sleep
from types import MappingProxyType

from bench.figure import Figure, Sizes, at_most
from bench.peers.mark import Marks
from bench.place import ENGINES, Place, Places
from bench.worker.field import OURS, fill
from bench.worker.measured_worker import MeasuredWorker
from holdfast.store.settings import Engine

_PATIENCE_S = 30.0


def _start(
    place: Place, marks: Marks, environment: Mapping[str, str] = MappingProxyType({})
) -> MeasuredWorker:
    return MeasuredWorker(OURS, marks=marks, environment={"HOLDFAST_URL": place.url, **environment})


def _marks(places: Places, name: str) -> Marks:
    return Marks(places.folder / name)


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
        yield at_most("idle worker: of one processor", engine, share * 100, 0.5, unit="%")
        yield at_most(
            "idle worker: proportional set size",
            engine,
            memory,
            59.0,
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
            seconds,
            0.35,
            unit="s",
        )


def _start_of(places: Places, engine: Engine, name: str, environment: Mapping[str, str]) -> float:
    marks = _marks(places, name)
    with places.of(engine) as place:
        fill(place, 1)
        with _start(place, marks, environment) as worker:
            worker.wait_for(1, _PATIENCE_S)
            (run,) = marks.read()
            return run.at_ns / 1e9 - worker.began
