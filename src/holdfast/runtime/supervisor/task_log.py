"""What the worker's log says about tasks: a line for each end that somebody should know of.

Owns the words, their fields, and how many lines a second there may be. Failures, crashes,
timeouts, stalls and retries are said by default, each with the task, its short id, the attempt,
what happened and what comes next; completions only at DEBUG. A kind of line that comes too often
is counted instead, and the number is said once a second. While there is work, a line every half
a minute sums it up.

The same fields are attached to the record as `record.holdfast`, for handlers that write JSON.
Everything that comes from a row or from a task's code is escaped: no value can forge a line.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final, Protocol

from holdfast.core.decide import Change, Counters
from holdfast.core.identity import as_text, short_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Interrupted,
    NotBegun,
    Outcome,
    RetryAsked,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
    TimedOut,
)
from holdfast.core.redaction import redact_lines
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.core.tracing import trace_id_of

log = logging.getLogger("holdfast.task")

SUMMARY_EVERY: Final = 30.0
_PER_SECOND: Final = 20
_COMPLETIONS_PER_SECOND: Final = 1000
_LONGEST: Final = 500
_LONGEST_NAME: Final = 100

_EVENTS: Final[dict[type, str]] = {
    TimedOut: "timeout",
    Crashed: "crashed",
    StalledBySilence: "stalled",
    CancelAcknowledged: "cancelled",
    StoppedByShutdown: "interrupted",
    Interrupted: "interrupted",
    SnoozeAsked: "snoozed",
    AbortAsked: "aborted",
    RetryAsked: "retry_asked",
}
_WORDS: Final = {
    "timeout": "timed out",
    "cancelled": "was cancelled",
    "interrupted": "was interrupted",
    "retry_asked": "asked for a retry",
}
_LEVELS: Final = {"cancelled": logging.INFO, "interrupted": logging.INFO, "snoozed": logging.DEBUG}


class LineLimit:
    """How many lines of one kind there may be in a second; the rest is counted."""

    def __init__(self, most: int, level: int = logging.INFO) -> None:
        self._most = most
        self.level = level
        self._second = 0
        self._lines = 0

    def turn(self, now: float) -> int:
        """Begin a new second if the last one is over; how many lines were left out in that."""
        if int(now) == self._second:
            return 0
        left_out = max(0, self._lines - self._most)
        self._second, self._lines = int(now), 0
        return left_out

    @property
    def is_over(self) -> bool:
        """Whether lines have been left out in this second."""
        return self._lines > self._most

    def admits(self, lines: int = 1) -> bool:
        """Whether so many more may be written in this second; they are counted."""
        self._lines += lines
        return self._lines <= self._most


class Named(Protocol):
    """What is needed of a task to name it."""

    @property
    def id(self) -> bytes: ...
    @property
    def task_name(self) -> str: ...


class Counted(Named, Counters, Protocol):
    """What is needed of a task to say how many attempts it has."""


def named(task: Named) -> str:
    """A task for a log line: its name and its short id, on one line whatever they are."""
    return f"{one_line(task.task_name, _LONGEST_NAME)} {short_id(task.id)}"


class TaskLog:
    """Any thread may say something."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: dict[str, LineLimit] = {}
        self.has_left_out = False
        """Whether lines were left out, and how many is still to be said (`flush`)."""
        self._summed_up: Counter[str] = Counter()
        self._summed_up_at = clock()

    def completed(self, task: Counted, attempt: int, run_us: int) -> None:
        """A task has completed."""
        if not self._admits(logging.DEBUG, "completed"):
            return
        fields = {"attempt": attempt, "status": "COMPLETED", "duration": run_us / 1e6}
        text = f"{named(task)} completed in attempt {attempt}, {_length(run_us / 1e6)}"
        _write(logging.DEBUG, "completed", task, text, fields)

    def ended(
        self,
        task: Counted,
        attempt: int,
        outcome: Outcome,
        change: Change,
        status: TaskStatus,
        policy: Policy,
        run_us: int,
    ) -> None:
        """A run came to something other than a value, and it is written."""
        if type(outcome) is NotBegun:
            return
        if status is TaskStatus.WAITING:
            self.completed(task, attempt, run_us)
            return
        event = _EVENTS.get(type(outcome), "failed")
        if status is TaskStatus.CANCELLED:
            # Whatever its code came to, a cancel had been requested.
            event = "cancelled"
        level = _LEVELS.get(event, logging.ERROR if status.is_terminal else logging.WARNING)
        if not self._admits(level, event):
            return
        allowed = change.retries_allowed or task.max_retries
        of = attempt + max(0, allowed - task.retry_count)
        what = f" of {of}" if event in ("failed", "timeout", "retry_asked") else ""
        reason = _reason(change)
        because = f": {one_line(reason, _LONGEST)}" if reason else ""
        text = (
            f"{named(task)} {_WORDS.get(event, event)} in attempt {attempt}{what}{because}; "
            f"{_next(task, change, status, policy)}"
        )
        error = change.error
        fields = {
            **_fields(attempt, change, status),
            "max_attempts": of,
            "duration": run_us / 1e6,
            "exception": None if error is None else error.exception,
        }
        if error is not None and error.traceback and log.isEnabledFor(logging.DEBUG):
            fields["traceback"] = redact_lines(error.traceback)
        _write(level, event, task, text, fields)

    def recovered(self, task: Counted, attempt: int, change: Change, policy: Policy) -> None:
        """A task whose worker vanished is taken care of here."""
        level = logging.ERROR if change.target.is_terminal else logging.WARNING
        if not self._admits(level, "recovered"):
            return
        text = (
            f"{named(task)} recovered after attempt {attempt}: "
            f"{one_line(_reason(change) or '', _LONGEST)}; "
            f"{_next(task, change, change.target, policy)}"
        )
        _write(level, "recovered", task, text, _fields(attempt, change, change.target))

    def flush(self) -> None:
        """Say how many lines were left out, if the second in which they were is over."""
        with self._lock:
            now = self._clock()
            left_out = [(limit, event, limit.turn(now)) for event, limit in self._limits.items()]
            self.has_left_out = any(limit.is_over for limit in self._limits.values())
        for limit, event, number in left_out:
            _tell(limit.level, event, number)

    def sum_up(self, totals: Counter[str], waiting: Callable[[], str], running: int) -> None:
        """Say what was done since the last time, if that is long enough ago and there is any.

        `totals`: how many runs have ended in which way, ever. `waiting` is asked only if there is
        something to say. Call it from one thread only.
        """
        now = self._clock()
        span = now - self._summed_up_at
        finished = totals - self._summed_up
        if span < SUMMARY_EVERY or not finished or not log.isEnabledFor(logging.INFO):
            return
        self._summed_up, self._summed_up_at = totals, now
        done = ", ".join(f"{finished[name]:,} {name}" for name in sorted(finished))
        log.info(
            "in the last %.0f s: %s; %s running here, %s waiting",
            span,
            done,
            f"{running:,}",
            waiting(),
            extra={"holdfast": {"event": "summary", "seconds": round(span, 1), **finished}},
        )

    def _admits(self, level: int, event: str) -> bool:
        """Whether a line of this kind may be written; asked before it is put together."""
        if not log.isEnabledFor(level):
            return False
        with self._lock:
            limit = self._limits.get(event)
            if limit is None:
                most = _COMPLETIONS_PER_SECOND if event == "completed" else _PER_SECOND
                limit = self._limits[event] = LineLimit(most)
            left_out = limit.turn(self._clock())
            admitted = limit.admits()
            self.has_left_out = self.has_left_out or not admitted
        _tell(limit.level, event, left_out)
        limit.level = level
        return admitted


def _fields(attempt: int, change: Change, status: TaskStatus) -> dict[str, Any]:
    """What is known of every run that came to something other than a value."""
    return {
        "attempt": attempt,
        "status": status.value,
        "reason": _reason(change),
        "error_code": change.error_code,
        "retry_in": None if status.is_terminal else (change.delay_us or 0) / 1e6,
        "dead_letter": _is_dead(change, status),
    }


def _reason(change: Change) -> str | None:
    """Why, without the passwords that a message may quote."""
    return None if change.failed_reason is None else redact_lines(change.failed_reason)


def _write(level: int, event: str, task: Named, text: str, more: Mapping[str, Any]) -> None:
    fields = {
        "event": event,
        "task": task.task_name,
        "task_id": as_text(task.id),
        "queue": getattr(task, "queue_name", None),
        "trace_id": trace_id_of(getattr(task, "trace_context", None)),
        **more,
    }
    log.log(level, "%s", text, extra={"holdfast": fields})


def _tell(level: int, event: str, left_out: int) -> None:
    if left_out:
        fields = {"event": "left_out", "kind": event, "lines": left_out}
        text = "… and %s more line(s) of this kind: %s"
        log.log(level, text, f"{left_out:,}", event, extra={"holdfast": fields})


def _next(task: Counted, change: Change, status: TaskStatus, policy: Policy) -> str:
    if status.is_terminal:
        return f"{status.value}, dead letter" if _is_dead(change, status) else status.value
    when = f"in {_length(change.delay_us / 1e6)}" if change.delay_us else "at once"
    if change.retries:
        allowed = change.retries_allowed or task.max_retries
        return f"retry {task.retry_count + 1} of {allowed} {when}"
    if change.crashes:
        return f"runs again {when} (crash {task.crash_count + 1} of {policy.max_crashes})"
    return f"runs again {when}, at no cost"


def _is_dead(change: Change, status: TaskStatus) -> bool:
    return change.dead_letter and status in (TaskStatus.FAILED, TaskStatus.STALLED)


def _length(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else f"{seconds * 1000:.2g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"
