"""Why a step of a workflow waits, or was skipped: which steps, which pause, which part.

Owns the sentences; like `explain`, it says only what the database shows at this moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from uuid import UUID

from holdfast.core.moment import from_us
from holdfast.core.records import TaskRecord
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.op import Steps
from holdfast.store.verbs import workflows
from holdfast.store.verbs.inspect import tasks_by_id
from holdfast.store.verbs.workflows import EdgeRecord

__all__ = ["paused_or_stopping", "reasons"]

_MOST: Final = 5
_WORDS: Final = {"success": "to complete", "failure": "to fail", "always": "to end"}
_SKIPPED: Final = ("UPSTREAM_FAILED", "UPSTREAM_CANCELLED", "UPSTREAM_SUCCEEDED")


def reasons(task: TaskRecord) -> Steps[Sequence[str]]:
    """What its workflow and the steps above it have to do with a task; nothing for any other."""
    if task.workflow_id is None:
        return ()
    wholes = yield from workflows.read([task.workflow_id, task.id])
    found: list[str] = []
    whole = wholes.get(task.workflow_id)
    if whole is not None and not task.status.is_terminal:
        found += paused_or_stopping(whole, "its workflow")
    if task.status is TaskStatus.WAITING and task.handed_over:
        found += yield from _handed_over(task, wholes.get(task.id))
    elif task.status is TaskStatus.WAITING or task.error_code in _SKIPPED:
        edges = yield from workflows.edges([task.id])
        found += yield from _above(task, edges)
    return found


def _above(task: TaskRecord, edges: Sequence[EdgeRecord]) -> Steps[list[str]]:
    if task.status is TaskStatus.WAITING:
        named = [edge for edge in edges if edge.kind == "task" and not edge.resolved]
    else:
        named = [edge for edge in edges if edge.kind == "task" and edge.satisfied is False]
    parents = yield from tasks_by_id([edge.parent_id for edge in named[:_MOST]])
    found: list[str] = []
    if task.status is not TaskStatus.WAITING:
        causes = [_step(parents[e.parent_id]) for e in named[:_MOST] if e.parent_id in parents]
        return [f"it was skipped because of {_list(causes, len(named))}"] if causes else found
    for on, words in _WORDS.items():
        these = [edge for edge in named if edge.on == on]
        shown = [_step(parents[e.parent_id]) for e in these if e.parent_id in parents]
        if shown:
            some = "any " if task.deps_needed < task.deps_open else ""
            some = f"{some}{task.deps_needed} of " if some else ""
            found.append(f"it waits for {some}{_list(shown, len(these))} {words}")
    if any(edge.kind == "gate" and not edge.resolved for edge in edges):
        found.append("it waits for the first failure, or for the end, of the other steps")
    return found


def _handed_over(task: TaskRecord, part: WorkflowRecord | None) -> Steps[list[str]]:
    """Its code has run; it ends with what it added."""
    if part is not None:
        named = f"workflow {UUID(bytes=part.id)} ({part.name}), which is {part.status.value}"
        said = paused_or_stopping(part, "that workflow")
        return [f"its code has run, and it ends with {named}", *said]
    live: list[str] = []
    number, after = 0, bytes(16)
    page, _ = yield from workflows.steps(task.workflow_id or b"", after=after, limit=1000)
    for step in page:
        if step.scope_id == task.id and not step.status.is_terminal:
            number += 1
            live.append(f"step {step.name!r} ({step.status.value})")
    if not live:
        return ["its code has run, and it ends with the steps that it added"]
    return [f"its code has run, and it ends with {_list(live[:_MOST], number)}, which it added"]


def paused_or_stopping(whole: WorkflowRecord, noun: str = "it") -> Iterator[str]:
    """What is being done to a whole that has not ended."""
    if whole.stopping is not None:
        by = f" by {whole.stopped_by}" if whole.stopped_by else ""
        yield {
            "cancel": f"{noun} is being cancelled{by}",
            "deadline": f"{noun} winds down: its deadline has passed",
            "fail_fast": f"{noun} winds down: a step has failed",
        }.get(whole.stopping, f"{noun} winds down ({whole.stopping})")
    if whole.status is WorkflowStatus.PAUSED:
        at = "" if whole.paused_at is None else f" at {_time(whole.paused_at)}"
        yield (
            f"{noun} was paused by {whole.paused_by}{at}: `resume` goes on"
            if whole.paused_by
            else f"{noun} paused{at} because a step failed: `resume` accepts that, `resubmit` "
            "runs it again"
        )


def _step(parent: TaskRecord) -> str:
    name = parent.step_name or parent.task_name
    code = "" if parent.error_code is None else f": {parent.error_code}"
    return f"step {name!r} ({parent.status.value}{code})"


def _list(shown: Iterable[str], number: int) -> str:
    words = [*shown]
    rest = number - len(words)
    if rest > 0:
        return f"{', '.join(words)} and {rest:,} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _time(us: int) -> str:
    return from_us(us).isoformat(timespec="seconds")
