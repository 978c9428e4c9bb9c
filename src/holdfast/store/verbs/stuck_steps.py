"""The audit of edges: steps that wait for what will never come are told.

Owns the mending. No verb leaves such steps behind; somebody who writes or deletes rows by hand may,
and so may a defect. What `leases.audit` found is locked here and judged once more, and then done by
the same verbs that should have done it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Statement, Steps, Uuids
from holdfast.store.verbs.dependents import resolve, settle
from holdfast.store.verbs.step_counts import EndedStep


class _Overdue(NamedTuple):
    """A row of `overdue_edges`, as it stands there."""

    child_id: Any
    parent_id: Any
    status: Any
    """That of the parent, if it is a step that is there."""
    is_pause: Any
    gate: Any
    """As what the gate has opened that the parent is."""


def mend(ids: Sequence[bytes]) -> Steps[None]:
    """Let these go on: they wait for a pause that is over, a step that has ended, or nothing."""
    overdue = Statement("overdue_edges", {"children": Uuids(sorted(ids))})
    parents = rows.uuids((yield overdue), 1)
    yield Statement("lock_tasks", {"ids": Uuids(sorted({*ids, *parents}))})
    ended: dict[bytes, EndedStep] = {}
    for edge in map(_Overdue._make, (yield overdue)):
        if edge.is_pause or not rows.is_uuid(edge.parent_id):
            continue
        parent = rows.uuid(edge.parent_id)
        # What is gone has ended, and nobody knows how.
        found = edge.gate or edge.status
        status = TaskStatus(found) if rows.is_status(found) else TaskStatus.CANCELLED
        ended[parent] = EndedStep(parent, status, is_gate=edge.gate is not None)
    yield Statement("note_held", {"ids": Uuids(sorted(ids))})
    yield from resolve([*ended.values()], counted=True)
    yield Statement("close_edges", {"ids": Uuids(sorted(ids))})
    yield from settle(ids)
