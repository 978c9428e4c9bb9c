"""How many steps of a workflow have not ended: counted in rows of 64, so that ends do not queue up.

Owns the counting. A step belongs to a count row of its scope. Its end changes that row in its own
transaction, after all tasks; a row that comes to nothing open is subtracted from the scope; a scope
that comes to nothing finishes. So the row of the scope is written once for 64 steps, exactly.

A scope has a body and a tail. What waits for `wf.error` or `wf.ended` is the tail: it has an edge
from a *gate*, an id that is no task. Gates open here: at the first bad ending, and when nothing of
the body is open. Locks: count rows by (scope, number), then scopes, then workflows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.core.error_code import ErrorCode
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Ints, Statement, Steps, Uuids
from holdfast.store.verbs.end_reasons import CANCELLED, UPSTREAM_FAILED
from holdfast.store.verbs.ended_counts import count_ended

_SKIPPED = frozenset(
    {
        ErrorCode.UPSTREAM_FAILED.value,
        ErrorCode.UPSTREAM_CANCELLED.value,
        ErrorCode.UPSTREAM_SUCCEEDED.value,
    }
)


class EndedStep(NamedTuple):
    """A task that has just reached a terminal state, or a gate that opened."""

    id: bytes
    status: TaskStatus
    is_part: bool = False
    """It ended because a workflow of its own did, which has policies of its own."""
    is_gate: bool = False
    """It is no task."""


class StepPlace(NamedTuple):
    """A row of `step_places`: where a step is counted, and how it stands."""

    id: Any
    scope_id: Any
    number: Any
    part: Any
    required: Any
    status: Any
    error_code: Any

    @property
    def is_bad(self) -> bool:
        """Whether the whole fails because of it: it was required, and is not there."""
        return bool(self.required) and not (
            self.status == TaskStatus.COMPLETED
            or self.error_code == ErrorCode.UPSTREAM_SUCCEEDED.value
        )

    @property
    def is_skipped(self) -> bool:
        return self.error_code in _SKIPPED


class _Scope(NamedTuple):
    """What `close_parts` answers."""

    workflow_id: Any
    body_open: int
    tail_open: int
    error_id: Any
    error_gate: Any
    ended_gate: Any


def places(ids: Iterable[bytes]) -> Steps[list[StepPlace]]:
    """Where these are counted, by scope and number; tasks that are none's steps are left out."""
    found = yield Statement("step_places", {"ids": Uuids(sorted(ids))})
    return [place for place in map(StepPlace._make, found) if rows.is_uuid(place.scope_id)]


def set_aside(steps: Sequence[EndedStep]) -> Steps[tuple[Sequence[EndedStep], Uuids]]:
    """Those of these steps whose dependents may be told, and the workflows that pause instead."""
    suspects = Uuids(sorted(s.id for s in steps if s.status is not TaskStatus.COMPLETED))
    if not suspects:
        return steps, Uuids()
    found = yield Statement("park_failures", {"ids": suspects})
    parked = set(rows.uuids(found))
    return [s for s in steps if s.id not in parked], Uuids(sorted(set(rows.uuids(found, 1))))


def ended(steps: Sequence[EndedStep]) -> Steps[list[EndedStep]]:
    """Count steps that ended; the gates that this opens, whose edges the caller resolves."""
    counted = yield from places(step.id for step in steps)
    if not counted:
        return []
    closed = yield from _count(counted, -1)
    bad: defaultdict[bytes, list[StepPlace]] = defaultdict(list)
    for place in counted:
        if place.is_bad:
            bad[rows.uuid(place.scope_id)].append(place)
    gates: list[EndedStep] = []
    for scope_id in sorted({*bad, *closed}):
        # The cause before what was skipped for it; ties: the lowest step.
        first = min(bad[scope_id], key=lambda place: place.is_skipped, default=None)
        gates += yield from _close(scope_id, closed.get(scope_id, Counter()), first)
    return gates


def _close(
    scope_id: bytes, closed: Counter[bool], first: StepPlace | None
) -> Steps[list[EndedStep]]:
    error_id = None if first is None else rows.uuid(first.id)
    found = yield Statement(
        "close_parts",
        {
            "scope_id": scope_id,
            "body": closed[False],
            "tail": closed[True],
            "error_id": error_id,
        },
    )
    if not found:
        return []
    scope = _Scope._make(found[0])
    gates: list[EndedStep] = []
    # What somebody wrote by hand in place of an id leads nowhere, and must not stop this ending.
    if first is not None and not first.is_skipped and rows.is_uuid(scope.workflow_id):
        yield Statement(
            "stop_workflow",
            {
                "id": rows.uuid(scope.workflow_id),
                "why": "fail_fast",
                "stopped_by": None,
                "stop_all": False,
            },
        )
    body_ended = closed[False] > 0 and scope.body_open == 0
    if rows.is_uuid(scope.error_gate) and (first is not None or body_ended):
        opens = TaskStatus.COMPLETED if scope.error_id is not None else TaskStatus.CANCELLED
        gates.append(EndedStep(rows.uuid(scope.error_gate), opens, is_gate=True))
    if rows.is_uuid(scope.ended_gate) and body_ended:
        gates.append(EndedStep(rows.uuid(scope.ended_gate), TaskStatus.COMPLETED, is_gate=True))
    if scope.body_open == 0 and scope.tail_open == 0:
        gates += yield from _finish(scope_id, scope)
    return gates


def _finish(scope_id: bytes, scope: _Scope) -> Steps[list[EndedStep]]:
    """Nothing of a scope is open: end the workflow, or the step that handed over to it, or both."""
    whole = yield Statement("finish_workflow", {"id": scope_id}, hint=Hint(Channel.DONE))
    if whole and whole[0][2] is None:
        return []
    settled = yield Statement(
        "settle",
        {
            "id": scope_id,
            "error_id": rows.uuid(scope.error_id) if rows.is_uuid(scope.error_id) else None,
            "cancel_error": CANCELLED.error,
            "cancel_reason": CANCELLED.reason,
            "failed_error": UPSTREAM_FAILED.error,
            "failed_reason": "a step that it added did not succeed",
        },
    )
    yield from count_ended(rows.uuids(settled))
    return [EndedStep(rows.uuid(id), TaskStatus(status), bool(whole)) for id, status in settled]


def set_open(scope_id: bytes, body: int, tail: int) -> Steps[list[EndedStep]]:
    """So many count rows of a scope are open, whatever it said before; what ends with that, and the
    gates that are open, whose edges the caller resolves."""
    found = yield Statement("set_scope", {"id": scope_id, "body": body, "tail": tail})
    if not found:
        return []
    scope = _Scope._make(found[0])
    ended = _open_gates(scope.error_gate, scope.ended_gate, body, scope.error_id)
    if not body and not tail:
        ended += yield from _finish(scope_id, scope)
    return ended


def _open_gates(error_gate: Any, ended_gate: Any, body_open: int, error_id: Any) -> list[EndedStep]:
    gates: list[EndedStep] = []
    if rows.is_uuid(error_gate) and (error_id is not None or body_open <= 0):
        opens = TaskStatus.CANCELLED if error_id is None else TaskStatus.COMPLETED
        gates.append(EndedStep(rows.uuid(error_gate), opens, is_gate=True))
    if rows.is_uuid(ended_gate) and body_open <= 0:
        gates.append(EndedStep(rows.uuid(ended_gate), TaskStatus.COMPLETED, is_gate=True))
    return gates


def finish_closed(workflow_id: bytes) -> Steps[list[EndedStep]]:
    """All steps of a resubmitted workflow have been looked at: what has ended while they were, and
    the gates that are open; the caller resolves their edges."""
    ended: list[EndedStep] = []
    gates = yield Statement("scope_gates", {"id": workflow_id})
    for error_gate, ended_gate, body_open, error_id in gates:
        ended += _open_gates(error_gate, ended_gate, body_open, error_id)
    closed = yield Statement("closed_scopes", {"id": workflow_id})
    for scope_id, *rest in closed:
        if rows.is_uuid(scope_id):
            ended += yield from _finish(rows.uuid(scope_id), _Scope._make(rest))
    return ended


def reopened(counted: Sequence[StepPlace]) -> Steps[set[bytes]]:
    """Count steps that are resubmitted, given as they stood before; their scopes, of which some
    are steps that handed over and have to wait again."""
    opened = yield from _count(counted, 1)
    for scope_id in sorted({rows.uuid(place.scope_id) for place in counted}):
        parts = opened.get(scope_id, Counter())
        if parts:
            yield Statement(
                "close_parts",
                {
                    "scope_id": scope_id,
                    "body": -parts[False],
                    "tail": -parts[True],
                    "error_id": None,
                },
            )
        yield Statement("reopen_workflow", {"id": scope_id})
    scopes = {rows.uuid(place.scope_id) for place in counted}
    ids = Uuids(rows.uuid(place.id) for place in counted)
    yield Statement("forget_errors", {"scopes": Uuids(sorted(scopes)), "ids": ids})
    return scopes


def _count(counted: Sequence[StepPlace], by: int) -> Steps[dict[bytes, Counter[bool]]]:
    """Add to the count rows; how many of each scope came to zero, or left it, of body and tail."""
    opens: Counter[tuple[bytes, int]] = Counter()
    bads: Counter[tuple[bytes, int]] = Counter()
    for place in counted:
        row = rows.uuid(place.scope_id), int(place.part)
        opens[row] += by
        # What is resubmitted is bad no more.
        bads[row] -= by * place.is_bad
    order = sorted(opens)
    found = yield Statement(
        "count_steps",
        {
            "scopes": Uuids(scope_id for scope_id, _ in order),
            "parts": Ints(part for _, part in order),
            "opens": Ints(opens[row] for row in order),
            "bads": Ints(bads[row] for row in order),
        },
    )
    crossed: defaultdict[bytes, Counter[bool]] = defaultdict(Counter)
    for raw, part, is_tail, open_ in found:
        scope_id = rows.uuid(raw)
        if open_ == (0 if by < 0 else opens[scope_id, part]):
            crossed[scope_id][bool(is_tail)] += 1
    return crossed
