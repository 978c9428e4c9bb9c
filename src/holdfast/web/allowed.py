"""Which verbs an operator may apply to a task or a workflow where it stands, as the API says."""

from __future__ import annotations

from typing import Final

from holdfast.core.lifecycle import Verb, legal
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.lifecycle import WORKFLOW_TRANSITIONS, WorkflowVerb

__all__ = ["VERBS", "operator_verbs", "statuses_for", "workflow_verbs"]

VERBS: Final = {
    "cancel": (Verb.CANCEL, Verb.REQUEST_CANCEL),
    "reschedule": (Verb.RESCHEDULE,),
    "resubmit": (Verb.RESUBMIT,),
    "delete": (Verb.DELETE,),
}

_OF_WORKFLOWS: Final = (
    WorkflowVerb.PAUSE,
    WorkflowVerb.RESUME,
    WorkflowVerb.CANCEL,
    WorkflowVerb.RESUBMIT,
    WorkflowVerb.DELETE,
)


def operator_verbs(status: TaskStatus) -> tuple[str, ...]:
    """The verbs that the lifecycle allows now: `("cancel", "reschedule")`."""
    return tuple(
        word for word, verbs in VERBS.items() if any(legal(verb, status) for verb in verbs)
    )


def statuses_for(verb: str) -> tuple[TaskStatus, ...]:
    """The statuses of tasks that a verb can be applied to."""
    return tuple(status for status in TaskStatus if verb in operator_verbs(status))


def workflow_verbs(status: WorkflowStatus) -> tuple[str, ...]:
    """The same for a workflow: `("pause", "cancel")`."""
    return tuple(
        verb.value for verb in _OF_WORKFLOWS if status in WORKFLOW_TRANSITIONS[verb].sources
    )
