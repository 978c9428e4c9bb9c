"""Claims where it could hurt: large tables, tasks nobody here knows, somebody's open snapshot.

A claim is compared with the same claim on a small table without the trouble, in turn. The
claims are given back nothing: each takes the next tasks, as a worker would, from the place
that the worker's cursor says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from bench import fill
from bench.figure import Figure, Sizes, at_most
from bench.lifecycle import finish, take
from bench.place import ENGINES, Place, Places, connect_postgres
from bench.rounds import compare
from holdfast.runtime.supervisor.state.cursor import Cursor
from holdfast.store.verbs.claims import horizon

HINT_EVERY = 0.01
"""Seconds between the hints of a busy queue."""


@dataclass
class Claimer:
    """Claims as a worker does: where its cursor says, and hinted at all the time."""

    place: Place
    wanted: int
    cursor: Cursor = field(default_factory=Cursor)
    _hinted_at: float = 0.0

    def claim(self) -> int:
        """Claim until all that is wanted was found, or nothing is left; how many that were."""
        left = self.wanted
        while left and self.cursor.may_find(monotonic()):
            left -= self._look(left)
        return self.wanted - left

    def claims(self, count: int) -> int:
        """As many claims, one after the other."""
        for _ in range(count):
            found = self.claim()
            assert found == self.wanted, f"a claim of {self.wanted} found {found}"
        return count

    def _look(self, wanted: int) -> int:
        began = monotonic()
        if began - self._hinted_at > HINT_EVERY:
            self._hinted_at = began
            self.cursor.hinted()
        start = self.cursor.start(began)
        claimed = take(self.place, wanted, start)
        full = len(claimed.tasks) == wanted
        now = monotonic()
        end = claimed.last if full else self.place.store.run(horizon(fill.QUEUE, start))
        self.cursor.looked(end, full=full, now=now)
        return len(claimed.tasks)


def sizes_of_table(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """A claim of 100 does not see how much else there is."""
    for engine in ENGINES:
        for kind in ("pending", "finished"):
            with places.of(engine) as large, places.of(engine) as small:
                if kind == "finished":
                    fill.finished(large, sizes.large)
                    fill.pending(large, sizes.small, first=sizes.large + 1)
                else:
                    fill.pending(large, sizes.large)
                fill.pending(small, sizes.small)
                fill.settle(large)
                fill.settle(small)
                count = affordable(sizes, 100)
                found = compare(
                    sizes.rounds,
                    partial(Claimer(large, 100).claims, count),
                    partial(Claimer(small, 100).claims, count),
                )
            yield at_most(
                f"claim of 100 with {sizes.large:,} {kind}",
                engine,
                found.cost,
                1.5,
                detail=found.costs(f"with {sizes.small:,}"),
            )


def unknown_names(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks that this worker does not know, ahead of all others in the queue."""
    for engine in ENGINES:
        with places.of(engine) as crowded, places.of(engine) as plain:
            fill.pending(crowded, sizes.unknown, name=fill.UNKNOWN)
            fill.pending(crowded, sizes.small, first=sizes.unknown + 1)
            fill.pending(plain, sizes.small)
            fill.settle(crowded)
            fill.settle(plain)
            claimer = Claimer(crowded, 10)
            # Once, the worker has to come past them.
            began = monotonic()
            claimer.claim()
            passed = monotonic() - began
            count = affordable(sizes, 10)
            found = compare(
                sizes.rounds,
                partial(claimer.claims, count),
                partial(Claimer(plain, 10).claims, count),
            )
        yield at_most(
            f"claim of 10 behind {sizes.unknown:,} unknown",
            engine,
            found.cost,
            5.0,
            detail=f"{found.costs('normally')}; the first took {passed:.1f} s",
        )


def open_snapshot(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """A snapshot that somebody keeps open: what was claimed since stays in the index."""
    with places.postgres() as held, places.postgres() as plain, connect_postgres(held) as other:
        fill.pending(held, sizes.finished + sizes.small)
        fill.pending(plain, sizes.small)
        fill.settle(held)
        fill.settle(plain)
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM holdfast_leases")
        claimer = Claimer(held, 10)
        _finish(held, claimer.cursor, sizes.finished)
        count = affordable(sizes, 10)
        found = compare(
            sizes.rounds,
            partial(claimer.claims, count),
            partial(Claimer(plain, 10).claims, count),
        )
        other.execute("COMMIT")
    yield at_most(
        f"claim of 10, snapshot of {sizes.finished:,} tasks",
        "postgresql",
        found.cost,
        5.0,
        detail=found.costs("normally"),
    )


def _finish(place: Place, cursor: Cursor, count: int) -> None:
    """Finish this many tasks as quickly as it goes."""
    while count > 0:
        began = monotonic()
        start = cursor.start(began)
        claimed = take(place, min(count, 500), start)
        now = monotonic()
        cursor.looked(claimed.last, full=True, now=now)
        count -= finish(place, claimed)


def affordable(sizes: Sizes, wanted: int) -> int:
    """How many claims a round may make of the small table."""
    return max(1, min(sizes.claims, sizes.small // wanted // (sizes.rounds + 2)))
