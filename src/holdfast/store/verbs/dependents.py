"""What waits for a task, and what its ending does to them: unblock, skip, hold.

Owns the edges and their counting. An edge is resolved once. A child keeps two counts: how many
edges are open, and how many it still needs; needed = 0 unblocks it, needed > open skips
it, and a skipped task is an ended parent in its turn. Every ending calls `resolve` in its
own transaction; tasks outside workflows have no edges and cost nothing here.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.core.errors import ConfigError, TaskNotFound
from holdfast.core.identity import as_text
from holdfast.core.records import On, Submission
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import (
    Channel,
    Column,
    Hint,
    Row,
    Rows,
    Statement,
    Steps,
    Table,
    Uuids,
    writes,
)
from holdfast.store.verbs import step_counts
from holdfast.store.verbs.end_reasons import (
    UPSTREAM_CANCELLED,
    UPSTREAM_FAILED,
    UPSTREAM_SUCCEEDED,
    EndReason,
)
from holdfast.store.verbs.ended_counts import count_ended
from holdfast.store.verbs.step_counts import EndedStep

log = logging.getLogger("holdfast.store")

_EDGE_COLUMNS = {"parent_id": Column.UUID, "child_id": Column.UUID, "on_status": Column.TEXT}


class LockedTask(NamedTuple):
    """A row of `lock_tasks`, as it stands there."""

    id: Any
    status: Any
    workflow_id: Any
    error_code: Any
    unique_key: Any
    task_name: Any
    deps_needed: Any
    handed_over: Any = None
    is_step: Any = False


class UnmetEdge(NamedTuple):
    """A row of `unmet_edges`, as it stands there; a gate, or what is gone, has no status."""

    child_id: Any
    status: Any
    error_code: Any
    parent_id: Any
    task_name: Any
    on_status: Any
    is_gate: Any


TERMINAL = frozenset(status.value for status in TaskStatus if status.is_terminal)
_FAILURES = frozenset(
    {TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED, TaskStatus.EXPIRED}
)


def connect(submissions: Sequence[Submission]) -> Steps[None]:
    """Write the edges of new tasks; a parent that has ended already resolves its edge at once.

    The parents are locked first: an ending that comes now waits for this commit and then
    sees the edge. A graph in which a task would wait forever is refused as a whole.
    """
    graph = {s.id: _edges(s) for s in submissions}
    parents = Uuids(sorted({parent for edges in graph.values() for parent in edges}))
    found = yield Statement("lock_tasks", {"ids": parents})
    locked = [*map(LockedTask._make, found)]
    # A parent whose workflow cannot be read is of none that a step could be added to.
    workflows = {
        rows.uuid(row.id): (
            rows.uuid(row.workflow_id) if rows.is_uuid(row.workflow_id) else row.workflow_id and b""
        )
        for row in locked
    }
    for s in submissions:
        _check_parents(s, workflows)
    _check_order(graph)
    yield Statement(
        "add_edges",
        table=Table(
            _EDGE_COLUMNS,
            [(parent, child, on) for child, edges in graph.items() for parent, on in edges.items()],
        ),
    )
    yield from resolve(ended_steps(locked))


def _edges(s: Submission) -> dict[bytes, On]:
    """What a task waits for. The same parent twice is one edge: it ends once."""
    edges: dict[bytes, On] = {}
    for edge in s.depends_on:
        on = edges.setdefault(edge.parent_id, edge.on)
        if on != edge.on:
            raise ConfigError(
                f"task {as_text(s.id)} waits for task {as_text(edge.parent_id)} twice, on {on} "
                f"and on {edge.on}: say once on what",
                option="depends_on",
            )
    if s.deps_needed is not None and not 1 <= s.deps_needed <= len(edges):
        raise ConfigError(
            f"task {as_text(s.id)} needs {s.deps_needed} of the {len(edges)} tasks it waits for: "
            f"give a number from 1 to {len(edges)}",
            option="depends_on",
        )
    return edges


def _check_parents(s: Submission, workflows: dict[bytes, bytes | None]) -> None:
    """Only the end of a step of the same workflow is heard by those that wait for it."""
    for edge in s.depends_on:
        if edge.parent_id not in workflows:
            raise TaskNotFound(edge.parent_id, needed_by=s.id)
        if s.workflow_id is None or workflows[edge.parent_id] != s.workflow_id:
            raise ConfigError(
                f"task {as_text(s.id)} cannot wait for task {as_text(edge.parent_id)}: they are "
                "not steps of one workflow",
                option="depends_on",
            )


def _check_order(graph: dict[bytes, dict[bytes, On]]) -> None:
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names = " → ".join(map(as_text, reversed(error.args[1])))
        raise ConfigError(
            f"tasks that wait for each other would never run: {names}", option="depends_on"
        ) from None


def ended_steps(found: Iterable[Row]) -> list[EndedStep]:
    """Those of the rows (id, status, workflow_id, …) that are ended workflow steps."""
    return [
        EndedStep(rows.uuid(id), TaskStatus(status))
        for id, status, workflow_id, *_ in found
        if workflow_id is not None and status in TERMINAL and rows.is_uuid(id)
    ]


_MOST_LEVELS = 16
_MOST_SKIPS = 1000
"""How far down, and how many steps, one transaction skips; somebody else does the rest, soon."""


def resolve(
    ended: Sequence[EndedStep], *, counted: bool = False, accepted: bool = False
) -> Steps[None]:
    """Resolve the edges of ended tasks, and of those that are skipped because of it.

    With `counted`, the counts of their scopes know of them already. If their failure is not
    `accepted`, a step whose workflow pauses at that is set aside until it is resumed or
    resubmitted.
    """
    queues: set[str] = set()
    paused = Uuids()
    if not accepted and not counted:
        ended, paused = yield from step_counts.set_aside(ended)
    levels = skips = 0
    while ended:
        done: list[EndedStep] = []
        while ended:
            done += () if counted else ended
            counted = False
            ended = yield from _resolve_once(ended, queues, _MOST_SKIPS - skips)
            levels += 1
            skips += len(ended)
            if ended and (levels >= _MOST_LEVELS or skips >= _MOST_SKIPS):
                yield Statement("park", {"ids": Uuids(sorted(step.id for step in ended))})
                done += ended
                ended = []
        # Counts come after tasks, in every transaction; they may open what others wait for.
        ended = yield from step_counts.ended(done)
        # What a part of it came to is a failure of the whole, which may pause at that.
        parts = [step for step in ended if step.is_part]
        if parts:
            told, more = yield from step_counts.set_aside(parts)
            ended = [step for step in ended if not step.is_part or step in told]
            paused = Uuids(sorted({*paused, *more}))
    for workflow_id in paused:
        yield from pause_down(workflow_id, None)
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))


def _resolve_once(
    ended: Sequence[EndedStep], queues: set[str], most: int
) -> Steps[list[EndedStep]]:
    edges = yield from _resolve_edges(ended, most)
    if not edges:
        return []
    satisfied: dict[bytes, int] = defaultdict(int)
    resolved: dict[bytes, int] = defaultdict(int)
    for _, child_id, met in edges:
        if not rows.is_uuid(child_id):
            # An edge to no task at all: it is resolved, and that is all.
            continue
        child = rows.uuid(child_id)
        resolved[child] += 1
        satisfied[child] += bool(met)
    locked = yield Statement("lock_tasks", {"ids": Uuids(sorted(resolved))})
    begun = [row for row in map(LockedTask._make, locked) if row.status != TaskStatus.WAITING]
    steps = rows.uuids([row for row in begun if row.is_step])
    late = Uuids(child for child in steps if satisfied[child])
    if late:
        # It runs, or has run, with what it had then: a retry of it must see the same.
        parents = Uuids(e.id for e in ended)
        yield Statement("forget_late", {"parents": parents, "children": late})
        satisfied |= dict.fromkeys(late, 0)
    deltas = {child: (-resolved[child], -satisfied[child]) for child in resolved}
    children = yield from count(deltas, locked)
    yield from unblock((child for child, state in children.items() if state.may_run), queues)
    return (yield from _skip(children))


def _resolve_edges(ended: Sequence[EndedStep], most: int) -> Steps[Rows]:
    """All edges of those that completed: what waits for these may run. Of others, by which steps
    are skipped, no more than `most`; they are parked if there are more."""
    found: Rows = ()
    many = [e for e in ended if e.status is not TaskStatus.COMPLETED and not e.is_gate]
    all_of = [e for e in ended if e.status is TaskStatus.COMPLETED or e.is_gate] if many else ended
    if all_of:
        found = yield Statement("resolve_edges", _ends(all_of))
    if many:
        most = max(0, most)
        some: Rows = yield Statement("resolve_some_edges", {**_ends(many), "most": most})
        found = [*found, *some]
        if len(some) >= most:
            yield Statement("park", {"ids": Uuids(sorted(e.id for e in many))})
    return found


def _ends(ended: Sequence[EndedStep]) -> dict[str, object]:
    return {
        "parents": Uuids(e.id for e in ended),
        "succeeded": Uuids(e.id for e in ended if e.status is TaskStatus.COMPLETED),
        "failed": Uuids(e.id for e in ended if e.status in _FAILURES),
    }


def is_satisfied(on: str, status: TaskStatus) -> bool:
    """Whether an ending is the one that an edge waits for."""
    match on:
        case "success":
            return status is TaskStatus.COMPLETED
        case "failure":
            return status in _FAILURES
        case _:
            return on == "always"


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


def count(
    deltas: dict[bytes, tuple[int, int]], locked: Rows | None = None
) -> Steps[dict[bytes, Waiting]]:
    """Add to the (open, needed) counts of children, several parents together."""
    if not deltas:
        return {}
    # In the order of their ids: two parents ending at once must not deadlock.
    ids = Uuids(sorted(deltas))
    ours: Rows = (yield Statement("lock_tasks", {"ids": ids})) if locked is None else locked
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
            if rows.is_status(status):
                counted[rows.uuid(id)] = Waiting(TaskStatus(status), needed, open_)
    for id in sorted(set(rows.uuids(ours)) - counted.keys()):
        log.error(
            "INVALID_ROW: task %s waits for others and cannot be written: it is not told that they "
            "ended; correct or delete it (`holdfast tasks delete --unreadable KEY`)",
            as_text(id),
        )
    return counted


def unblock(ids: Iterable[bytes], queues: set[str]) -> Steps[None]:
    """Let tasks run that need nothing more; adds the queues they are now in."""
    ready = Uuids(sorted(ids))
    if ready:
        found = yield Statement("unblock", {"ids": ready})
        ready_in = (queue for _, status, queue in found if status == TaskStatus.PENDING)
        queues.update(rows.texts(ready_in))


def _skip(children: dict[bytes, Waiting]) -> Steps[list[EndedStep]]:
    unrunnable = Uuids(sorted(child for child, state in children.items() if state.cannot_run))
    if not unrunnable:
        return []
    reasons = yield from _reasons(unrunnable)
    skipped: list[EndedStep] = []
    for why in _REASONS:
        ids = Uuids(child for child in unrunnable if reasons[child] is why)
        if not ids:
            continue
        found = yield Statement(
            "skip",
            {
                "ids": ids,
                "error": why.error,
                "error_code": why.code,
                "reason": why.reason,
            },
        )
        skipped += [EndedStep(rows.uuid(row[0]), TaskStatus.CANCELLED) for row in found]
    yield from count_ended(step.id for step in skipped)
    return skipped


_REASONS = (UPSTREAM_FAILED, UPSTREAM_CANCELLED, UPSTREAM_SUCCEEDED)
"""Why a step is skipped; of several reasons the first one counts."""


def _reasons(unrunnable: Uuids) -> Steps[dict[bytes, EndReason]]:
    """Why each of these will never have what it needs, as all its parents that ended tell."""
    unmet = yield Statement("unmet_edges", {"ids": unrunnable})
    found: dict[bytes, set[EndReason]] = defaultdict(set)
    for edge in map(UnmetEdge._make, unmet):
        found[rows.uuid(edge.child_id)].add(_reason(edge))
    # A parent that was deleted has taken its edge along: nobody is left to blame.
    return {
        child: min(found[child] or {UPSTREAM_FAILED}, key=_REASONS.index) for child in unrunnable
    }


def _reason(edge: UnmetEdge) -> EndReason:
    """What an ended parent is to a child that it leaves without what it needs.

    One that was skipped itself hands down its own reason. A gate of its scope stays shut if nothing
    failed; what is gone has not given what it should have.
    """
    status, code = edge.status, edge.error_code
    if status is None:
        return UPSTREAM_SUCCEEDED if edge.is_gate else UPSTREAM_FAILED
    if status in _FAILURES or code == UPSTREAM_FAILED.code:
        return UPSTREAM_FAILED
    if status == TaskStatus.COMPLETED or code == UPSTREAM_SUCCEEDED.code:
        return UPSTREAM_SUCCEEDED
    return UPSTREAM_CANCELLED


def settle(ids: Sequence[bytes]) -> Steps[None]:
    """Do what the counts of WAITING tasks already say: unblock or skip them."""
    children = yield from count(dict.fromkeys(ids, (0, 0)))
    queues: set[str] = set()
    yield from unblock((child for child, state in children.items() if state.may_run), queues)
    skipped = yield from _skip(children)
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    yield from resolve(skipped)


def pause_down(workflow_id: bytes, by: str | None) -> Steps[list[bytes]]:
    """Say that a whole and its parts are paused (`by` None: by its failure policy); which of them
    were not. `hold` does the rest."""
    paused: list[bytes] = []
    seen, new = set[bytes](), {workflow_id}
    # The whole before its parts, until there are no more: one that starts a part looks at it first.
    while new:
        ids = Uuids(sorted(new))
        # Also those that are paused already: who resumes them at this moment must see what we do.
        yield Statement("lock_wholes", {"ids": ids})
        done = yield Statement("pause_workflow", {"ids": ids, "paused_by": by})
        paused += rows.uuids(done)
        seen |= new
        parts = yield Statement("live_parts", {"id": workflow_id})
        new = {*rows.uuids(parts)} - seen
    return sorted(paused)


def resume_down(workflow_id: bytes) -> Steps[list[bytes]]:
    """Say that the pause of a whole and of its parts is over; of which it was not. `let_go` does
    the rest."""
    resumed: list[bytes] = []
    seen, new = set[bytes](), {workflow_id}
    # As they are paused: a part that is being started has looked at the whole, which waits for it.
    while new:
        done = yield Statement("resume_workflow", {"ids": Uuids(sorted(new))})
        resumed += rows.uuids(done)
        seen |= new
        parts = yield Statement("live_parts", {"id": workflow_id})
        new = {*rows.uuids(parts)} - seen
    return sorted(resumed)


HOLD_BATCH = 200
"""Steps that one transaction holds, or releases."""


@writes
def hold(workflow_id: bytes, *, batch: int = HOLD_BATCH) -> Steps[int]:
    """Pause some steps of a workflow that have not begun; how many. Fewer than `batch`: all.

    The pause is one more dependency of each, with the workflow as the parent. A workflow that
    was resumed meanwhile holds nothing.
    """
    steps = yield _unbegun(workflow_id, held=False, batch=batch)
    ids = Uuids(rows.uuids(steps))
    if not ids:
        return 0
    held = yield Statement("hold", {"workflow_id": workflow_id, "ids": ids})
    return len(held)


def let_go(workflow_id: bytes, *, batch: int = HOLD_BATCH) -> Steps[int]:
    """Undo `hold` for some steps, and tell what waits for those set aside; how many these were."""
    # Locked before their edges, in the order in which `hold` takes them.
    steps = yield _unbegun(workflow_id, held=True, batch=batch)
    released = yield Statement("release_held", {"id": workflow_id, "ids": Uuids(rows.uuids(steps))})
    children = yield from count(dict.fromkeys(rows.uuids(released), (-1, -1)))
    queues: set[str] = set()
    yield from unblock((child for child, state in children.items() if state.may_run), queues)
    skipped = yield from _skip(children)
    if queues:
        yield Statement("notify", hint=Hint(Channel.READY, sorted(queues)))
    yield from resolve(skipped)
    return len(released) + (yield from resolve_parked(workflow_id, batch=batch))


def _unbegun(workflow_id: bytes, *, held: bool, batch: int) -> Statement:
    return Statement("unbegun_steps", {"workflow_id": workflow_id, "held": held, "batch": batch})


def resolve_parked(workflow_id: bytes | None = None, *, batch: int = 1000) -> Steps[int]:
    """Tell what waits for steps that were left for later, or that a pause had set aside."""
    found = yield Statement("take_parked", {"workflow_id": workflow_id, "batch": batch})
    ended = [EndedStep(rows.uuid(id), TaskStatus(status)) for id, status in found]
    if workflow_id is None:
        yield from resolve(ended, counted=True)
    else:
        yield from resolve(ended, accepted=True)
    return len(ended)


@writes
def resume(workflow_id: bytes) -> Steps[int]:
    """Undo `hold` for some steps; how many. None: there are no more."""
    return (yield from let_go(workflow_id))
