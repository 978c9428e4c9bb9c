"""From what happened to what will be written: the only place that decides.

`decide` is pure: the task's counters, what became of its code, and its policy give one
`Change`. Two things are left to the statement that writes it, because only the row knows
them at that moment: a cancel that was requested turns another run, a failure or a stall
into CANCELLED, and a retry that would come after `good_until` becomes a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError
from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import UNPLANNED_RETRIES, Retry
from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Failed,
    HandedOver,
    Interrupted,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
    TimedOut,
)
from holdfast.core.payload.failure import encode_error
from holdfast.core.result import TaskError
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.core.text import clean
from holdfast.core.workflows.plan import AddedPlan

__all__ = ["Change", "Counters", "decide"]

_UNPLANNED_RETRY: Final = Retry(UNPLANNED_RETRIES)
"""What `RetryLater` means in a task without a retry policy."""
_CRASH_DELAY_LIMIT: Final = 60.0
_REASON_LIMIT: Final = 500
_UNLIMITED: Final = 1 << 62
"""The child has checked the size of what its code attached; here nothing may fail."""


class Counters(Protocol):
    """What `decide` reads of a task's row."""

    @property
    def retry_count(self) -> int: ...
    @property
    def max_retries(self) -> int: ...
    @property
    def crash_count(self) -> int: ...


class Change(NamedTuple):
    """What will be written, complete.

    `result` is the value's JSON after a success, otherwise the error's: a change that leads
    to another run carries it too, because the row may turn it into an ending.
    """

    verb: Verb
    target: TaskStatus
    delay_us: int | None = None
    """How long until the next run, counted from the write; None: at once, or no next run."""
    retries: int = 0
    """Added to `retry_count`."""
    retries_allowed: int | None = None
    """For a retry: how many the task has in all; the row decides."""
    crashes: int = 0
    """Added to `crash_count`."""
    dead_letter: bool = True
    """Whether an end in FAILED or STALLED is listed among the dead letters."""
    error: TaskError | None = None
    failed_reason: str | None = None
    result: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    added: AddedPlan | None = None
    """The steps that it hands over to."""

    @property
    def attempt(self) -> AttemptOutcome:
        """The outcome for the attempt row."""
        outcome = TRANSITIONS[self.verb].attempt
        assert outcome is not None, self.verb
        return outcome

    @property
    def will_retry(self) -> bool:
        """Whether this attempt's failure is followed by another run."""
        return not self.target.is_terminal and self.verb in (Verb.RETRY, Verb.RECOVER)

    @property
    def error_code(self) -> str | None:
        """The code of the error, if there is one."""
        return str(self.error.error_code) if self.error is not None else None


def decide(task: Counters, outcome: Outcome, policy: Policy, random: Callable[[], float]) -> Change:
    """What will be written about a task whose code came to this outcome.

    `Returned` alone means COMPLETE, and always does, whatever the task and its policy: whoever
    writes thousands of them a second need not ask (`test_decide` keeps it so).
    """
    change = _decide(task, outcome, policy, random)
    return change if policy.dead_letter else change._replace(dead_letter=False)


def _decide(
    task: Counters, outcome: Outcome, policy: Policy, random: Callable[[], float]
) -> Change:
    match outcome:
        case Returned(result):
            return Change(verb=Verb.COMPLETE, target=TaskStatus.COMPLETED, result=result)
        case HandedOver(added):
            return _hand_over(task, added)
        case Failed(error, listed):
            if listed and policy.retry is not None and not policy.at_most_once:
                return _retry(task, policy.retry, task.max_retries, error, None, random)
            return _fail(error, _why_not_retried(policy))
        case TimedOut(timeout, stack, remark):
            error = TaskError.ours(
                ErrorCode.TASK_TIMEOUT,
                f"the task ran longer than its timeout of {timeout:g} s{remark}",
                traceback=_was_here(stack),
            )
            listed = policy.retry is not None and policy.retry.lists_timeout
            return _decide(task, Failed(error, listed), policy, random)
        case Crashed():
            return _recover(task, policy, outcome, random)
        case RetryAsked(error, delay_us):
            if policy.at_most_once:
                return _fail(_only_once("RetryLater", error))
            retry = policy.retry or _UNPLANNED_RETRY
            budget = task.max_retries if policy.retry is not None else retry.max_retries
            return _retry(task, retry, budget, error, delay_us, random)
        case SnoozeAsked(delay_us):
            if policy.at_most_once:
                return _fail(_only_once("Snooze"))
            return Change(verb=Verb.SNOOZE, target=TaskStatus.SCHEDULED, delay_us=delay_us)
        case AbortAsked(error):
            return _fail(error)
        case CancelAcknowledged():
            return _end(
                Verb.ACK_CANCEL,
                TaskStatus.CANCELLED,
                TaskError.ours(ErrorCode.TASK_CANCELLED, "the task was cancelled while it ran"),
            )
        case StoppedByShutdown():
            # At-most-once: it has begun, so it must not begin again by itself.
            if policy.on_shutdown == "stop" or policy.at_most_once:
                return _stall("its worker shut down while it ran")
            return Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)
        case StalledBySilence(interval, stack):
            return _stall(f"it gave no heartbeat for more than {interval:g} s", _was_here(stack))
        case NotBegun():
            return Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)
        case Interrupted(reason):
            if policy.at_most_once:
                return _stall(reason)
            return Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)


def _hand_over(task: Counters, added: bytes) -> Change:
    # Only what a worker has claimed can return; who recovers a task knows of no workflow.
    if getattr(task, "workflow_id", None) is None:
        return _fail(
            TaskError.ours(
                ErrorCode.RESULT_INVALID,
                "only a step of a workflow can add steps, and this was sent as a task by itself: a "
                "workflow is started by the send of its function",
            )
        )
    try:
        plan = AddedPlan.decode(added)
    except PayloadError as error:
        return _fail(TaskError.ours(ErrorCode.RESULT_INVALID, str(error)))
    return Change(verb=Verb.HAND_OVER, target=TaskStatus.WAITING, added=plan)


def _retry(
    task: Counters,
    retry: Retry,
    budget: int,
    error: TaskError,
    asked_us: int | None,
    random: Callable[[], float],
) -> Change:
    if task.retry_count >= budget:
        times = "1 retry" if task.retry_count == 1 else f"{task.retry_count} retries"
        return _fail(error, f" (after {times})" if task.retry_count else "")
    delay_us = asked_us
    if delay_us is None:
        delay_us = _as_us(retry.delay_for(task.retry_count + 1, random))
    return Change(
        verb=Verb.RETRY,
        target=TaskStatus.SCHEDULED if delay_us else TaskStatus.PENDING,
        delay_us=delay_us or None,
        retries=1,
        retries_allowed=budget,
        error=error,
        failed_reason=_reason(error),
        result=encode_error(error, _UNLIMITED),
    )


def _recover(task: Counters, policy: Policy, crash: Crashed, random: Callable[[], float]) -> Change:
    what = crash.cause or _death(crash.exit_code, crash.exit_signal)
    crashes = task.crash_count + 1
    delay_us: int | None = None
    if policy.on_crash == "stall":
        target = TaskStatus.STALLED
        error = TaskError.ours(ErrorCode.TASK_STALLED, what)
    elif crashes >= policy.max_crashes or policy.at_most_once:
        target = TaskStatus.FAILED
        often = f", {crashes} times now" if crashes > 1 else ""
        error = TaskError.ours(ErrorCode.WORKER_CRASHED, what + often)
    else:
        # The first crash may have been anybody's fault; after that, keep some distance.
        if crashes > 1:
            delay_us = _as_us(_crash_delay(policy.retry, crashes - 1, random))
        target = TaskStatus.SCHEDULED if delay_us else TaskStatus.PENDING
        error = TaskError.ours(ErrorCode.WORKER_CRASHED, what)
    return Change(
        verb=Verb.RECOVER,
        target=target,
        delay_us=delay_us or None,
        crashes=1,
        error=error,
        failed_reason=_reason(error),
        result=encode_error(error, _UNLIMITED),
        exit_code=crash.exit_code,
        exit_signal=crash.exit_signal,
    )


def _crash_delay(retry: Retry | None, n: int, random: Callable[[], float]) -> float:
    if retry is not None:
        delay = retry.delay_for(n, random)
        if delay is not None:
            return delay
    return min(2.0 ** min(n, 16), _CRASH_DELAY_LIMIT)


def _death(exit_code: int | None, exit_signal: int | None) -> str:
    if exit_signal is not None:
        import signal

        try:
            name = signal.Signals(exit_signal).name
        except ValueError:
            name = "an unknown signal"
        return f"its process was killed by {name} ({exit_signal})"
    if exit_code is not None:
        return f"its process ended with exit code {exit_code}"
    return "its worker vanished: the lease ran out"


def _only_once(asked: str, error: TaskError | None = None) -> TaskError:
    return TaskError.ours(
        ErrorCode.AT_MOST_ONCE,
        f"the task raised {asked}, but it is at_most_once and must not start again",
        traceback=error.traceback if error is not None else None,
        causes=error.causes if error is not None else (),
    )


def _why_not_retried(policy: Policy) -> str:
    """Of a task that has retries, and whose failure is none of those it is retried for."""
    if policy.retry is None or not policy.retry.max_retries:
        return ""
    if policy.at_most_once:
        return " (not retried: it is at_most_once)"
    return " (not retried: its Retry(on=…) does not list this)"


def _was_here(stack: str | None) -> str | None:
    """The stack of code that we ended, in the form of a traceback."""
    return f"Where it was when it was ended (most recent call last):\n{stack}" if stack else None


def _stall(why: str, where: str | None = None) -> Change:
    error = TaskError.ours(ErrorCode.TASK_STALLED, why, traceback=where)
    return _end(Verb.STALL, TaskStatus.STALLED, error)


def _fail(error: TaskError, after: str = "") -> Change:
    return _end(Verb.FAIL, TaskStatus.FAILED, error, after)


def _end(verb: Verb, target: TaskStatus, error: TaskError, after: str = "") -> Change:
    return Change(
        verb=verb,
        target=target,
        error=error,
        failed_reason=_reason(error) + after,
        result=encode_error(error, _UNLIMITED),
    )


def _reason(error: TaskError) -> str:
    """One sentence: the exception and the first line of its message, or the message."""
    first = error.message.strip().partition("\n")[0]
    if error.exception is not None and not error.exception.startswith("holdfast."):
        first = f"{error.type_name}: {first}" if first else str(error.type_name)
    return clean(first or str(error.error_code), _REASON_LIMIT)


def _as_us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)
