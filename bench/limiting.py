"""Limits and keys: what they cost, and that nobody pays for what others have queued.

The store alone, without workers: a claim under limits against one without, and a claim past full
keys, or beside a large tenant, against the same claim with neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from secrets import token_bytes
from time import monotonic

from bench import fill
from bench.claiming import affordable
from bench.figure import Figure, Sizes, at_least, at_most
from bench.lifecycle import BATCH, LEASE_US, finish, work
from bench.place import ENGINES, Place, Places, connect_postgres, connect_sqlite
from bench.rounds import compare
from holdfast.core.limiting import LimitBook, queue_scope
from holdfast.core.options.limit import Limit
from holdfast.core.records import HEAD, Position
from holdfast.store.verbs import limited_claims, limits
from holdfast.store.verbs.claims import Request
from holdfast.store.verbs.key_walk import KeyPlace

FULL_KEYS = 100
_OTHER = {"postgresql": "'other-' || id", "sqlite": "'other-' || id"}
_FULL = {
    "postgresql": f"'full-' || (extract(microseconds FROM enqueued_at)::bigint % {FULL_KEYS})",
    "sqlite": f"'full-' || (enqueued_at % {FULL_KEYS})",
}


def throughput(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """claim + start + complete in batches of 100, in a queue with a limit and in one without."""
    for engine in ENGINES:
        with places.of(engine) as limited, places.of(engine) as plain:
            for place in (limited, plain):
                fill.pending(place, (sizes.rounds + 1) * sizes.batches * BATCH)
                fill.settle(place)
            book = _choose(limited, Limit(concurrency=10 * BATCH))
            found = compare(
                sizes.rounds,
                partial(_work, limited, book, sizes.batches),
                partial(work, plain, sizes.batches),
            )
        yield at_least(
            "claim + start + complete under a limit",
            engine,
            found.rate,
            0.5,
            detail=found.rates("without"),
        )


def full_keys(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks of keys that have all they may have, in front of those of other keys."""
    for engine in ENGINES:
        with places.of(engine) as crowded, places.of(engine) as plain:
            fill.pending(crowded, sizes.unknown)
            set_keys(crowded, _FULL[engine])
            crowd = KeyClaimer(crowded, _choose(crowded, Limit(per_key=Limit(concurrency=1))), 10)
            for _ in range(FULL_KEYS // 10):
                crowd.claim()
            fill.pending(crowded, sizes.small, first=sizes.unknown + 1)
            fill.pending(plain, sizes.small)
            for place in (crowded, plain):
                set_keys(place, _OTHER[engine])
                fill.settle(place)
            alone = KeyClaimer(plain, _choose(plain, Limit(per_key=Limit(concurrency=1))), 10)
            # A worker that has just begun has to come past them.
            crowd.turns = KeyPlace()
            began = monotonic()
            crowd.claim()
            passed = monotonic() - began
            count = affordable(sizes, 10)
            found = compare(
                sizes.rounds, partial(crowd.claims, count), partial(alone.claims, count)
            )
        yield at_most(
            f"claim of 10 behind {sizes.unknown:,} of full keys",
            engine,
            found.cost,
            5.0,
            detail=f"{found.costs('normally')}; the first took {passed * 1e3:.1f} ms",
        )


def tenants(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Two keys, one of them with very many tasks: each claim of two takes one of each."""
    for engine in ENGINES:
        with places.of(engine) as large, places.of(engine) as small:
            for place, count in ((large, sizes.finished), (small, sizes.small)):
                fill.pending(place, count)
                set_keys(place, "'a'")
                fill.pending(place, sizes.small, first=count + 1)
                set_keys(place, "'b'")
                fill.settle(place)
            count = affordable(sizes, 2)
            found = compare(
                sizes.rounds,
                partial(KeyClaimer(large, _book(large), 2).claims, count),
                partial(KeyClaimer(small, _book(small), 2).claims, count),
            )
        yield at_most(
            f"claim beside a tenant with {sizes.finished:,}",
            engine,
            found.cost,
            2.0,
            detail=found.costs(f"with {sizes.small:,}"),
        )


@dataclass
class KeyClaimer:
    """Claims tasks of keys, as a worker does: each time from where the last turn ended."""

    place: Place
    book: LimitBook
    wanted: int
    turns: KeyPlace = KeyPlace()

    def claim(self) -> None:
        """One claim, of all that is wanted."""
        op = limited_claims.claim_keys(_request(self.wanted), self.book, self.turns)
        found = self.place.store.run(op)
        number = len(found.claimed.tasks)
        assert number == self.wanted, f"a claim of {self.wanted} found {number}"
        self.turns = found.place

    def claims(self, count: int) -> int:
        """As many claims, one after the other."""
        for _ in range(count):
            self.claim()
        return count


def set_keys(place: Place, expression: str) -> None:
    """Give a key to every task that has none."""
    sql = f"UPDATE holdfast_tasks SET concurrency_key = {expression} WHERE concurrency_key IS NULL"
    if place.engine == "postgresql":
        with connect_postgres(place) as connection:
            connection.execute(sql.encode())
    else:
        raw = connect_sqlite(place)
        raw.execute(sql)
        raw.close()


def _choose(place: Place, limit: Limit) -> LimitBook:
    place.store.run(limits.choose(queue_scope(fill.QUEUE), (limit,)))
    return _book(place)


def _book(place: Place) -> LimitBook:
    return place.store.run(limits.book())


def _request(wanted: int, after: Position = HEAD) -> Request:
    return Request(
        token=token_bytes(16),
        worker_id="bench",
        queue=fill.QUEUE,
        known=[fill.KNOWN],
        wanted=wanted,
        lease_us=LEASE_US,
        after=after,
    )


def _work(place: Place, book: LimitBook, batches: int) -> int:
    done = 0
    after = HEAD
    for _ in range(batches):
        found = place.store.run(limited_claims.claim(_request(BATCH, after), book))
        after = found.claimed.last or HEAD
        done += finish(place, found.claimed)
    return done
