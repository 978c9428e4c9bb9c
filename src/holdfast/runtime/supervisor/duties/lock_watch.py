"""The lock watch: says in the log who holds a row or a table that this worker has to write.

Owns the words. It asks the server only when something has been held for seconds, and is never
in the way of those who write.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from time import monotonic

from holdfast.core.errors import StoreError
from holdfast.runtime.supervisor.state.blocked_rows import HeldRow, HeldRows
from holdfast.store.protocol import Store
from holdfast.store.verbs.holders import Holder, Holders, holders

log = logging.getLogger("holdfast.worker")

_MOST = 20
"""Rows that are named one by one."""
_SUSPECTS = 3
_LOOK_AGAIN = 1.0


class LockWatch:
    """A duty: call `tick` from one thread only."""

    name = "lock_watch"

    def __init__(self, store: Store, held_rows: HeldRows) -> None:
        self._store = store
        self._held_rows = held_rows

    def tick(self) -> float:
        """Say what has been held for long."""
        due = self._held_rows.due()
        if due:
            self._say(due)
        return max(0.1, min(self._held_rows.until_due, _LOOK_AGAIN))

    def _say(self, due: list[HeldRow]) -> None:
        ids = [row.key for row in due if row.kind == "task"]
        tokens = [row.key for row in due if row.kind == "lease"]
        try:
            found = self._store.run(holders(ids, tokens))
        except StoreError:
            # It is away, or we may not know: then that is said without a name.
            found = Holders({}, [], [])
        for row in due[:_MOST]:
            alone = "" if found.tables or row.kind == "table" else ", and nothing else waits for it"
            log.warning(
                "%s has been held by another transaction for %.0f s: %s; it is tried again "
                "until that transaction ends%s",
                row.label,
                monotonic() - row.since,
                _who(row, found),
                alone,
            )
        if len(due) > _MOST:
            log.warning("%d more rows are held by other transactions", len(due) - _MOST)


def _who(row: HeldRow, found: Holders) -> str:
    if found.tables:
        first = found.tables[0]
        tables = dict.fromkeys(
            lock.table for lock in found.tables if lock.holder.pid == first.holder.pid
        )
        return f"{_described(first.holder)}, which has locked {', '.join(tables)} ({first.mode})"
    holder = found.by_row.get(row.key)
    if holder is not None:
        return _described(holder)
    if not found.suspected or row.kind == "table":
        return "who holds it cannot be seen"
    some = ", or ".join(map(_described, found.suspected[:_SUSPECTS]))
    return some if len(found.suspected) == 1 else f"by one of these: {some}"


def _described(holder: Holder) -> str:
    if holder.gid is not None:
        return f"the prepared transaction {holder.gid!r}"
    facts = [
        f"application_name {holder.application!r}" if holder.application else "",
        f"user {holder.user!r}" if holder.user else "",
        holder.state or "",
        "" if holder.since is None else f"in a transaction since {_clock(holder.since)}",
    ]
    return f"backend pid {holder.pid} ({', '.join(filter(None, facts)) or 'no more is shown'})"


def _clock(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1_000_000, UTC).isoformat(" ", "seconds")
