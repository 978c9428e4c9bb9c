"""SQLite between processes: what a send waits for while others drain, and who gets how much.

Owns the processes. Each opens the file for itself, as workers and clients do.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from time import monotonic, perf_counter

from bench import fill
from bench.figure import Figure, Sizes, at_least, at_most
from bench.lifecycle import BATCH, finish, take
from bench.place import Place, Places
from bench.rounds import quantile
from bench.sending import thumbnails
from holdfast.core.records import HEAD
from holdfast.store.open import open_store
from holdfast.store.settings import parse_url

FOUR = 4
# Twice what one machine drained at its best.
_TASKS_PER_SECOND = 60_000

_spawn = multiprocessing.get_context("spawn")


def send_beside(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """One process drains as fast as it can; another sends, and each send waits for its turn."""
    waits: list[float] = []
    with places.sqlite() as place:
        fill.pending(place, int(sizes.seconds * _TASKS_PER_SECOND))
        with _draining(place, 1, sizes.seconds) as drained, thumbnails(place) as task:
            until = monotonic() + sizes.seconds
            while monotonic() < until:
                began = perf_counter()
                task.send("photo-0123456789.png", 640, 480, 85)
                waits.append(perf_counter() - began)
        (done,) = drained
    yield at_most(
        "send beside a process that drains, p99",
        "sqlite",
        quantile(waits, 0.99) * 1e3,
        60.0,
        unit=" ms",
        detail=(
            f"p50 {quantile(waits, 0.5) * 1e3:.1f} ms, longest {max(waits) * 1e3:.1f} ms of "
            f"{len(waits)}; drained {done / sizes.seconds:,.0f}/s"
        ),
    )


def fair_shares(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Four processes drain one file; the share of the one that gets least."""
    with places.sqlite() as place:
        fill.pending(place, int(sizes.seconds * _TASKS_PER_SECOND))
        with _draining(place, FOUR, sizes.seconds) as drained:
            pass
    least = min(drained) / (sum(drained) / FOUR) if sum(drained) else 0.0
    yield at_least(
        "four processes draining: least of a fair share",
        "sqlite",
        least,
        0.5,
        detail=f"{' '.join(f'{done / sizes.seconds:,.0f}' for done in drained)} tasks/s",
    )


@contextmanager
def _draining(place: Place, count: int, seconds: float) -> Iterator[list[int]]:
    """That many processes drain while the block runs, all from the same moment on.

    Afterwards the list holds how many tasks each has done in `seconds`.
    """
    go = _spawn.Event()
    answers: SimpleQueue[int] = _spawn.SimpleQueue()
    processes = [
        _spawn.Process(target=_drain, args=(place.url, seconds, go, answers), daemon=True)
        for _ in range(count)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        # Each says when it is ready.
        answers.get()
    go.set()
    drained: list[int] = []
    yield drained
    drained += [answers.get() for _ in processes]
    for process in processes:
        process.join()


def _drain(url: str, seconds: float, go: Event, answers: SimpleQueue[int]) -> None:
    settings = parse_url(url)
    with closing(open_store(settings)) as store:
        place = Place("sqlite", store, settings.address)
        answers.put(0)
        go.wait()
        done = 0
        after = HEAD
        until = monotonic() + seconds
        while monotonic() < until:
            claimed = take(place, BATCH, after)
            after = claimed.last or HEAD
            done += finish(place, claimed)
        answers.put(done)
