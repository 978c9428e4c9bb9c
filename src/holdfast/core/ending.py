"""What became of a task's code, said without deciding anything.

Owns the kinds of ending that a worker can observe. They are plain values: a child or its
supervisor makes one, and `outcome` turns it into what shall be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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


@dataclass(frozen=True, slots=True)
class Returned:
    """The code returned; `result` is the JSON of its value."""

    result: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The code raised, returned an error, or returned what cannot be stored.

    `listed` is whether its `Retry` lists this failure: the child says, it has the classes.
    """

    error: TaskError
    listed: bool = False


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The code ran into its timeout and has been ended."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process of the code died, or (with neither code nor signal) its worker vanished."""

    exit_code: int | None = None
    exit_signal: int | None = None


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """The code raised `RetryLater`; without a delay its own backoff applies."""

    error: TaskError
    delay_us: int | None = None


@dataclass(frozen=True, slots=True)
class SnoozeAsked:
    """The code raised `Snooze`."""

    delay_us: int


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """The code raised `Abort`."""

    error: TaskError


@dataclass(frozen=True, slots=True)
class CancelAcknowledged:
    """A cancel was requested, and the code has been ended."""


@dataclass(frozen=True, slots=True)
class StoppedByShutdown:
    """The worker shuts down, and the code has been ended."""


@dataclass(frozen=True, slots=True)
class StalledBySilence:
    """The code did not call `heartbeat` for longer than its interval, and has been ended."""

    interval: float


@dataclass(frozen=True, slots=True)
class NotBegun:
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
