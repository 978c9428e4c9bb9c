"""Where a task or a workflow stands, and how one attempt ended.

Owns the names. Which status may follow which is the business of `lifecycle`; nothing
here may guard a write.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "TASK_TERMINAL_STATES",
    "AttemptOutcome",
    "TaskStatus",
    "WorkflowStatus",
    "celery_state",
]


class TaskStatus(StrEnum):
    """The status of a task, as stored in the database and shown to users.

    Statuses compare by precedence, so that `max` of two reports about one task is the one
    to believe when reports arrive late:

        >>> TaskStatus.COMPLETED > TaskStatus.RUNNING
        True

    Equality and hash are those of the plain string. The order merges and displays; it
    guards no write, because legal transitions go down it as well as up.
    """

    WAITING = "WAITING"
    SCHEDULED = "SCHEDULED"
    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    STALLED = "STALLED"
    DROPPED = "DROPPED"

    @property
    def is_terminal(self) -> bool:
        """True when the task has ended; only an operator's resubmit leaves such a status."""
        return self in TASK_TERMINAL_STATES

    @property
    def label(self) -> str:
        """How a person reads it: "In progress", "Completed"."""
        return _LABELS[self]

    @property
    def meaning(self) -> str:
        """One line of explanation, for documentation and tooltips."""
        return _MEANINGS[self]

    @property
    def precedence(self) -> int:
        """Rank when reports about one task are merged; higher wins."""
        return _PRECEDENCE[self]

    def __lt__(self, other: str) -> bool:
        return _PRECEDENCE[self] < _rank(other)

    def __le__(self, other: str) -> bool:
        return _PRECEDENCE[self] <= _rank(other)

    def __gt__(self, other: str) -> bool:
        return _PRECEDENCE[self] > _rank(other)

    def __ge__(self, other: str) -> bool:
        return _PRECEDENCE[self] >= _rank(other)


def _rank(other: str) -> int:
    # A plain string equals a status of that name, so it must also compare like one.
    # Any other operand would fall back to alphabetical order, which is never meant.
    try:
        return _PRECEDENCE[other]
    except (KeyError, TypeError):
        raise TypeError(f"cannot compare a TaskStatus with {other!r}") from None


TASK_TERMINAL_STATES: frozenset[TaskStatus] = frozenset(
    {
        TaskStatus.COMPLETED,
        TaskStatus.FAILED,
        TaskStatus.CANCELLED,
        TaskStatus.EXPIRED,
        TaskStatus.STALLED,
        TaskStatus.DROPPED,
    }
)
"""The statuses in which a task has ended."""

_LABELS: dict[str, str] = {
    TaskStatus.WAITING: "Waiting",
    TaskStatus.SCHEDULED: "Scheduled",
    TaskStatus.PENDING: "Pending",
    TaskStatus.CLAIMED: "Claimed",
    TaskStatus.RUNNING: "In progress",
    TaskStatus.COMPLETED: "Completed",
    TaskStatus.FAILED: "Failed",
    TaskStatus.CANCELLED: "Cancelled",
    TaskStatus.EXPIRED: "Expired",
    TaskStatus.STALLED: "Stalled",
    TaskStatus.DROPPED: "Dropped",
}

_MEANINGS: dict[str, str] = {
    TaskStatus.WAITING: "a workflow step whose dependencies have not finished",
    TaskStatus.SCHEDULED: "held until its time: a delayed send, or a retry with a delay",
    TaskStatus.PENDING: "may be claimed now",
    TaskStatus.CLAIMED: "a worker holds a lease; the task's code has certainly not run",
    TaskStatus.RUNNING: "the task's code may have run",
    TaskStatus.COMPLETED: "the code returned a value or `TaskResult(ok=…)`",
    TaskStatus.FAILED: (
        "the code failed for good: an exception, `TaskResult(err=…)`, a timeout, "
        "or its retries or crashes used up"
    ),
    TaskStatus.CANCELLED: "a person or a program cancelled it",
    TaskStatus.EXPIRED: "not claimed (again) before `good_until`",
    TaskStatus.STALLED: (
        "the system interrupted it while RUNNING and its policy says: do not run again by itself"
    ),
    TaskStatus.DROPPED: (
        "no live worker knows this task name and version, and policy says give up"
    ),
}

_PRECEDENCE: dict[str, int] = {
    TaskStatus.WAITING: 0,
    TaskStatus.PENDING: 1,
    TaskStatus.SCHEDULED: 2,
    TaskStatus.CLAIMED: 3,
    TaskStatus.RUNNING: 4,
    TaskStatus.CANCELLED: 5,
    TaskStatus.EXPIRED: 5,
    TaskStatus.STALLED: 5,
    TaskStatus.DROPPED: 5,
    TaskStatus.FAILED: 6,
    TaskStatus.COMPLETED: 7,
}


class AttemptOutcome(StrEnum):
    """How one start of a task ended. Every start has exactly one."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    WORKER_FAILURE = "WORKER_FAILURE"
    CANCELLED = "CANCELLED"
    STALLED = "STALLED"
    SNOOZED = "SNOOZED"
    INTERRUPTED = "INTERRUPTED"


class WorkflowStatus(StrEnum):
    """Where a whole workflow stands."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        return self not in (WorkflowStatus.RUNNING, WorkflowStatus.PAUSED)


_CELERY: dict[TaskStatus, str] = {
    TaskStatus.WAITING: "PENDING",
    TaskStatus.PENDING: "PENDING",
    TaskStatus.CLAIMED: "RECEIVED",
    TaskStatus.COMPLETED: "SUCCESS",
    TaskStatus.FAILED: "FAILURE",
    TaskStatus.CANCELLED: "REVOKED",
    TaskStatus.EXPIRED: "REVOKED",
    TaskStatus.STALLED: "FAILURE",
    TaskStatus.DROPPED: "REJECTED",
}


def celery_state(
    status: TaskStatus, *, attempt: int, stage: str | None = None, handed_over: bool = False
) -> str:
    """Celery's name for a task in this status.

    It needs more than the status: a first delay is PENDING in Celery where a later one is
    RETRY, a task that named its stage shows that name while it runs, and a step that handed over
    has begun.
    """
    if status is TaskStatus.WAITING and handed_over:
        return stage or "STARTED"
    if status is TaskStatus.SCHEDULED:
        return "RETRY" if attempt else "PENDING"
    if status is TaskStatus.RUNNING:
        return stage or "STARTED"
    return _CELERY[status]
