"""What is asked about whole workflows: which, where, why, and how their steps hang together.

Owns the operations behind `WorkflowHandle` and `app.control.workflows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast
from uuid import UUID

from holdfast.client.explain import explain as explain_task
from holdfast.client.explain import unattended as unattended_task
from holdfast.client.explain_ending import ending, some
from holdfast.client.explain_steps import paused_or_stopping
from holdfast.client.workflow_info import StepInfo
from holdfast.client.workflow_steps import read_steps, with_parts
from holdfast.client.workflow_verbs import one
from holdfast.core.errors import UnreadableRow
from holdfast.core.moment import from_us, length
from holdfast.core.records import On
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.mermaid import ChartEdge, ChartStep, chart
from holdfast.core.workflows.records import StepRecord, WorkflowRecord
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import timing, workflows
from holdfast.store.verbs.workflows import EdgeRecord

__all__ = ["Graph", "WorkflowWhy", "all_steps", "chart_of", "explain", "graph", "step_infos"]

_PAGE: Final = 1000
_NEAREST: Final = (
    TaskStatus.RUNNING,
    TaskStatus.CLAIMED,
    TaskStatus.PENDING,
    TaskStatus.SCHEDULED,
)
"""Of the steps that have not ended, those to be named."""


@dataclass(frozen=True, slots=True)
class WorkflowWhy:
    """What keeps a workflow from ending, or how it ended; `str()` is the whole answer."""

    workflow_id: UUID
    status: WorkflowStatus
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"workflow {self.workflow_id} is {self.status.value}: {'; '.join(self.reasons)}"


class Graph(NamedTuple):
    """A workflow with its steps and what these wait for."""

    whole: WorkflowRecord
    steps: Sequence[StepRecord]
    edges: Sequence[EdgeRecord]
    unreadable: Sequence[UnreadableRow]


@reads
def all_steps(workflow_id: bytes) -> Steps[list[StepRecord]]:
    """All steps of a workflow, in the order in which they were built."""
    yield from one(workflow_id)
    return (yield from read_steps(workflow_id))


@reads
def graph(workflow_id: bytes, *, parts: bool = False) -> Steps[Graph]:
    """A workflow, its steps, and what each waits for; `parts`: those of its parts among them."""
    whole = yield from one(workflow_id)
    unreadable: list[UnreadableRow] = []
    steps = yield from read_steps(workflow_id, unreadable)
    if parts:
        steps = yield from with_parts(steps, unreadable)
    edges: list[EdgeRecord] = []
    for at in range(0, len(steps), _PAGE):
        edges += yield from workflows.edges([step.id for step in steps[at : at + _PAGE]])
    return Graph(whole, steps, edges, unreadable)


def step_infos(found: Graph) -> list[StepInfo]:
    """The steps of a graph, as a user sees them."""
    known = {step.id for step in found.steps}
    above: dict[bytes, dict[UUID, str]] = {step.id: {} for step in found.steps}
    for edge in found.edges:
        if edge.kind == "task" and edge.parent_id in known:
            above[edge.child_id][UUID(bytes=edge.parent_id)] = edge.on
    return [StepInfo.of(step, found.whole.id, above[step.id]) for step in found.steps]


@reads
def chart_of(workflow_id: bytes) -> Steps[str]:
    """The graph with the state of each step, as the text of a Mermaid flowchart."""
    found = yield from graph(workflow_id, parts=True)
    keys = {step.id: f"s{place}" for place, step in enumerate(found.steps)}
    below = {edge.child_id for edge in found.edges if edge.parent_id in keys}
    # Of the steps that one added, those that begin.
    edges = [
        ChartEdge(keys[step.scope_id], keys[step.id], "always")
        for step in found.steps
        if step.scope_id in keys and step.id not in below
    ]
    edges += [
        ChartEdge(keys[edge.parent_id], keys[edge.child_id], cast("On", edge.on))
        for edge in sorted(found.edges, key=lambda edge: (edge.child_id, edge.parent_id))
        if edge.kind == "task"
        and edge.parent_id in keys
        and edge.on in ("success", "failure", "always")
    ]
    drawn = [
        ChartStep(
            keys[step.id], step.name, step.task_name, step.status.value, step.error_code, step.tail
        )
        for step in found.steps
    ]
    return chart(drawn, edges)


@reads
def explain(workflow_id: bytes) -> Steps[WorkflowWhy]:
    """Why a workflow has not ended, or how it did."""
    whole = yield from one(workflow_id)
    now = (yield from timing.next_due()).now
    steps = yield from read_steps(workflow_id)
    if whole.status.is_terminal:
        reasons = yield from ending(whole, steps)
    else:
        reasons = [*_reasons(whole, steps, now)]
        nearest = _nearest(steps)
        if nearest is not None and nearest.status not in (TaskStatus.RUNNING, TaskStatus.CLAIMED):
            why = yield from explain_task(nearest.id, in_whole=True)
            reasons += [f"step {nearest.name!r}: {reason}" for reason in why.reasons]
    return WorkflowWhy(UUID(bytes=whole.id), whole.status, tuple(reasons))


@reads
def unattended(workflow_id: bytes, waiter: bytes | None) -> Steps[WorkflowWhy | None]:
    """The same if waiting may be in vain: there is no worker at all, or the task `waiter`, which
    waits for it, has the process that its next step would need."""
    nearest = _nearest((yield from read_steps(workflow_id)))
    if nearest is None or (yield from unattended_task(nearest.id, waiter)) is None:
        return None
    return (yield from explain(workflow_id))


def _nearest(steps: Sequence[StepRecord]) -> StepRecord | None:
    """Of the steps that have not ended, one that has come furthest."""
    for status in _NEAREST:
        for step in steps:
            if step.status is status:
                return step
    return next((step for step in steps if step.handed_over and not step.status.is_terminal), None)


def _reasons(whole: WorkflowRecord, steps: Sequence[StepRecord], now: int) -> Iterator[str]:
    yield from paused_or_stopping(whole)
    if whole.run_at is not None and whole.run_at > now:
        yield f"it is not to begin before {_time(whole.run_at)}"
    if whole.deadline_at is not None and whole.stopping is None:
        left = (whole.deadline_at - now) / 1_000_000
        late = "has passed" if left <= 0 else f"is in {length(left)}"
        yield f"its deadline, {_time(whole.deadline_at)}, {late}"
    live = [step for step in steps if not step.status.is_terminal]
    counted = Counter(step.status for step in live)
    if counted:
        words = ", ".join(f"{n:,} {status.value}" for status, n in sorted(counted.items()))
        yield f"{len(live):,} of its {len(steps):,} steps have not ended ({words})"
    for status in _NEAREST:
        first = [step.name for step in live if step.status is status]
        if first:
            yield f"{status.value}: {some(first)}"
            break


def _time(us: int) -> str:
    return from_us(us).isoformat(timespec="seconds")
