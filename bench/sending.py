"""Sends: alone, in bulk, and many at once.

Ours is the whole way of `task.send`: arguments checked against the signature, encoded and
hashed, an id, one durable commit, a hint to the workers. The counterpart writes the same
columns of the same table, and knows its JSON already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from bench import raw as hand_written
from bench.figure import Figure, Sizes, at_least
from bench.lifecycle import open_raw
from bench.place import ENGINES, Place, Places
from bench.raw import Raw
from bench.rounds import compare
from holdfast import Holdfast, Task
from holdfast.store.settings import Engine

BULK = 1_000

Thumbnail = Task[[str, int, int, int], str]


@contextmanager
def thumbnails(place: Place) -> Iterator[Thumbnail]:
    """A task of an application on this database."""
    app = Holdfast(place.url)

    @app.task("bench.noop")
    def noop(path: str, width: int, height: int, quality: int = 75) -> str:
        return path

    with app:
        yield noop


def send(task: Thumbnail, count: int) -> int:
    for _ in range(count):
        task.send("photo-0123456789.png", 640, 480, 85)
    return count


def send_bulk(task: Thumbnail, batches: int) -> int:
    calls = [("photo-0123456789.png", 640, 480, 85)] * BULK
    for _ in range(batches):
        task.send_many(calls)
    return batches * BULK


def insert(raw: Raw, engine: Engine, count: int) -> int:
    for _ in range(count):
        raw.insert(hand_written.row(engine))
    return count


def insert_bulk(raw: Raw, engine: Engine, batches: int) -> int:
    for _ in range(batches):
        raw.insert_many([hand_written.row(engine) for _ in range(BULK)])
    return batches * BULK


@contextmanager
def threads(task: Thumbnail, senders: int, each: int) -> Iterator[Callable[[], int]]:
    """Threads that are started once, in the round that is not counted."""
    with ThreadPoolExecutor(senders) as pool:
        yield lambda: sum(pool.map(partial(send, task), [each] * senders))


@contextmanager
def coroutines(task: Thumbnail, senders: int, each: int) -> Iterator[Callable[[], int]]:
    async def one() -> None:
        for _ in range(each):
            await task.asend("photo-0123456789.png", 640, 480, 85)

    async def together() -> int:
        await asyncio.gather(*(one() for _ in range(senders)))
        return senders * each

    with asyncio.Runner() as runner:
        yield lambda: runner.run(together())


def alone(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """One send, one commit."""
    for engine in ENGINES:
        with places.of(engine) as ours, places.of(engine) as theirs, thumbnails(ours) as task:
            raw = open_raw(theirs)
            found = compare(
                sizes.rounds,
                partial(send, task, sizes.sends),
                partial(insert, raw, engine, sizes.sends),
            )
            raw.close()
        yield at_least("send", engine, found.rate, 0.7, detail=found.rates("INSERT, COMMIT"))


def bulk(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """A thousand in one transaction."""
    ways = {"postgresql": "COPY binary", "sqlite": "executemany"}
    for engine in ENGINES:
        with places.of(engine) as ours, places.of(engine) as theirs, thumbnails(ours) as task:
            raw = open_raw(theirs)
            found = compare(
                sizes.rounds,
                partial(send_bulk, task, sizes.bulk_batches),
                partial(insert_bulk, raw, engine, sizes.bulk_batches),
            )
            raw.close()
        yield at_least(
            "send_many of 1,000", engine, found.rate, 0.5, detail=found.rates(ways[engine])
        )


def together(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Many senders at once: commits are shared, and each sender waits for its own."""
    for engine in ENGINES:
        for way in (threads, coroutines):
            with (
                places.of(engine) as place,
                thumbnails(place) as task,
                way(task, sizes.senders, sizes.sends_per_sender) as send_together,
            ):
                found = compare(sizes.rounds, send_together, partial(send, task, sizes.sends // 3))
            yield at_least(
                f"{sizes.senders} {way.__name__} sending at once",
                engine,
                found.rate,
                4.0,
                detail=found.rates("one sender"),
            )
