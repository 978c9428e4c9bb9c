"""prune: forgetting ended tasks and old snapshots, in small batches.

Owns retention. It walks `tasks` by primary key in pages, because an index on the time of
ending would cost every finish; a page is one short transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.store import rows
from holdfast.store.op import At, Statement, Steps, writes
from holdfast.store.verbs.operate import remove

START = bytes(16)


class Pruned(NamedTuple):
    """One page of the walk."""

    examined: int
    removed: int
    next: bytes | None
    """Where the next page starts; None when the walk is over."""


@writes
def prune(
    after: bytes = START,
    *,
    before: int | None,
    dead_before: int | None = None,
    page: int = 500,
) -> Steps[Pruned]:
    """Remove those tasks of one page that ended before `before`; dead letters have their own
    time, and None keeps for ever."""
    found = yield Statement(
        "prunable",
        {
            "after": after,
            "before": None if before is None else At(before),
            "dead_before": None if dead_before is None else At(dead_before),
            "page": page,
        },
    )
    removed = yield from remove([row for row in found if row[2]])
    more = rows.uuid(found[-1][1]) if len(found) == page else None
    return Pruned(len(found), len(removed), more)


@writes
def prune_worker_states(*, before: int, batch: int = 1000) -> Steps[int]:
    """Remove snapshots older than `before`; fewer than `batch`: all of them."""
    found = yield Statement("prune_worker_states", {"before": At(before), "batch": batch})
    return len(found)


@writes
def prune_workers(*, before: int) -> Steps[int]:
    """Forget workers last seen before `before`."""
    found = yield Statement("prune_workers", {"before": At(before)})
    return len(found)
