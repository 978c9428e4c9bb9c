"""What became of a task's code, said without deciding anything.

Owns the kinds of ending that a worker can observe. They are plain values: a child or its
supervisor makes one, and `outcome` turns it into what shall be written. (Structs, because a
worker makes thousands a second, and these are made in C.)
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from holdfast.core.result import TaskError

__all__ = [
    "AbortAsked",
    "CancelAcknowledged",
    "Crashed",
    "Failed",
    "NotBegun",
    "Outcome",
    "RetryAsked",
    "Returned",
    "SnoozeAsked",
    "StalledBySilence",
    "StoppedByShutdown",
    "TimedOut",
]


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


class Crashed(Struct, frozen=True, gc=False):
    """The process of the code died, or (with neither code nor signal) its worker vanished."""

    exit_code: int | None = None
    exit_signal: int | None = None


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
)
