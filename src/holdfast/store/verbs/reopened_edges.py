"""What a resubmit does to the edges of tasks: they are opened again, or counted anew.

Owns that a child which is to run again waits for its parents as they stand now, and is counted down
once for each. Beside `dependents`, which owns what an ending does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast.core.errors import Blame, UpstreamEnded
from holdfast.core.identity import as_uuid
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Rows, Statement, Steps, Uuids
from holdfast.store.verbs.dependents import LockedTask, UnmetEdge, count, resolve
from holdfast.store.verbs.step_counts import EndedStep


def reopen(parents: Sequence[bytes]) -> Steps[list[bytes]]:
    """Parents were resubmitted: their children have to wait again.

    Returns the children that had been skipped because of them; the caller resubmits those
    too. A child that was counted down is counted up by the same amount, so that it is
    counted down once when the parent ends again.
    """
    edges = yield Statement("reopen_edges", {"parents": Uuids(sorted(parents))})
    children = yield from count(_given_back(edges))
    return [child for child, state in children.items() if state.status is TaskStatus.CANCELLED]


def _given_back(edges: Rows) -> dict[bytes, tuple[int, int]]:
    """What the children of reopened edges are counted up by."""
    opened: dict[bytes, int] = defaultdict(int)
    needed: dict[bytes, int] = defaultdict(int)
    for _, child_id, satisfied in edges:
        if not rows.is_uuid(child_id):
            continue
        child = rows.uuid(child_id)
        opened[child] += 1
        needed[child] += bool(satisfied)
    return {child: (opened[child], needed[child]) for child in opened}


def revisit(needy: Iterable[bytes], parents: Sequence[EndedStep]) -> Steps[set[bytes]]:
    """Steps that ended without what they need are to be resubmitted: those that cannot be.

    Their parents may have been resubmitted since, and have ended in another way, or not yet. So
    every edge is counted anew, by how its parent stands now; the caller has locked the
    parents. A step that would need more than is open can never run, and must stay as it is.
    """
    children = Uuids(sorted(needy))
    if not children:
        return set()
    edges = yield Statement(
        "revisit_edges", {"children": children, "parents": Uuids(parent.id for parent in parents)}
    )
    yield from count(_given_back(edges))
    opened = set(rows.uuids(edges))
    yield from resolve([p for p in parents if p.id in opened and p.status.is_terminal])
    counted = yield from count(dict.fromkeys(children, (0, 0)))
    return {child for child, state in counted.items() if state.needed > state.open}


def refuse(stuck: set[bytes]) -> Steps[None]:
    """Raise, for steps that cannot be resubmitted, and say which parent stands in the way."""
    locked = yield Statement("lock_tasks", {"ids": Uuids(sorted(stuck))})
    unmet = yield Statement("unmet_edges", {"ids": Uuids(sorted(stuck))})
    statuses = {rows.uuid(row.id): TaskStatus(row.status) for row in map(LockedTask._make, locked)}
    # A parent that was deleted has taken its edge along.
    edges = [
        edge._replace(child_id=rows.uuid(edge.child_id), parent_id=rows.uuid(edge.parent_id))
        for edge in map(UnmetEdge._make, unmet)
        if rows.is_status(edge.status) and rows.is_uuid(edge.parent_id)
    ]

    def helpful(edge: UnmetEdge) -> tuple[bool, bool]:
        """The first cause before what follows from it; what can be resubmitted before the rest."""
        return edge.parent_id in stuck, edge.status == TaskStatus.COMPLETED

    if not edges:
        child = min(stuck)
        raise UpstreamEnded(child, statuses[child], refused=stuck)
    edge = min(edges, key=helpful)
    blame = Blame(as_uuid(edge.parent_id), edge.task_name, TaskStatus(edge.status), edge.on_status)
    raise UpstreamEnded(edge.child_id, statuses[edge.child_id], blame, refused=stuck)
