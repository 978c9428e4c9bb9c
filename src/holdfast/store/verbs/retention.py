"""prune: forgetting ended tasks and old snapshots, in small batches.

Owns retention, and whose turn the walk is. It walks `tasks` by primary key in pages, because an
index on the time of ending would cost every finish. A page is read; only what is past its time is
locked, looked at again, and removed in one short transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.statistics import Level
from holdfast.store import rows
from holdfast.store.op import At, Statement, Steps, alone, reads, writes
from holdfast.store.verbs.claims import writable
from holdfast.store.verbs.operate import remove

START = bytes(16)
_WALK = "walk"


class Pruned(NamedTuple):
    """One page of the walk."""

    examined: int
    removed: int
    next: bytes | None
    """Where the next page starts; None when the walk is over."""


class Looked(NamedTuple):
    """One page of the walk, only looked at."""

    past: int
    """How many tasks of it are past their time."""
    next: bytes | None
    """Where the next page starts; None when the walk is over."""


@reads
def look(
    after: bytes = START,
    *,
    before: int | None,
    dead_before: int | None = None,
    page: int = 500,
) -> Steps[Looked]:
    """What `prune` would find; nothing is locked or changed."""
    found = yield _prunable(after, before, dead_before, page)
    more = rows.last_id(found, 1, page)
    return Looked(sum(bool(row[2]) for row in found), more)


@writes
def prune(
    after: bytes = START,
    *,
    before: int | None,
    dead_before: int | None = None,
    page: int = 500,
) -> Steps[Pruned]:
    """Remove those tasks of one page that ended before `before`; dead letters have their own
    time, and None keeps forever."""
    found = yield _prunable(after, before, dead_before, page)
    more = rows.last_id(found, 1, page)
    past = [rows.key(row[0]) for row in found if row[2]]
    if not past:
        return Pruned(len(found), 0, more)
    ours = yield from writable(past)
    # One may have been resubmitted in between.
    again = yield _prunable(after, before, dead_before, page)
    removed = yield from remove([row for row in again if row[2] and rows.key(row[0]) in ours])
    return Pruned(len(found), len(removed), more)


def _prunable(after: bytes, before: int | None, dead_before: int | None, page: int) -> Statement:
    return Statement(
        "prunable",
        {
            "after": after,
            "before": None if before is None else At(before),
            "dead_before": None if dead_before is None else At(dead_before),
            "page": page,
        },
    )


@alone
def take_walk(*, every_us: int, stale_us: int) -> Steps[bytes | None]:
    """Take the turn to walk, if it is due and nobody is walking; where to begin.

    One walk serves all workers. It is due `every_us` after the last one ended; one whose walker
    has not been heard of for `stale_us` is taken over where it was.
    """
    found = yield Statement(
        "take_walk",
        {"name": _WALK, "every_us": every_us, "stale_us": stale_us, "start": START.hex()},
    )
    if not found:
        return None
    try:
        place = bytes.fromhex(found[0][0])
    except ValueError:
        place = b""
    # Something else in its place was written by hand: the walk begins anew.
    return place if len(place) == len(START) else START


@alone
def note_walk(after: bytes | None) -> Steps[None]:
    """Say how far the walk has come; None: it is over."""
    yield Statement("note_walk", {"name": _WALK, "value": None if after is None else after.hex()})


@writes
def prune_workflow(*, before: int, dead_before: int | None, batch: int = 500) -> Steps[int]:
    """Remove steps of a workflow that ended before `before`, and at last the workflow; how much.

    None at all: there are no more. One with a dead letter among its steps is kept for as long as
    that.
    """
    found = yield Statement(
        "prunable_workflow",
        {"before": At(before), "dead_before": None if dead_before is None else At(dead_before)},
    )
    if not found:
        return 0
    id = rows.uuid(found[0][0])
    steps = yield Statement("removable_steps", {"id": id, "batch": batch})
    removed = yield from remove(steps)
    if len(steps) < batch:
        gone = yield Statement("delete_workflow", {"id": id})
        return len(removed) + len(gone)
    return len(removed)


@writes
def prune_worker_states(*, before: int, batch: int = 1000) -> Steps[int]:
    """Remove snapshots older than `before`; fewer than `batch`: all of them."""
    found = yield Statement("prune_worker_states", {"before": At(before), "batch": batch})
    return len(found)


@writes
def prune_stats(*, level: Level, before: int, batch: int = 1000) -> Steps[int]:
    """Remove counters of a level before `before`; fewer than `batch`: all of them."""
    found = yield Statement("prune_stats", {"level": level, "before": At(before), "batch": batch})
    return len(found)


@writes
def prune_depths(*, level: Level, before: int, batch: int = 1000) -> Steps[int]:
    """Remove depths of a level before `before`; fewer than `batch`: all of them."""
    found = yield Statement("prune_depths", {"level": level, "before": At(before), "batch": batch})
    return len(found)


@writes
def prune_workers(*, before: int) -> Steps[int]:
    """Forget workers last seen before `before`."""
    found = yield Statement("prune_workers", {"before": At(before)})
    return len(found)
