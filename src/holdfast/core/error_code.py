"""The error codes that Holdfast itself gives, in four families.

Owns the reserved names. A task's own error codes are plain strings of its author's
choosing, and `TaskError` refuses one that is listed here, so a code always tells who
gave it.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ErrorCode", "ErrorFamily"]


class ErrorFamily(StrEnum):
    """Where to look first when a code of this family appears."""

    OPERATIONAL = "operational"
    """The code or the machine it ran on broke down."""
    CONTRACT = "contract"
    """Arguments or result are not what the task's signature promises."""
    RETRIEVAL = "retrieval"
    """The task may well have succeeded; its stored result could not be read."""
    OUTCOME = "outcome"
    """Nothing broke: the task was ended by a rule or on request."""


class ErrorCode(StrEnum):
    """A reserved error code."""

    UNHANDLED_EXCEPTION = "UNHANDLED_EXCEPTION"
    TASK_EXITED = "TASK_EXITED"
    KEYBOARD_INTERRUPT = "KEYBOARD_INTERRUPT"
    TASK_TIMEOUT = "TASK_TIMEOUT"
    WORKER_CRASHED = "WORKER_CRASHED"
    COMPLETION_ROLLED_BACK = "COMPLETION_ROLLED_BACK"
    RETRY_LATER = "RETRY_LATER"

    ARGUMENTS_INVALID = "ARGUMENTS_INVALID"
    RESULT_NOT_SERIALISABLE = "RESULT_NOT_SERIALISABLE"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    RESULT_INVALID = "RESULT_INVALID"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UPSTREAM_MISSING = "UPSTREAM_MISSING"
    AT_MOST_ONCE = "AT_MOST_ONCE"
    INVALID_ROW = "INVALID_ROW"

    RESULT_UNREADABLE = "RESULT_UNREADABLE"

    ABORTED = "ABORTED"
    TASK_CANCELLED = "TASK_CANCELLED"
    TASK_EXPIRED = "TASK_EXPIRED"
    TASK_STALLED = "TASK_STALLED"
    TASK_DROPPED = "TASK_DROPPED"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"
    UPSTREAM_CANCELLED = "UPSTREAM_CANCELLED"
    UPSTREAM_SUCCEEDED = "UPSTREAM_SUCCEEDED"
    WORKFLOW_DEADLINE = "WORKFLOW_DEADLINE"

    @property
    def family(self) -> ErrorFamily:
        """The family it belongs to."""
        return _FAMILY[self]

    @property
    def meaning(self) -> str:
        """One line of explanation, for documentation and tooltips."""
        return _MEANING[self]


_MEANINGS: dict[ErrorFamily, dict[ErrorCode, str]] = {
    ErrorFamily.OPERATIONAL: {
        ErrorCode.UNHANDLED_EXCEPTION: "the code raised; `TaskError.exception` names the type",
        ErrorCode.TASK_EXITED: "the code called `sys.exit` or raised `SystemExit`",
        ErrorCode.KEYBOARD_INTERRUPT: "`KeyboardInterrupt` was raised inside the code",
        ErrorCode.TASK_TIMEOUT: "the code ran longer than `timeout` and was ended",
        ErrorCode.WORKER_CRASHED: "the process that ran the code died, or its worker vanished",
        ErrorCode.COMPLETION_ROLLED_BACK: "`complete_in` was called, but not committed",
        ErrorCode.RETRY_LATER: "the code raised `RetryLater` and no retry was left",
    },
    ErrorFamily.CONTRACT: {
        ErrorCode.ARGUMENTS_INVALID: "the stored arguments do not fit the task's signature",
        ErrorCode.RESULT_NOT_SERIALISABLE: "the result would not come back from JSON as it was",
        ErrorCode.RESULT_TOO_LARGE: "the result is larger than the limit",
        ErrorCode.RESULT_INVALID: "the code returned something its return annotation excludes",
        ErrorCode.PAYLOAD_TOO_LARGE: "with the values of other steps, the arguments are too large",
        ErrorCode.UPSTREAM_MISSING: "the value of another step, which this one needs, is gone",
        ErrorCode.AT_MOST_ONCE: "an `at_most_once` task asked to be started again",
        ErrorCode.INVALID_ROW: "the stored row cannot be read: damaged, or written by hand",
    },
    ErrorFamily.RETRIEVAL: {
        ErrorCode.RESULT_UNREADABLE: "the stored result is not of the task's return type",
    },
    ErrorFamily.OUTCOME: {
        ErrorCode.ABORTED: "the code raised `Abort`",
        ErrorCode.TASK_CANCELLED: "a person or a program cancelled the task",
        ErrorCode.TASK_EXPIRED: "`good_until` passed before the task was claimed",
        ErrorCode.TASK_STALLED: "interrupted by the system, not to be run again",
        ErrorCode.TASK_DROPPED: "no live worker knows the task's name and version",
        ErrorCode.UPSTREAM_FAILED: "a step this one depends on did not succeed",
        ErrorCode.UPSTREAM_CANCELLED: "a step this one depends on was cancelled",
        ErrorCode.UPSTREAM_SUCCEEDED: "not needed: a step whose failure it waits for succeeded",
        ErrorCode.WORKFLOW_DEADLINE: "the deadline of its workflow passed before it had ended",
    },
}
_MEANING = {code: text for codes in _MEANINGS.values() for code, text in codes.items()}
_FAMILY = {code: family for family, codes in _MEANINGS.items() for code in codes}
