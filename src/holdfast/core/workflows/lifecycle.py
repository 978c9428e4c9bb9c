"""The state machine of a whole workflow, declared once, as data.

Owns every verb: from which statuses it leads to which, and what it does to steps. It stands beside
that of tasks (`core.lifecycle`), by which the steps themselves live. The SQL of the store is
checked against this table, and the documentation is drawn from it.

A whole that winds down is RUNNING and says why (`stopping`): then nothing but its end, and a
graver reason to stop, is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from holdfast.core.status import WorkflowStatus

__all__ = ["STOPPINGS", "WORKFLOW_TRANSITIONS", "WorkflowRow", "WorkflowVerb"]

STOPPINGS: Final = ("fail_fast", "deadline", "cancel")
"""Why a whole may wind down; each gives way to those behind it."""


class WorkflowVerb(StrEnum):
    """What can be done to a whole. One spelling everywhere: event, CLI, record of actions."""

    START = "start"
    ADD = "add"
    PAUSE = "pause"
    RESUME = "resume"
    FAIL_FAST = "fail_fast"
    DEADLINE = "deadline"
    CANCEL = "cancel"
    FINISH = "finish"
    RESUBMIT = "resubmit"
    DELETE = "delete"
    PRUNE = "prune"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """One row of the table: everything that is true of a verb."""

    verb: WorkflowVerb
    sources: tuple[WorkflowStatus, ...]
    """Statuses it may leave; empty when the workflow does not exist yet."""
    targets: tuple[WorkflowStatus, ...]
    """Statuses it may lead to; empty when the workflow ceases to exist."""
    after: tuple[str | None, ...] = (None,)
    """What `stopping` may say before, of a workflow that has not ended."""
    stopping: str | None = None
    """What it says then; "same": as before."""
    actor: str
    not_begun: str
    """What becomes of steps that have not begun."""
    running: str
    """What becomes of steps that run."""


RUNNING, PAUSED = WorkflowStatus.RUNNING, WorkflowStatus.PAUSED
COMPLETED, FAILED, CANCELLED = (
    WorkflowStatus.COMPLETED,
    WorkflowStatus.FAILED,
    WorkflowStatus.CANCELLED,
)
_ANY: Final = (None, *STOPPINGS)

_TABLE: Final = (
    WorkflowRow(
        verb=WorkflowVerb.START,
        sources=(),
        targets=(RUNNING,),
        actor="client, schedule",
        not_begun="submit",
        running="–",
    ),
    WorkflowRow(
        verb=WorkflowVerb.ADD,
        sources=(RUNNING, PAUSED),
        targets=(RUNNING, PAUSED),
        actor="a running step",
        not_begun="submit; held if PAUSED",
        running="the one that adds: *hand_over* → WAITING",
    ),
    WorkflowRow(
        verb=WorkflowVerb.PAUSE,
        sources=(RUNNING,),
        targets=(PAUSED,),
        actor='operator; `on_failure="pause"`',
        not_begun="hold; what is CLAIMED goes on",
        running="finish; what waits for them stays held",
    ),
    WorkflowRow(
        verb=WorkflowVerb.RESUME,
        sources=(PAUSED,),
        targets=(RUNNING,),
        after=(None, "fail_fast"),
        stopping="same",
        actor="operator",
        not_begun="released; a failure that paused the whole is accepted",
        running="–",
    ),
    WorkflowRow(
        verb=WorkflowVerb.FAIL_FAST,
        sources=(RUNNING, PAUSED),
        targets=(RUNNING, PAUSED),
        stopping="fail_fast",
        actor='`on_failure="fail_fast"`, at the first bad ending',
        not_begun="cancel all but handlers",
        running="finish",
    ),
    WorkflowRow(
        verb=WorkflowVerb.DEADLINE,
        sources=(RUNNING, PAUSED),
        targets=(RUNNING,),
        after=(None, "fail_fast"),
        stopping="deadline",
        actor="any worker",
        not_begun="cancel all but cleanups",
        running="request_cancel",
    ),
    WorkflowRow(
        verb=WorkflowVerb.CANCEL,
        sources=(RUNNING, PAUSED),
        targets=(RUNNING,),
        after=(None, "fail_fast", "deadline"),
        stopping="cancel",
        actor="operator; the cancel of the whole that it is a part of",
        not_begun="cancel all but cleanups (`cleanup=False`: all)",
        running="request_cancel",
    ),
    WorkflowRow(
        verb=WorkflowVerb.FINISH,
        sources=(RUNNING, PAUSED),
        targets=(COMPLETED, FAILED, CANCELLED),
        after=_ANY,
        stopping="same",
        actor="the end of its last step",
        not_begun="none left",
        running="none left",
    ),
    WorkflowRow(
        verb=WorkflowVerb.RESUBMIT,
        sources=(RUNNING, PAUSED, FAILED, CANCELLED),
        targets=(RUNNING,),
        actor="operator",
        not_begun="released",
        running="–",
    ),
    WorkflowRow(
        verb=WorkflowVerb.DELETE,
        sources=(COMPLETED, FAILED, CANCELLED),
        targets=(),
        after=_ANY,
        actor="operator",
        not_begun="–",
        running="–",
    ),
    WorkflowRow(
        verb=WorkflowVerb.PRUNE,
        sources=(COMPLETED, FAILED, CANCELLED),
        targets=(),
        after=_ANY,
        actor="any worker, when its retention has passed",
        not_begun="–",
        running="–",
    ),
)

WORKFLOW_TRANSITIONS: Final = MappingProxyType({row.verb: row for row in _TABLE})
