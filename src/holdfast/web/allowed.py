"""Which verbs an operator may apply to a task where it stands, in the words of the API."""

from __future__ import annotations

from typing import Final

from holdfast.core.lifecycle import Verb, legal
from holdfast.core.status import TaskStatus

__all__ = ["operator_verbs"]

_VERBS: Final = {
    "cancel": (Verb.CANCEL, Verb.REQUEST_CANCEL),
    "reschedule": (Verb.RESCHEDULE,),
    "resubmit": (Verb.RESUBMIT,),
    "delete": (Verb.DELETE,),
}


def operator_verbs(status: TaskStatus) -> tuple[str, ...]:
    """The verbs that the lifecycle allows now: `("cancel", "reschedule")`."""
    return tuple(
        word for word, verbs in _VERBS.items() if any(legal(verb, status) for verb in verbs)
    )
