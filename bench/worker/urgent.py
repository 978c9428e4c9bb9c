"""An urgent task in a deep queue, and the end of a queue.

What happens at the two ends of a reserve: something has to go before it, or nothing comes after.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic_ns, sleep

from bench.figure import Figure, Sizes, at_most
from bench.peers.mark import Marks
from bench.peers.work import WORK, turns_per_ms
from bench.place import ENGINES, Place, Places
from bench.rounds import quantile
from bench.worker.contest import ROUNDS
from bench.worker.field import OURS, PATIENCE_S, PROCESSES, Field, command, fill
from bench.worker.measured_worker import MeasuredWorker
from holdfast import Holdfast

DEEP_MS = 10
_EVERY_S = 0.12
_FIRST_URGENT = 1_000_000
"""Numbers of urgent tasks begin here."""

TAIL_MS = 100
TAIL = 8
TAIL_CHILDREN = 4


def urgent(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks of priority 1, sent one by one into a deep queue of tasks of 10 ms that compute."""
    # Twice what bare processes could do meanwhile.
    depth = round(2 * PROCESSES * sizes.urgent * _EVERY_S * 1e3 / DEEP_MS)
    work = {WORK: f"compute:{round(turns_per_ms() * DEEP_MS)}"}
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            marks = field.marks()
            with places.of(engine) as place:
                fill(place, depth)
                environment = {"HOLDFAST_URL": place.url, **work}
                with MeasuredWorker(OURS, marks=marks, environment=environment) as worker:
                    worker.wait_for(2 * PROCESSES, PATIENCE_S)
                    returned = _send_urgent(place, marks, sizes.urgent)
            runs = {run.number: run for run in marks.read()}
            waits = [(runs[number].began_ns - at) / 1e6 for number, at in returned.items()]
            yield at_most(
                f"urgent, into a deep queue of {DEEP_MS} ms: p99",
                engine,
                quantile(waits, 0.99),
                60.0,
                unit="ms",
                detail=(
                    f"p50 {quantile(waits, 0.5):.1f}, p90 {quantile(waits, 0.9):.1f}, "
                    f"longest {max(waits):.1f} ms of {len(waits)}"
                ),
            )


def _send_urgent(place: Place, marks: Marks, count: int) -> dict[int, int]:
    """When each send had returned; returns when all have run."""
    returned: dict[int, int] = {}
    with Holdfast(place.url) as app:

        @app.task("bench.mark", priority=1)
        def marked(number: int) -> int:
            return number

        for number in range(_FIRST_URGENT, _FIRST_URGENT + count):
            marked.send(number)
            returned[number] = monotonic_ns()
            sleep(random.uniform(0.5, 1.5) * _EVERY_S)
        until = monotonic_ns() + PATIENCE_S * 1e9
        while sum(run.number >= _FIRST_URGENT for run in marks.read()) < count:
            assert monotonic_ns() < until, "an urgent task did not run"
            sleep(0.02)
    return returned


def tail(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """The end of a backlog of tasks of 100 ms: the last eight of them."""
    ideal = TAIL / TAIL_CHILDREN * TAIL_MS
    arguments = command("-c", str(TAIL_CHILDREN))
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            found = []
            for _ in range(min(ROUNDS, sizes.drains)):
                work = {WORK: f"sleep:{TAIL_MS}"}
                runs = field.ours(engine, sizes.tail, work, arguments=arguments)
                found.append((runs[-1].at_ns - runs[-1 - TAIL].at_ns) / 1e6 / ideal)
            yield at_most(
                f"last {TAIL} of {sizes.tail:,} of {TAIL_MS} ms, -c {TAIL_CHILDREN}: of ideal",
                engine,
                found,
                1.3,
                unit="x",
                detail=f"ideal {ideal:.0f} ms",
            )
