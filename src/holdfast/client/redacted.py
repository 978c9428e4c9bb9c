"""A task as it is shown: without the values of keys that say they are secret.

Owns which parts of a task are looked through: arguments by name, and objects wherever they stand in
arguments, results, the data of a stage, and the data of an error. What a `Secret` holds is hidden
already, when the task is read (`info.py`). An argument that was given by its place has no key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.client.info import Attempt, TaskInfo
from holdfast.core.redaction import mask
from holdfast.core.result import TaskError

__all__ = ["redacted_attempt", "redacted_task"]


def redacted_task(info: TaskInfo, hides: Callable[[str], bool]) -> TaskInfo:
    """The same task; `hides` says of a key whether its value is hidden."""
    return replace(
        info,
        args=mask(info.args, hides),
        kwargs=mask(info.kwargs, hides),
        result=mask(info.result, hides),
        meta=mask(info.meta, hides),
        error=_error(info.error, hides),
    )


def redacted_attempt(made: Attempt, hides: Callable[[str], bool]) -> Attempt:
    """The same attempt."""
    return replace(made, error=_error(made.error, hides))


def _error(error: TaskError | None, hides: Callable[[str], bool]) -> TaskError | None:
    if error is None or error.data is None:
        return error
    return TaskError.stored(
        str(error.error_code),
        error.message,
        mask(error.data, hides),
        error.exception,
        error.traceback,
        error.causes,
    )
