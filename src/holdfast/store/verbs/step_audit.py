"""The audit of workflows: counts that are not what there is are counted anew.

Owns the walk over scopes, which only reads, and the mending of one scope. No verb leaves such
counts behind; somebody who writes or deletes rows by hand does, and a whole that counts wrongly
never ends. Ends that are under way cannot come in between: each changes its count row in its own
transaction, and the rows are locked while they are counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.store import rows
from holdfast.store.op import Column, Row, Statement, Steps, Table, Uuids, reads, writes
from holdfast.store.verbs import step_counts
from holdfast.store.verbs.dependents import resolve

_PAGE = 500
_MOST_ROWS = 64
"""Count rows of live workflows on one page; each stands for up to 64 steps."""
_COUNT_COLUMNS = {
    "scope_id": Column.UUID,
    "part": Column.INT,
    "is_tail": Column.BOOL,
    "open": Column.INT,
    "bad": Column.INT,
}


class Miscounted(NamedTuple):
    """One page of the walk."""

    scopes: Sequence[bytes]
    """Those whose counts are not what there is, or that should have ended."""
    next: bytes | None
    """Where the next page starts; None when the walk is over."""


@reads
def look(after: bytes = bytes(16), *, page: int = _PAGE) -> Steps[Miscounted]:
    """Compare the counts of some scopes with their steps; nothing is locked or changed."""
    found = yield Statement("scopes_page", {"after": after, "page": page})
    chosen: list[bytes] = []
    last, many = rows.last_id(found, 0, page), 0
    for scope_id, lives, parts in found:
        if not lives or not rows.is_uuid(scope_id):
            continue
        many += parts
        if chosen and many > _MOST_ROWS:
            last = chosen[-1]
            break
        chosen.append(rows.uuid(scope_id))
    tallies = (yield from _tallies(chosen)) if chosen else {}
    return Miscounted([id for id, tally in tallies.items() if tally.is_wrong], last)


@writes
def recount(scope_id: bytes) -> Steps[bool]:
    """Count the steps of a scope anew, and end it if nothing is open; whether that was due."""
    yield Statement("lock_counts", {"id": scope_id})
    tally = (yield from _tallies([scope_id])).get(scope_id)
    if tally is None or not tally.is_wrong:
        return False
    changed: list[Row] = [
        (scope_id, part, tally.is_tail(part), *tally.there.get(part, _NONE)[1:])
        for part in tally.wrong
    ]
    if changed:
        yield Statement("set_counts", table=Table(_COUNT_COLUMNS, changed))
    yield from resolve((yield from step_counts.set_open(scope_id, *tally.open_rows)))
    return True


_Counts = tuple[bool, int, int]
"""Whether it is of the tail, how many steps are open, and how many ended badly."""
_NONE: _Counts = (False, 0, 0)


class _Tally(NamedTuple):
    """What is counted of a scope, and what there is, by part."""

    open: tuple[int, int]
    """Rows of the body and of the tail that the scope takes for open."""
    waits: bool
    """It has not ended."""
    counted: dict[int, _Counts]
    there: dict[int, _Counts]

    @property
    def wrong(self) -> list[int]:
        parts = sorted({*self.counted, *self.there})
        return [
            part
            for part in parts
            if self.counted.get(part, _NONE)[1:] != self.there.get(part, _NONE)[1:]
        ]

    @property
    def open_rows(self) -> tuple[int, int]:
        tails = [self.is_tail(part) for part, (_, open_, _) in self.there.items() if open_]
        return tails.count(False), tails.count(True)

    @property
    def is_wrong(self) -> bool:
        open_ = self.open_rows
        return bool(self.wrong) or self.open != open_ or (self.waits and open_ == (0, 0))

    def is_tail(self, part: int) -> bool:
        return (self.counted if part in self.counted else self.there)[part][0]


def _tallies(scopes: Sequence[bytes]) -> Steps[dict[bytes, _Tally]]:
    found = yield Statement("step_tallies", {"scopes": Uuids(sorted(scopes))})
    tallies: dict[bytes, _Tally] = {}
    parts: list[tuple[Any, ...]] = []
    for kind, raw, part, flag, a, b in found:
        if kind == "scope":
            tallies[rows.uuid(raw)] = _Tally((a, b), bool(flag), {}, {})
        else:
            parts.append((kind, rows.uuid(raw), part, (bool(flag), a, b)))
    for kind, scope_id, part, counts in parts:
        if scope_id in tallies:
            tally = tallies[scope_id]
            (tally.counted if kind == "counted" else tally.there)[part] = counts
    return tallies
