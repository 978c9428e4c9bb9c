"""What became of a run, said without deciding anything.

Owns the kinds of outcome that a worker can observe, and `ended_because`, the one table from the
reason for which a worker ends code to the outcome. They are plain values: a child or its
supervisor makes one, and `decide` turns it into what shall be written. (Structs, because a
worker makes thousands a second, and these are made in C.)
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from holdfast.core.options.policy import Policy
from holdfast.core.result import TaskError

__all__ = [
    "NEIGHBOUR",
    "AbortAsked",
    "CancelAcknowledged",
    "Crashed",
    "Failed",
    "Interrupted",
    "NotBegun",
    "Outcome",
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

NEIGHBOUR: Final = "a neighbour in its process brought it to an end"
"""A reason for `Interrupted`."""


class Returned(Struct, frozen=True, gc=False):
    """The code returned; `result` is the JSON of its value."""

    result: str


class Failed(Struct, frozen=True, gc=False):
    """The code raised, returned an error, or returned what cannot be stored.

    `listed` is whether its `Retry` lists this failure: the child says, it has the classes.
    """

    error: TaskError
    listed: bool = False


class TimedOut(Struct, frozen=True, gc=False):
    """The code ran into its timeout and has been ended; `stack` is where it was then."""

    timeout: float
    stack: str | None = None
    remark: str = ""
    """What else is to be known about it, for the error's message."""


class Crashed(Struct, frozen=True, gc=False):
    """The process of the code died, or (with neither code nor signal) its worker vanished."""

    exit_code: int | None = None
    exit_signal: int | None = None
    cause: str | None = None
    """Why its worker killed it, if it did: the process did what none may do."""


class RetryAsked(Struct, frozen=True, gc=False):
    """The code raised `RetryLater`; without a delay its own backoff applies."""

    error: TaskError
    delay_us: int | None = None


class SnoozeAsked(Struct, frozen=True, gc=False):
    """The code raised `Snooze`."""

    delay_us: int


class AbortAsked(Struct, frozen=True, gc=False):
    """The code raised `Abort`."""

    error: TaskError


class CancelAcknowledged(Struct, frozen=True, gc=False):
    """A cancel was requested, and the code has been ended."""


class StoppedByShutdown(Struct, frozen=True, gc=False):
    """The worker shuts down, and the code has been ended."""


class StalledBySilence(Struct, frozen=True, gc=False):
    """The code did not call `heartbeat` for longer than its interval, and has been ended."""

    interval: float
    stack: str | None = None


class NotBegun(Struct, frozen=True, gc=False):
    """The process ended before this task began in it."""


class Interrupted(Struct, frozen=True, gc=False):
    """The code had begun and was ended for no fault of its own; `reason` is a clause."""

    reason: str


Outcome: TypeAlias = (
    Returned
    | Failed
    | TimedOut
    | Crashed
    | RetryAsked
    | SnoozeAsked
    | AbortAsked
    | CancelAcknowledged
    | StoppedByShutdown
    | StalledBySilence
    | NotBegun
    | Interrupted
)


def ended_because(why: Why, policy: Policy, stack: str | None = None) -> Outcome:
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
            return Interrupted("its worker lost the lease while it ran")
