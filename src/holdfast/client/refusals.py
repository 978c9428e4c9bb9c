"""Why a verb does not apply to a task, in words.

Owns the sentences for steps of workflows: their own status is not all that decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.records import TaskRecord
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import inspect, workflows

__all__ = ["refusals"]


@reads
def refusals(verb: Verb, ids: Sequence[bytes]) -> Steps[dict[bytes, str]]:
    """Why this verb does not apply to these tasks, as they stand."""
    tasks = yield from inspect.tasks_by_id(ids)
    of_steps = {task.workflow_id for task in tasks.values() if task.workflow_id is not None}
    wholes = (yield from workflows.read(sorted(of_steps))) if of_steps else {}
    return {
        id: _refusal(verb, tasks[id], wholes.get(tasks[id].workflow_id or b""))
        if id in tasks
        else "there is no such task"
        for id in ids
    }


def _refusal(verb: Verb, task: TaskRecord, whole: WorkflowRecord | None) -> str:
    if whole is not None and task.status in TRANSITIONS[verb].sources:
        named = f"workflow {UUID(bytes=whole.id)} ({whole.name})"
        if verb is Verb.DELETE and task.scope_id is not None:
            return f"it is a step of {named}, and goes with that: delete the workflow"
        if verb is Verb.DELETE:
            return "its workflow has not ended"
        if verb is Verb.RESUBMIT and whole.status is WorkflowStatus.COMPLETED:
            return f"it is a step of {named}, which has completed without it"
        if verb is Verb.RESUBMIT and whole.stopping is not None and not whole.status.is_terminal:
            return (
                f"it is a step of {named}, which winds down ({whole.stopping}): wait until that "
                "has ended"
            )
    return f"it is {task.status.value}"
