"""What waits for a task, and what its ending does to them: unblock, skip, hold.

Owns the counting of edges. An edge is resolved once. A child keeps two counts: how many
edges are open, and how many it still needs; needed = 0 unblocks it, needed > open skips
it, and a skipped task is an ended parent in its turn. Every ending calls `resolve` in its
own transaction; tasks outside workflows have no edges and cost nothing here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.core.error_code import ErrorCode
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.endings import UPSTREAM_CANCELLED, UPSTREAM_FAILED
from holdfast.store.op import Channel, Hint, Rows, Statement, Steps, Uuids, writes


class Ended(NamedTuple):
    """A task that has just reached a terminal state."""

    id: bytes
    status: TaskStatus
    error_code: str | None = None


_FAILURES = frozenset(
    {TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED, TaskStatus.EXPIRED}
)


def ended_steps(found: Rows, *, id: int, status: int, workflow_id: int) -> list[Ended]:
    """Those of the rows that are ended workflow steps, given where their columns are."""
    return [
        Ended(rows.uuid(row[id]), TaskStatus(row[status]))
        for row in found
        if row[workflow_id] is not None and TaskStatus(row[status]).is_terminal
    ]


def resolve(ended: Sequence[Ended]) -> Steps[None]:
    """Resolve the edges of ended tasks, and of those that are skipped because of it."""
    queues: set[str] = set()
    while ended:
        ended = yield from _resolve_once(ended, queues)
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))


def _resolve_once(ended: Sequence[Ended], queues: set[str]) -> Steps[list[Ended]]:
    edges = yield Statement(
        "resolve_edges",
        {
            "parents": Uuids(e.id for e in ended),
            "succeeded": Uuids(e.id for e in ended if e.status is TaskStatus.COMPLETED),
            "failed": Uuids(e.id for e in ended if e.status in _FAILURES),
        },
    )
    if not edges:
        return []
    parents = {e.id: e for e in ended}
    satisfied: dict[bytes, int] = defaultdict(int)
    resolved: dict[bytes, int] = defaultdict(int)
    failed_above: set[bytes] = set()
    for parent_id, child_id, met in edges:
        child = rows.uuid(child_id)
        resolved[child] += 1
        satisfied[child] += bool(met)
        if not met and _is_failure(parents[rows.uuid(parent_id)]):
            failed_above.add(child)
    deltas = {child: (-resolved[child], -satisfied[child]) for child in resolved}
    children = yield from count(deltas)
    yield from unblock((child for child, state in children.items() if state.may_run), queues)
    return (yield from _skip(children, failed_above))


def _is_failure(parent: Ended) -> bool:
    return parent.status in _FAILURES or parent.error_code == ErrorCode.UPSTREAM_FAILED


class Waiting(NamedTuple):
    """A child after its edges were counted."""

    status: TaskStatus
    needed: int
    open: int

    @property
    def may_run(self) -> bool:
        return self.status is TaskStatus.WAITING and self.needed <= 0

    @property
    def cannot_run(self) -> bool:
        return self.status is TaskStatus.WAITING and self.needed > self.open


def count(deltas: dict[bytes, tuple[int, int]]) -> Steps[dict[bytes, Waiting]]:
    """Add to the (open, needed) counts of children, several parents together."""
    if not deltas:
        return {}
    # In the order of their ids: two parents ending at once must not deadlock.
    yield Statement("lock_tasks", {"ids": Uuids(sorted(deltas))})
    grouped: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for child, delta in deltas.items():
        grouped[delta].append(child)
    counted: dict[bytes, Waiting] = {}
    for (open_delta, needed_delta), group in grouped.items():
        found = yield Statement(
            "count_edges",
            {"ids": Uuids(sorted(group)), "open": open_delta, "needed": needed_delta},
        )
        for id, status, needed, open_ in found:
            counted[rows.uuid(id)] = Waiting(TaskStatus(status), needed, open_)
    return counted


def unblock(ids: Iterable[bytes], queues: set[str]) -> Steps[None]:
    """Let tasks run that need nothing more; adds the queues they are now in."""
    ready = Uuids(sorted(ids))
    if ready:
        found = yield Statement("unblock", {"ids": ready})
        queues.update(queue for _, status, queue in found if status == TaskStatus.PENDING)


def _skip(children: dict[bytes, Waiting], failed_above: set[bytes]) -> Steps[list[Ended]]:
    skipped: list[Ended] = []
    doomed = [child for child, state in children.items() if state.cannot_run]
    for ending in (UPSTREAM_FAILED, UPSTREAM_CANCELLED):
        ids = sorted(c for c in doomed if (c in failed_above) == (ending is UPSTREAM_FAILED))
        if not ids:
            continue
        found = yield Statement(
            "skip",
            {
                "ids": Uuids(ids),
                "error": ending.error,
                "error_code": ending.code,
                "reason": ending.reason,
            },
        )
        skipped += [Ended(rows.uuid(row[0]), TaskStatus.CANCELLED, ending.code) for row in found]
    return skipped


def settle(ids: Sequence[bytes]) -> Steps[None]:
    """Do what the counts of WAITING tasks already say: unblock or skip them."""
    children = yield from count(dict.fromkeys(ids, (0, 0)))
    queues: set[str] = set()
    yield from unblock((child for child, state in children.items() if state.may_run), queues)
    skipped = yield from _skip(children, set(children))
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    yield from resolve(skipped)


@writes
def hold(workflow_id: bytes) -> Steps[int]:
    """Pause the steps of a workflow that have not begun; how many were not paused before.

    The pause is one more dependency of each, with the workflow as the parent.
    """
    steps = yield Statement("unbegun_steps", {"workflow_id": workflow_id})
    ids = Uuids(rows.uuid(row[0]) for row in steps)
    if not ids:
        return 0
    held = yield Statement("hold", {"workflow_id": workflow_id, "ids": ids})
    return len(held)


@writes
def resume(workflow_id: bytes) -> Steps[None]:
    """Undo `hold`: resolve the pause as if a parent had completed."""
    # Locked before their edges, in the order in which `hold` takes them.
    yield Statement("unbegun_steps", {"workflow_id": workflow_id})
    yield from resolve([Ended(workflow_id, TaskStatus.COMPLETED)])


def reopen(parents: Sequence[bytes]) -> Steps[list[bytes]]:
    """Parents were resubmitted: their children have to wait again.

    Returns the children that had been skipped because of them; the caller resubmits those
    too. A child that was counted down is counted up by the same amount, so that it is
    counted down once when the parent ends again.
    """
    edges = yield Statement("reopen_edges", {"parents": Uuids(sorted(parents))})
    opened: dict[bytes, int] = defaultdict(int)
    needed: dict[bytes, int] = defaultdict(int)
    for _, child_id, satisfied in edges:
        child = rows.uuid(child_id)
        opened[child] += 1
        needed[child] += bool(satisfied)
    children = yield from count({child: (opened[child], needed[child]) for child in opened})
    return [child for child, state in children.items() if state.status is TaskStatus.CANCELLED]
