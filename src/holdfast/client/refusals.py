"""Why a verb does not apply to a task, in words.

Owns the sentences for steps of workflows: their own status is not all that decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.records import TaskRecord
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import inspect, workflows

__all__ = ["refusals"]

Wholes: TypeAlias = Mapping[bytes, WorkflowRecord]


@reads
def refusals(verb: Verb, ids: Sequence[bytes]) -> Steps[dict[bytes, str]]:
    """Why this verb does not apply to these tasks, as they stand."""
    tasks = yield from inspect.tasks_by_id(ids)
    of_steps = {task.workflow_id for task in tasks.values() if task.workflow_id is not None}
    wholes = (yield from _with_those_above(sorted(of_steps))) if of_steps else {}
    return {
        id: _refusal(verb, tasks[id], wholes.get(tasks[id].workflow_id or b""), wholes)
        if id in tasks
        else "there is no such task"
        for id in ids
    }


def _refusal(
    verb: Verb,
    task: TaskRecord,
    whole: WorkflowRecord | None,
    wholes: Mapping[bytes, WorkflowRecord],
) -> str:
    if whole is not None and task.status in TRANSITIONS[verb].sources:
        named = f"workflow {UUID(bytes=whole.id)} ({whole.name})"
        if verb is Verb.DELETE and task.scope_id is not None:
            return f"it is a step of {named}, and goes with that: delete the workflow"
        if verb is Verb.DELETE:
            return "its workflow has not ended"
        if verb is Verb.RESUBMIT:
            return _is_closed(task, whole, wholes)
    return f"it is {task.status.value}"


def _is_closed(
    task: TaskRecord, whole: WorkflowRecord, wholes: Mapping[bytes, WorkflowRecord]
) -> str:
    is_what, above = "a step", whole
    while True:
        named = f"{is_what} of workflow {UUID(bytes=above.id)} ({above.name})"
        if above.status is WorkflowStatus.COMPLETED:
            return f"it is {named}, which has completed without it"
        if above.stopping is not None and not above.status.is_terminal:
            return f"it is {named}, which winds down ({above.stopping}): wait until that has ended"
        if above.parent_id is None or above.parent_id not in wholes:
            break
        is_what, above = "in a part", wholes[above.parent_id]
    if task.scope_id != whole.id and task.status in TRANSITIONS[Verb.RESUBMIT].sources:
        return f"it is {task.status.value}, and the step that added it has completed without it"
    return f"it is {task.status.value}"


def _with_those_above(ids: Sequence[bytes]) -> Steps[dict[bytes, WorkflowRecord]]:
    """These workflows, and those that they are parts of."""
    found: dict[bytes, WorkflowRecord] = {}
    new = set(ids)
    while new:
        read = yield from workflows.read(sorted(new))
        found |= read
        new = {w.parent_id for w in read.values() if w.parent_id is not None} - found.keys()
    return found
