"""claim + start + complete in batches of 100: against hand-written SQL doing the same writes.

Owns the way a worker drains a queue, without running anything: what remains is the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from secrets import token_bytes

from bench import fill
from bench.figure import Figure, Sizes, at_least
from bench.place import ENGINES, Place, Places, connect_postgres, connect_sqlite
from bench.raw import Raw, drain
from bench.raw_postgres import RawPostgres
from bench.raw_sqlite import RawSqlite
from bench.rounds import compare
from holdfast.core.records import HEAD, Claimed, Position
from holdfast.store.verbs.claims import Begin, Request, claim, start
from holdfast.store.verbs.finish import Completion, complete

BATCH = 100
LEASE_US = 30_000_000


def take(place: Place, wanted: int, after: Position = HEAD) -> Claimed:
    """One claim, as a worker makes it."""
    return place.store.run(
        claim(
            Request(
                token=token_bytes(16),
                worker_id="bench",
                queue=fill.QUEUE,
                known=[fill.KNOWN],
                wanted=wanted,
                lease_us=LEASE_US,
                after=after,
            )
        )
    )


def finish(place: Place, claimed: Claimed) -> int:
    """Start and complete what was claimed; how many that were."""
    begins = [Begin(task.key, task.token, 4711, "child") for task in claimed.tasks]
    place.store.run(start(begins, hostname="host"))
    done = [Completion(task.key, task.token, fill.RESULT, 4711) for task in claimed.tasks]
    return len(place.store.run(complete(done)))


def work(place: Place, batches: int, size: int = BATCH) -> int:
    """claim, start and complete, as many batches; how many tasks that were.

    Each claim begins where the last one ended, as the claimer does it.
    """
    done = 0
    after = HEAD
    for _ in range(batches):
        claimed = take(place, size, after)
        after = claimed.last or HEAD
        done += finish(place, claimed)
    return done


def open_raw(place: Place) -> Raw:
    """The hand-written counterpart on the same database."""
    if place.engine == "postgresql":
        return RawPostgres(connect_postgres(place))
    return RawSqlite(connect_sqlite(place))


def benchmark(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """As many batches of each, in turn."""
    for engine in ENGINES:
        with places.of(engine) as ours, places.of(engine) as theirs:
            for place in (ours, theirs):
                fill.pending(place, (sizes.rounds + 1) * sizes.batches * BATCH)
                fill.settle(place)
            raw = open_raw(theirs)
            found = compare(
                sizes.rounds,
                partial(work, ours, sizes.batches),
                partial(drain, raw, sizes.batches, BATCH),
            )
            raw.close()
        yield at_least(
            "claim + start + complete, batches of 100",
            engine,
            found.rate,
            0.6,
            detail=found.rates(),
        )
