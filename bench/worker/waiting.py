"""Tasks that wait: many processes that sleep, and one event loop with hundreds of coroutines.

What is possible follows from the lengths alone: nothing here keeps a processor busy but the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from bench.figure import Figure, Sizes, absent
from bench.peers.roster import CELERY, HUEY, PGQUEUER, TASKIQ, Peer
from bench.peers.work import WORK
from bench.place import ENGINES, Places
from bench.worker.contest import Contest, Runner
from bench.worker.field import Field, command, fill

SLEEP_MS = 20
CHILDREN = 16
AWAIT_MS = 100
COROUTINES = 500

_APP = "bench.worker.program_async:app"
_ASYNC = "bench.mark-async"

# One process, and as many at a time as ours.
_AWAITING = (
    replace(PGQUEUER, worker=(*PGQUEUER.worker, "--max-concurrent-tasks", str(COROUTINES))),
    replace(TASKIQ, worker=(*TASKIQ.worker, "--max-async-tasks", str(COROUTINES))),
)


def sleeping(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Sleeps of 20 ms in sixteen children."""
    with ExitStack() as undo:
        field = Field(places, undo)
        work = {WORK: f"sleep:{SLEEP_MS}"}
        arguments = command("-c", str(CHILDREN))
        ours = [
            Runner(
                "Holdfast",
                engine,
                partial(field.ours, engine, environment=work, arguments=arguments),
                CHILDREN,
            )
            for engine in ENGINES
        ]
        missing = field.missing_of((HUEY, CELERY), wanted=sizes.peers)
        theirs = [
            Runner(
                peer.name,
                peer.needs,
                partial(field.theirs, peer, environment=work, processes=CHILDREN),
                CHILDREN,
                peer,
            )
            for peer in (HUEY, CELERY)
            if peer not in missing
        ]
        title = f"sleeping {SLEEP_MS} ms, -c {CHILDREN}"
        yield from _contest(title, [*ours, *theirs], CHILDREN / SLEEP_MS, missing, sizes)


def awaiting(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Awaited sleeps of 100 ms, 500 at a time in one event loop."""
    with ExitStack() as undo:
        field = Field(places, undo)
        work = {WORK: f"sleep:{AWAIT_MS}"}
        arguments = command("-c", "1", "--coroutines", str(COROUTINES), app=_APP)
        ours = [
            Runner(
                "Holdfast",
                engine,
                partial(
                    field.ours,
                    engine,
                    environment=work,
                    arguments=arguments,
                    fill=partial(fill, name=_ASYNC),
                ),
                COROUTINES,
            )
            for engine in ENGINES
        ]
        missing = field.missing_of(_AWAITING, wanted=sizes.peers)
        theirs = [
            Runner(
                peer.name,
                peer.needs,
                partial(field.theirs, peer, environment=work, processes=1),
                COROUTINES,
                peer,
            )
            for peer in _AWAITING
            if peer not in missing
        ]
        title = f"awaiting {AWAIT_MS} ms, {COROUTINES} at a time"
        yield from _contest(title, [*ours, *theirs], COROUTINES / AWAIT_MS, missing, sizes)


def _contest(
    title: str, runners: list[Runner], per_ms: float, missing: dict[Peer, str], sizes: Sizes
) -> Iterator[Figure]:
    ideal = per_ms * 1e3
    contest = Contest(title, runners, lambda _: ideal, sizes)
    contest.hold(ideal)
    yield from contest.figures(0.95)
    for peer, reason in missing.items():
        yield absent(f"{title}, by {peer.name}", peer.needs, None, reason)
