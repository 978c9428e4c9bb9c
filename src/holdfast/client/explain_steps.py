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
_DEEPEST: Final = 20
_MOST_COUNTED: Final = 1000
_WORDS: Final = {"success": "to complete", "failure": "to fail", "always": "to end"}
_SKIPPED: Final = ("UPSTREAM_FAILED", "UPSTREAM_CANCELLED", "UPSTREAM_SUCCEEDED")


def reasons(task: TaskRecord, *, in_whole: bool = False) -> Steps[Sequence[str]]:
    """What its workflow and the steps above it have to do with a task; nothing for any other.

    `in_whole`: it is said of the workflow already what is being done to it.
    """
    if task.workflow_id is None:
        return ()
    wholes = yield from workflows.read([task.workflow_id, task.id])
    found: list[str] = []
    whole = wholes.get(task.workflow_id)
    if whole is not None and not task.status.is_terminal and not in_whole:
        found += paused_or_stopping(whole, "its workflow")
    if task.status is TaskStatus.WAITING and task.handed_over:
        found += yield from _handed_over(task, wholes.get(task.id))
    elif task.handed_over and task.status in (TaskStatus.FAILED, TaskStatus.CANCELLED):
        found += yield from _cause_within(task)
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
    waits = {edge.kind for edge in edges if not edge.resolved}
    if "error gate" in waits:
        found.append("it waits for the first failure of another step")
    if "end gate" in waits:
        found.append("it waits for the end of all other steps")
    return found


def _cause_within(task: TaskRecord) -> Steps[list[str]]:
    """Which of the steps that it added was the first to end badly."""
    found: list[str] = []
    for _ in range(_DEEPEST):
        scope = yield from workflows.scope(task.id)
        if scope is None or scope.error is None:
            break
        tasks = yield from tasks_by_id([scope.error.id])
        if scope.error.id not in tasks:
            break
        task = tasks[scope.error.id]
        why = task.failed_reason or task.error_code or ""
        found.append(f"of the steps that it added, {_step(task)} was the first to end badly: {why}")
        if not task.handed_over:
            break
    return found[-1:]


def _handed_over(task: TaskRecord, part: WorkflowRecord | None) -> Steps[list[str]]:
    """Its code has run; it ends with what it added."""
    if part is not None:
        named = f"workflow {UUID(bytes=part.id)} ({part.name}), which is {part.status.value}"
        said = paused_or_stopping(part, "that workflow")
        return [f"its code has run, and it ends with {named}", *said]
    live = yield from workflows.live_added(task.id, limit=_MOST_COUNTED)
    if not live:
        return ["its code has run, and it ends with the steps that it added"]
    tasks = yield from tasks_by_id(live[:_MOST])
    shown = _list([_step(tasks[id]) for id in live[:_MOST] if id in tasks], len(live))
    if len(live) == _MOST_COUNTED:
        shown = shown.replace(" more", " more at least")
    return [f"its code has run, and it ends with {shown}, which it added"]


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
