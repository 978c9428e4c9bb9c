"""Which verbs an operator may apply to a task where it stands, in the words of the API."""

from __future__ import annotations

from typing import Final

from holdfast.core.lifecycle import Verb, legal
from holdfast.core.status import TaskStatus

__all__ = ["VERBS", "operator_verbs", "statuses_for"]

VERBS: Final = {
    "cancel": (Verb.CANCEL, Verb.REQUEST_CANCEL),
    "reschedule": (Verb.RESCHEDULE,),
    "resubmit": (Verb.RESUBMIT,),
    "delete": (Verb.DELETE,),
}


def operator_verbs(status: TaskStatus) -> tuple[str, ...]:
    """The verbs that the lifecycle allows now: `("cancel", "reschedule")`."""
    return tuple(
        word for word, verbs in VERBS.items() if any(legal(verb, status) for verb in verbs)
    )


def statuses_for(verb: str) -> tuple[TaskStatus, ...]:
    """The statuses of tasks that a verb can be applied to."""
    return tuple(status for status in TaskStatus if verb in operator_verbs(status))
