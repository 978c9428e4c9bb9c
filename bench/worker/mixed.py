"""Tasks of different lengths in one queue: what short ones wait, and who idles meanwhile.

Four children. What waits is told by the marks of the tasks: each notes when its code began, and in
which process. The long ones sleep, so that four children have two processors enough.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from time import monotonic, monotonic_ns, sleep

from bench.figure import Figure, Sizes, at_most
from bench.peers.mark import Marks
from bench.peers.work import WORK, turns_per_ms
from bench.place import ENGINES, Place, Places
from bench.rounds import quantile
from bench.worker.contest import ROUNDS
from bench.worker.field import PATIENCE_S, Field, Fill, command, fill
from bench.worker.measured_worker import MeasuredWorker
from bench.worker.timeline import idle_ms
from holdfast import Holdfast

CHILDREN = 4
LONG_MS = 2_000
_LONG_AT_ONCE = CHILDREN - 1
_FIRST_LONG = 1_000_000
"""Numbers of long tasks begin here."""
_FOUR = command("-c", str(CHILDREN))
_SHORTEST_MS = 1.0
_ONE_IN = 100
"""One task of a backlog in so many is a long one."""


def _lengths() -> dict[str, str]:
    return {"BENCH_SHORT": f"compute:{round(turns_per_ms())}", "BENCH_LONG": f"sleep:{LONG_MS}"}


def beside_long(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Short tasks sent one by one, while long ones keep all children but one busy."""
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            marks = field.marks()
            with places.of(engine) as place:
                environment = {"HOLDFAST_URL": place.url, **_lengths()}
                with MeasuredWorker(_FOUR, marks=marks, environment=environment) as worker:
                    returned = _send_beside(place, marks, worker, sizes.seconds * 4)
            runs = [run for run in marks.read() if run.number in returned]
            waits = [(run.began_ns - returned[run.number]) / 1e6 for run in runs]
            yield at_most(
                "1 ms beside 2 s, one queue: wait of the short, p99",
                engine,
                quantile(waits, 0.99),
                20.0,
                unit="ms",
                detail=(
                    f"p50 {quantile(waits, 0.5):.1f}, longest {max(waits):.1f} ms of {len(waits)}; "
                    f"{_LONG_AT_ONCE} of {CHILDREN} children busy with long ones"
                ),
            )


def _send_beside(
    place: Place, marks: Marks, worker: MeasuredWorker, seconds: float
) -> dict[int, int]:
    """When each short task's send had returned, but for those that made the lengths known."""
    returned: dict[int, int] = {}
    with Holdfast(place.url) as app:

        @app.task("bench.short")
        def short(number: int) -> int:
            return number

        @app.task("bench.long")
        def long(number: int) -> int:
            return number

        known = 20
        short.send_many([(number,) for number in range(known)])
        long.send(_FIRST_LONG)
        worker.wait_for(known + 1, PATIENCE_S)
        sent_long, number, until = 1, known, monotonic() + seconds
        while monotonic() < until:
            ended = sum(run.number >= _FIRST_LONG for run in marks.read())
            while sent_long - ended < _LONG_AT_ONCE:
                long.send(_FIRST_LONG + sent_long)
                sent_long += 1
            short.send(number)
            returned[number] = monotonic_ns()
            number += 1
            sleep(random.uniform(0.01, 0.03))
        worker.wait_for(number + sent_long, PATIENCE_S)
    return returned


def backlog(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """A backlog in which one task in a hundred takes two seconds: no child idles beside it."""
    yield from _idling(
        places,
        sizes,
        "1 ms and 2 s, one backlog: longest idle",
        sizes.mixed,
        _fill_mixed,
        _lengths(),
    )


def varying(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """A backlog of one task whose lengths vary a hundredfold."""
    varies = {WORK: f"vary:{_SHORTEST_MS}"}
    yield from _idling(
        places, sizes, "1 to 100 ms, one task: longest idle", sizes.mixed // 2, fill, varies
    )


def _fill_mixed(place: Place, count: int) -> None:
    """Short tasks, and in the middle of each hundred a long one."""
    with Holdfast(place.url) as app:

        @app.task("bench.short")
        def short(number: int) -> int:
            return number

        @app.task("bench.long")
        def long(number: int) -> int:
            return number

        for first in range(0, count, _ONE_IN):
            middle = min(first + _ONE_IN // 2, count - 1)
            short.send_many([(number,) for number in range(first, middle)])
            long.send(middle)
            end = min(first + _ONE_IN, count)
            short.send_many([(number,) for number in range(middle + 1, end)])


def _idling(
    places: Places, sizes: Sizes, title: str, count: int, fill: Fill, work: dict[str, str]
) -> Iterator[Figure]:
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            longest: list[float] = []
            lost: list[float] = []
            for _ in range(min(ROUNDS, sizes.drains)):
                runs = field.ours(engine, count, work, arguments=_FOUR, fill=fill)
                found = idle_ms(runs, CHILDREN)
                longest.append(max(found))
                took = (runs[-1].at_ns - min(run.began_ns for run in runs)) / 1e6
                lost.append(sum(found) / (CHILDREN * took))
            yield at_most(
                title,
                engine,
                longest,
                20.0,
                unit="ms",
                detail=f"of a child while tasks waited; {median(lost):.1%} of the time in all",
            )
