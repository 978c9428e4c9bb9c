"""No-op tasks under limits and with keys, drained by a real worker, beside the same without.

Nothing binds: the limits are wide enough for one worker. What is measured is what it costs to keep
them. The kinds take turns; a share is taken within a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median

from bench.figure import Figure, Sizes, at_least
from bench.place import ENGINES, Place, Places
from bench.worker.field import Field, fill, rate
from holdfast import Holdfast, Limit
from holdfast.client.control import Control
from holdfast.store.settings import Engine

KEYS = 100
_TURNS = 5
_BOUND = 0.5
_QUEUE, _TASK = "default", "bench.mark"


def limited(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """What a worker drains under each kind of limit, as a share of what it drains without."""
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            yield from _of(field, engine, sizes)


def _of(field: Field, engine: Engine, sizes: Sizes) -> Iterator[Figure]:
    names = ["", *KINDS]
    rates: dict[str, list[float]] = {name: [] for name in names}
    for number in range(min(_TURNS, sizes.drains)):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            filled = KINDS.get(name, fill)
            rates[name].append(rate(field.ours(engine, sizes.drained, fill=filled)))
    plain = rates.pop("")
    for name, found in rates.items():
        yield at_least(
            f"no-op tasks drained under {name}",
            engine,
            [one / other for one, other in zip(found, plain, strict=True)],
            _BOUND,
            detail=f"{median(found):,.0f}/s against {median(plain):,.0f}/s without",
        )


def _with(choose: Callable[[Control], object]) -> Callable[[Place, int], None]:
    def filled(place: Place, count: int) -> None:
        with Holdfast(place.url) as app:
            choose(app.control)
        fill(place, count)

    return filled


def _with_keys(place: Place, count: int, limit: Limit | None = None) -> None:
    with Holdfast(place.url) as app:
        app.control.queues.limit(_QUEUE, limit)

        @app.task(_TASK)
        def marked(number: int) -> int:
            return number

        for key in range(KEYS):
            of_key = marked.options(concurrency_key=f"key-{key}")
            of_key.send_many([(number,) for number in range(key, count, KEYS)])


KINDS: dict[str, Callable[[Place, int], None]] = {
    "a queue's concurrency of 100": _with(
        lambda control: control.queues.limit(_QUEUE, Limit(concurrency=100))
    ),
    "a task's concurrency of 100": _with(
        lambda control: control.tasks.limit(_TASK, Limit(concurrency=100))
    ),
    "a rate": _with(
        lambda control: control.queues.limit(_QUEUE, Limit(rate="100000/s", burst=1000))
    ),
    f"{KEYS} keys": _with_keys,
    f"{KEYS} keys of concurrency 10": partial(
        _with_keys, limit=Limit(per_key=Limit(concurrency=10))
    ),
}
