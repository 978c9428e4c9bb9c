"""The endings that the store itself gives: their codes, sentences and stored errors.

Owns the words. An ending that comes from the task's own code is `core.outcome`'s.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.error_code import ErrorCode
from holdfast.core.payload.failure import encode_error
from holdfast.core.result import TaskError


class StoreEnding(NamedTuple):
    """What a verb of the store writes into a task that it ends."""

    code: str
    reason: str
    error: str
    """The `TaskError`, as JSON text, for `result`."""


def _ending(code: ErrorCode, reason: str) -> StoreEnding:
    return StoreEnding(code.value, reason, encode_error(TaskError.ours(code, reason)))


CANCELLED = _ending(ErrorCode.TASK_CANCELLED, "cancelled on request")
EXPIRED = _ending(ErrorCode.TASK_EXPIRED, "not claimed before its good_until")
DROPPED = _ending(ErrorCode.TASK_DROPPED, "no live worker knows this task name and version")
UPSTREAM_FAILED = _ending(ErrorCode.UPSTREAM_FAILED, "a step it depends on did not succeed")
UPSTREAM_CANCELLED = _ending(ErrorCode.UPSTREAM_CANCELLED, "a step it depends on was cancelled")
UPSTREAM_SUCCEEDED = _ending(
    ErrorCode.UPSTREAM_SUCCEEDED, "not needed: a step whose failure it waits for succeeded"
)
