"""From how a task ended to what its caller gets: a value, an error, or an exception.

Owns which exception stands for which status, and what happens to a stored value that is not
of the task's return type: `outcome` reports it as an error with the code RESULT_UNREADABLE,
`get` raises `PayloadError`; the task itself stays COMPLETED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from holdfast.client.info import error_of
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import (
    PayloadError,
    TaskCancelled,
    TaskDropped,
    TaskExpired,
    TaskFailed,
    TaskNotCompleted,
    TaskStalled,
)
from holdfast.core.payload.codec import from_json
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.status import TaskStatus
from holdfast.store.verbs.inspect import Ending

__all__ = ["Decode", "outcome_of", "value_of"]

Decode: TypeAlias = Callable[[str], Any]

_RAISED: Final[dict[TaskStatus, type[TaskNotCompleted]]] = {
    TaskStatus.FAILED: TaskFailed,
    TaskStatus.CANCELLED: TaskCancelled,
    TaskStatus.EXPIRED: TaskExpired,
    TaskStatus.STALLED: TaskStalled,
    TaskStatus.DROPPED: TaskDropped,
}


def value_of(task_id: bytes, ending: Ending, decode: Decode | None) -> Any:
    """The value of a task that completed; raises what happened instead."""
    if ending.status is TaskStatus.COMPLETED:
        return _value(ending, decode)
    raise _RAISED[ending.status](task_id, _error(ending), name=ending.task_name)


def outcome_of(ending: Ending, decode: Decode | None) -> TaskResult[Any, TaskError]:
    """The value or the error of a task that has ended."""
    if ending.status is not TaskStatus.COMPLETED:
        return TaskResult(err=_error(ending))
    try:
        return TaskResult(ok=_value(ending, decode))
    except PayloadError as error:
        return TaskResult(err=TaskError.ours(ErrorCode.RESULT_UNREADABLE, str(error)))


def _value(ending: Ending, decode: Decode | None) -> Any:
    if ending.result is None:
        return None
    return (decode or from_json)(ending.result)


def _error(ending: Ending) -> TaskError:
    stored = error_of(ending.result)
    if stored is not None:
        return stored
    code = ending.error_code or ErrorCode.RESULT_UNREADABLE
    return TaskError.stored(code, ending.failed_reason or "", None, None, None, ())
