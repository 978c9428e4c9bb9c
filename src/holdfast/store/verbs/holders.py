"""Who holds a row, or a table: another transaction that keeps us from writing.

Owns the question, for the log. Nothing is decided by the answer: it may be outdated when it
arrives, and what it shows of other users' sessions depends on our rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store import rows
from holdfast.store.op import Statement, Steps, Uuids, reads


class Holder(NamedTuple):
    """A transaction that has not ended."""

    pid: int | None
    """The server's process that runs it; None for a prepared transaction."""
    gid: str | None
    """The name of a prepared transaction."""
    user: str | None
    application: str | None
    state: str | None
    since: int | None
    """When it began."""


class TableLock(NamedTuple):
    """Another transaction locks a whole table against writes."""

    table: str
    mode: str
    """In PostgreSQL's words."""
    holder: Holder


class Holders(NamedTuple):
    """Who holds what."""

    by_row: dict[bytes, Holder]
    """By the id of a task, or the token of a lease."""
    suspected: list[Holder]
    """Open transactions that have written or locked tasks, the oldest first."""
    tables: list[TableLock]
    """Locks of whole tables, the oldest first. If there are any, rows were not looked at."""


@reads
def holders(ids: Sequence[bytes], tokens: Sequence[bytes] = ()) -> Steps[Holders]:
    """Who holds the rows of these tasks and leases right now, as far as it can be seen."""
    locks = yield Statement("table_holders", {})
    tables = [TableLock(table, mode, Holder(*fields)) for table, mode, *fields in locks]
    answer = Holders({}, [], tables)
    if answer.tables:
        # To look at rows of a locked table would be to wait for it.
        return answer
    found = yield Statement("holders", {"ids": Uuids(ids), "tokens": Uuids(tokens)})
    for row_id, *fields in found:
        holder = Holder(*fields)
        if row_id is None:
            answer.suspected.append(holder)
        else:
            answer.by_row.setdefault(rows.uuid(row_id), holder)
    return answer
