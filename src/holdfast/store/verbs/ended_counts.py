"""Counting tasks that end without a run of this worker's: cancelled, expired, dropped, skipped.

Owns that each such end is counted once, in the transaction that makes it. (Runs are counted by the
worker that made them, with their times; `verbs/statistics.py` owns what becomes of both.) On
PostgreSQL the count stands under the id of the first of these tasks, whose row the transaction
holds: so no two transactions ever wait for each other's counters.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.identity import as_text
from holdfast.store.op import Statement, Steps, Uuids


def count_ended(ids: Iterable[bytes]) -> Steps[None]:
    """Count those of these tasks that have just ended, by the status they ended in."""
    ended = Uuids(sorted(set(ids)))
    if ended:
        yield Statement("count_ended", {"ids": ended, "counted_by": as_text(ended[0])})
