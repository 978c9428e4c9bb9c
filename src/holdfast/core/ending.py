"""What became of a task's code, said without deciding anything.

Owns the kinds of ending that a worker can observe. They are plain values: a child or its
supervisor makes one, and `outcome` turns it into what shall be written.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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


class Returned(NamedTuple):
    """The code returned; `result` is the JSON of its value."""

    result: str


class Failed(NamedTuple):
    """The code raised, returned an error, or returned what cannot be stored.

    `listed` is whether its `Retry` lists this failure: the child says, it has the classes.
    """

    error: TaskError
    listed: bool = False


class TimedOut(NamedTuple):
    """The code ran into its timeout and has been ended."""

    timeout: float


class Crashed(NamedTuple):
    """The process of the code died, or (with neither code nor signal) its worker vanished."""

    exit_code: int | None = None
    exit_signal: int | None = None


class RetryAsked(NamedTuple):
    """The code raised `RetryLater`; without a delay its own backoff applies."""

    error: TaskError
    delay_us: int | None = None


class SnoozeAsked(NamedTuple):
    """The code raised `Snooze`."""

    delay_us: int


class AbortAsked(NamedTuple):
    """The code raised `Abort`."""

    error: TaskError


class CancelAcknowledged(NamedTuple):
    """A cancel was requested, and the code has been ended."""


class StoppedByShutdown(NamedTuple):
    """The worker shuts down, and the code has been ended."""


class StalledBySilence(NamedTuple):
    """The code did not call `heartbeat` for longer than its interval, and has been ended."""

    interval: float


class NotBegun(NamedTuple):
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
