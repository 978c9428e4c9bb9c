"""What became of a run, said without deciding anything.

Owns the kinds of outcome that a worker can observe, and `ended_because`, the one table from the
reason for which a worker ends code to the outcome. They are plain values: a child or its
supervisor makes one, and `decide` turns it into what will be written.

A child sends its outcomes (`Reported`) as they are; numbers that a child may name are checked
where they are decoded, because the store would refuse larger ones, and with them a whole batch.
(Structs, because a worker makes thousands a second, and these are made in C.)
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from holdfast.core.options.policy import Policy
from holdfast.core.result import TaskError

__all__ = [
    "LOST_LEASE",
    "NEIGHBOUR",
    "AbortAsked",
    "CancelAcknowledged",
    "Crashed",
    "Failed",
    "HandedOver",
    "Interrupted",
    "NotBegun",
    "Outcome",
    "Reported",
    "RetryAsked",
    "Returned",
    "SnoozeAsked",
    "StalledBySilence",
    "StoppedByShutdown",
    "TimedOut",
    "Why",
    "ended_because",
]

Why: TypeAlias = Literal["cancel", "timeout", "silence", "shutdown", "lost"]
"""Why a worker ends running code: what its outcome is decided from."""

_Delay: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]


class _Kind(Struct, frozen=True, gc=False, tag=True, array_like=True):
    """One kind of outcome, as it is and on the wire."""


class Returned(_Kind, frozen=True):
    """The code returned; `result` is the JSON of its value."""

    result: str


class HandedOver(_Kind, frozen=True):
    """The code of a workflow's step returned and left its value to steps that it adds.

    `added` is an `AddedPlan` (`core.workflows.plan`), encoded: what it says is checked by whoever
    writes it, so that a child that says nonsense fails its own task alone.
    """

    added: bytes


class Failed(_Kind, frozen=True):
    """The code raised, returned an error, or returned what cannot be stored.

    `listed` is whether its `Retry` lists this failure: the child says, it has the classes.
    """

    error: TaskError
    listed: bool = False


class TimedOut(_Kind, frozen=True):
    """The code ran into its timeout and has been ended; `stack` is where it was then."""

    timeout: float
    stack: str | None = None
    remark: str = ""
    """What else is to be known about it, for the error's message."""


class Crashed(_Kind, frozen=True):
    """The process of the code died, or (with neither code nor signal) its worker vanished."""

    exit_code: int | None = None
    exit_signal: int | None = None
    cause: str | None = None
    """Why its worker killed it, if it did: the process did what none may do."""


class RetryAsked(_Kind, frozen=True):
    """The code raised `RetryLater`; without a delay its own backoff applies."""

    error: TaskError
    delay_us: _Delay | None = None


class SnoozeAsked(_Kind, frozen=True):
    """The code raised `Snooze`."""

    delay_us: _Delay


class AbortAsked(_Kind, frozen=True):
    """The code raised `Abort`."""

    error: TaskError


class CancelAcknowledged(_Kind, frozen=True):
    """A cancel was requested, and the code has been ended."""


class StoppedByShutdown(_Kind, frozen=True):
    """The worker shuts down, and the code has been ended."""


class StalledBySilence(_Kind, frozen=True):
    """The code did not call `heartbeat` for longer than its interval, and has been ended."""

    interval: float
    stack: str | None = None


class NotBegun(_Kind, frozen=True):
    """The process ended before this task began in it."""


class Interrupted(_Kind, frozen=True):
    """The code had begun and was ended for no fault of its own; `reason` is a clause."""

    reason: str


Reported: TypeAlias = (
    Returned
    | HandedOver
    | Failed
    | RetryAsked
    | SnoozeAsked
    | AbortAsked
    | CancelAcknowledged
    | TimedOut
    | StalledBySilence
    | StoppedByShutdown
    | Interrupted
)
"""What a child can say of its own task."""
Outcome: TypeAlias = Reported | Crashed | NotBegun
"""The last two are seen from outside, when a child has died."""

NEIGHBOUR: Final = Interrupted("a neighbour in its process brought it to an end")
LOST_LEASE: Final = Interrupted("its worker lost the lease while it ran")


def ended_because(why: Why, policy: Policy, stack: str | None = None) -> Reported:
    """The outcome of code that its worker ended for this reason; `stack` is where it was then."""
    match why:
        case "cancel":
            return CancelAcknowledged()
        case "timeout":
            return TimedOut(policy.timeout or 0.0, stack)
        case "silence":
            return StalledBySilence(policy.max_heartbeat_interval or 0.0, stack)
        case "shutdown":
            return StoppedByShutdown()
        case "lost":
            return LOST_LEASE
