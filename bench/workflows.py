"""Workflows: what a step of a large one costs, and what a join of many results writes.

The store alone: a workflow of 10,000 steps against many of 100, and a join of 1,000
results of 1 KB against the same steps without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from secrets import token_hex

from bench import fill
from bench.figure import Figure, Sizes, at_most
from bench.lifecycle import take
from bench.place import ENGINES, PgConnection, Place, Places, connect_postgres
from bench.rounds import compare
from holdfast.core.identity import new_id
from holdfast.core.records import Submission
from holdfast.core.workflows.plan import StepEdge, StepPlan, WorkflowPlan
from holdfast.store.verbs import workflows
from holdfast.store.verbs.claims import Begin, start
from holdfast.store.verbs.finish import Completion, complete

_BATCH = 100
_SMALL = 100
_PID = 4711
_RESULT = 1_000
_JOINED = 1_000
_MEGABYTE = 1_000_000


def steps(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Submit, claim, start and complete each step of a diamond; large, and small as often."""
    large = sizes.small
    for engine in ENGINES:
        with places.of(engine) as one, places.of(engine) as many:
            found = compare(
                min(sizes.rounds, 3),
                partial(_run, one, large, 1),
                partial(_run, many, _SMALL, max(1, large // _SMALL)),
            )
        yield at_most(
            f"a step of a workflow of {large:,}, against {_SMALL}",
            engine,
            found.cost,
            1.5,
            detail=found.costs("in small ones"),
        )


def joins(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Bytes of write-ahead log that a join adds to the steps whose results it takes."""
    wide = min(_JOINED, sizes.small)
    with places.postgres() as place, connect_postgres(place) as connection:
        result = f'"{token_hex(_RESULT // 2)}"'
        _run(place, wide, 1, result=result)
        began = _position(connection)
        _run(place, wide, 1, join=True, result=result)
        between = _position(connection)
        _run(place, wide, 1, join=False, result=result)
        ended = _position(connection)
    added = ((between - began) - (ended - between)) / _MEGABYTE
    yield at_most(
        f"written by a join of {wide:,} results of 1 KB",
        "postgresql",
        added,
        1.0,
        unit=" MB",
        detail=f"{(ended - between) / _MEGABYTE:.2f} MB without it",
    )


def _run(place: Place, wide: int, times: int, *, join: bool = True, result: str = "1") -> int:
    done = 0
    for _ in range(times):
        place.store.run(workflows.start(_diamond(wide, join=join)))
        while tasks := take(place, _BATCH).tasks:
            begins = [Begin(task.key, task.token, _PID, "child") for task in tasks]
            place.store.run(start(begins, hostname="host"))
            ends = [
                Completion(task.key, task.token, result, _PID, in_workflow=True) for task in tasks
            ]
            done += len(place.store.run(complete(ends)))
    return done


def _diamond(wide: int, *, join: bool) -> WorkflowPlan:
    """A step, as many that wait for it, and one that waits for all of them."""
    first = [_step(0)]
    middle = [_step(number, 0) for number in range(1, wide - 1)]
    last = [_step(wide - 1, *range(1, wide - 1))] if join else []
    return WorkflowPlan(id=new_id(), name="bench", digest="", steps=(*first, *middle, *last))


def _step(number: int, *parents: int) -> StepPlan:
    task = Submission(
        id=new_id(),
        task_name=fill.NAME,
        version=1,
        queue_name=fill.QUEUE,
        priority=50,
        args="[]",
        kwargs="{}",
        enqueue_sha="sha",
        sent_at=0,
    )
    return StepPlan(f"s{number}", task, tuple(StepEdge(parent) for parent in parents))


def _position(connection: PgConnection) -> float:
    rows = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchall()
    return float(rows[0][0])
