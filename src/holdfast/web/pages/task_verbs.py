"""What an operator can do to tasks, in the words of buttons and dialogs.

Derived from `core/lifecycle.py`: a verb is offered for the statuses that it may leave, and to the
roles that may use it. There are no buttons for what is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role, Visitor

__all__ = ["BULK_VERBS", "OperatorVerb", "allowed_now", "verb_named"]


@dataclass(frozen=True, slots=True)
class OperatorVerb:
    """One thing that can be done to a task."""

    name: str
    """Its name in URLs: that of the verb."""
    label: str
    done: str
    """`resubmitted`: how a result is said."""
    doing: str
    verbs: tuple[Verb, ...]
    needs: Role
    meaning: str
    """What happens to many, and what stays."""
    danger: bool = False
    key: str | None = None

    @property
    def sources(self) -> tuple[TaskStatus, ...]:
        """The statuses that it may be applied to, in the order of the lifecycle."""
        found = {status for verb in self.verbs for status in TRANSITIONS[verb].sources}
        return tuple(status for status in TaskStatus if status in found)

    @property
    def form(self) -> str:
        """How its button looks."""
        return "danger" if self.danger else ""


RESUBMIT: Final = OperatorVerb(
    "resubmit",
    "Resubmit",
    "resubmitted",
    "Resubmitting",
    (Verb.RESUBMIT,),
    Role.OPERATE,
    "They go back to Pending and their retries start anew. Attempts, logs and checkpoints stay.",
    key="r",
)
CANCEL: Final = OperatorVerb(
    "cancel",
    "Cancel",
    "cancelled",
    "Cancelling",
    (Verb.CANCEL, Verb.REQUEST_CANCEL),
    Role.OPERATE,
    "What has not begun ends at once. Code that runs is asked to stop; what it did stays done.",
    danger=True,
    key="c",
)
DELETE: Final = OperatorVerb(
    "delete",
    "Delete",
    "deleted",
    "Deleting",
    (Verb.DELETE,),
    Role.ADMIN,
    "They go with their attempts, logs and checkpoints, and do not come back.",
    danger=True,
)
BULK_VERBS: Final[Sequence[OperatorVerb]] = (RESUBMIT, CANCEL, DELETE)


def verb_named(name: str) -> OperatorVerb:
    """The verb with this name in URLs."""
    return next(verb for verb in BULK_VERBS if verb.name == name)


def allowed_now(status: TaskStatus, visitor: Visitor) -> list[OperatorVerb]:
    """What this visitor can do to a task that stands there."""
    return [verb for verb in BULK_VERBS if status in verb.sources and visitor.may(verb.needs)]
