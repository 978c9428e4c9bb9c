"""Sixty thousand no-op tasks in a queue: ours on both databases, and PgQueuer, in the same turns.

With an argument and a result of 1 KB, ours is compared with itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median

from bench.figure import Figure, Sizes, absent, at_least
from bench.peers.mark import Mark
from bench.peers.roster import PGQUEUER
from bench.place import ENGINES, Place, Places
from bench.worker.field import FAILURES, Field, rate
from holdfast import Holdfast
from holdfast.store.settings import Engine

BYTES = 1_024
_TURNS = 4
_AT_ONCE = 5_000
_BOUNDS: dict[Engine, float] = {"postgresql": 2.5, "sqlite": 3.0}


def deep(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Drains, as multiples of PgQueuer's; those with 1 KB, as a share of those without."""
    with ExitStack() as undo:
        field = Field(places, undo)
        failed = field.missing(PGQUEUER, wanted=sizes.peers)
        drains: dict[str, Callable[[], float]] = {}
        for engine in ENGINES:
            plain = partial(field.ours, engine, sizes.deep)
            drains[engine] = partial(_rate, plain)
            drains[f"{engine} 1 KB"] = partial(_rate, partial(plain, fill=_fill_texts))
        if not failed:
            drains["peer"] = partial(_rate, partial(field.theirs, PGQUEUER, sizes.deep))
        rates: dict[str, list[float]] = {name: [] for name in drains}
        names = list(drains)
        for number in range(min(_TURNS, sizes.drains)):
            for name in names[number:] + names[:number]:
                try:
                    rates[name].append(drains[name]())
                except FAILURES as error:
                    if name != "peer":
                        raise
                    failed = str(error)
                    names.remove(name)
        yield from _figures(rates, failed, sizes)


def _figures(rates: dict[str, list[float]], failed: str, sizes: Sizes) -> Iterator[Figure]:
    for engine in ENGINES:
        speed = f"{median(rates[engine]):,.0f}/s"
        title = f"{sizes.deep:,} no-op tasks drained, of PgQueuer"
        if failed:
            yield absent(title, engine, _BOUNDS[engine], f"ours {speed}; {failed}")
        else:
            yield at_least(
                title,
                engine,
                _over(rates[engine], rates["peer"]),
                _BOUNDS[engine],
                unit="x",
                detail=f"{speed} against {median(rates['peer']):,.0f}/s",
            )
        large = rates[f"{engine} 1 KB"]
        yield at_least(
            "the same with 1 KB in and 1 KB out, of those without",
            engine,
            _over(large, rates[engine]),
            0.7,
            detail=f"{median(large):,.0f}/s of {speed}",
        )


def _over(mine: list[float], others: list[float]) -> list[float]:
    return [one / other for one, other in zip(mine, others, strict=True)]


def _rate(drain: Callable[[], list[Mark]]) -> float:
    return rate(drain())


def _fill_texts(place: Place, count: int) -> None:
    with Holdfast(place.url) as app:

        @app.task("bench.mark-text")
        def text(number: int, content: str) -> str:
            return content

        for first in range(0, count, _AT_ONCE):
            end = min(first + _AT_ONCE, count)
            # Nothing in common, or a database that compresses would have it easy.
            text.send_many([(number, _content(number)) for number in range(first, end)])


def _content(number: int) -> str:
    return random.Random(number).randbytes(BYTES // 2).hex()
