"""Why the store itself ends a task: the codes, the sentences and the stored errors.

Owns the words. What becomes of a task whose code has run is decided in `core.decide`.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.error_code import ErrorCode
from holdfast.core.payload.failure import encode_error
from holdfast.core.result import TaskError


class EndReason(NamedTuple):
    """What a verb of the store writes into a task that it ends."""

    code: str
    reason: str
    error: str
    """The `TaskError`, as JSON text, for `result`."""


def _reason(code: ErrorCode, reason: str) -> EndReason:
    return EndReason(code.value, reason, encode_error(TaskError.ours(code, reason)))


CANCELLED = _reason(ErrorCode.TASK_CANCELLED, "cancelled on request")
EXPIRED = _reason(ErrorCode.TASK_EXPIRED, "not claimed before its good_until")
DROPPED = _reason(ErrorCode.TASK_DROPPED, "no live worker knows this task name and version")
UPSTREAM_FAILED = _reason(ErrorCode.UPSTREAM_FAILED, "a step it depends on did not succeed")
UPSTREAM_CANCELLED = _reason(ErrorCode.UPSTREAM_CANCELLED, "a step it depends on was cancelled")
UPSTREAM_SUCCEEDED = _reason(
    ErrorCode.UPSTREAM_SUCCEEDED, "not needed: a step whose failure it waits for succeeded"
)
WORKFLOW_DEADLINE = _reason(
    ErrorCode.WORKFLOW_DEADLINE, "the deadline of its workflow passed before it had ended"
)
WORKFLOW_STOPPED = _reason(ErrorCode.TASK_CANCELLED, "its workflow stopped at the first failure")


def reason_of_stop(stopping: str) -> EndReason:
    """Why a step is cancelled whose workflow winds down for this reason."""
    return {"deadline": WORKFLOW_DEADLINE, "fail_fast": WORKFLOW_STOPPED}.get(stopping, CANCELLED)
