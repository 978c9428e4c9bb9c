"""A task as it is shown: without the values of keys that say they are secret.

Owns which parts of a task are looked through: arguments by name, and objects wherever they stand in
arguments, results, the data of a stage, and the data of an error; and the messages, which may quote
an address with its password. What a `Secret` holds is hidden already, when the task is read
(`info.py`). An argument that was given by its place has no key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from holdfast.client.explain import Why
from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.schedule_control import ScheduleInfo
from holdfast.client.workflow_info import StepInfo, WorkflowInfo
from holdfast.client.workflow_questions import WorkflowWhy
from holdfast.core.redaction import mask, redact_lines
from holdfast.core.result import TaskError

__all__ = [
    "redacted_attempt",
    "redacted_schedule",
    "redacted_step",
    "redacted_task",
    "redacted_why",
    "redacted_workflow",
]

AnyWhy = TypeVar("AnyWhy", Why, WorkflowWhy)


def redacted_task(info: TaskInfo, hides: Callable[[str], bool]) -> TaskInfo:
    """The same task; `hides` says of a key whether its value is hidden."""
    return replace(
        info,
        args=mask(info.args, hides),
        kwargs=mask(info.kwargs, hides),
        result=mask(info.result, hides),
        meta=mask(info.meta, hides),
        error=_error(info.error, hides),
        failed_reason=_said(info.failed_reason),
    )


def redacted_attempt(made: Attempt, hides: Callable[[str], bool]) -> Attempt:
    """The same attempt."""
    return replace(made, error=_error(made.error, hides), failed_reason=_said(made.failed_reason))


def redacted_schedule(info: ScheduleInfo, hides: Callable[[str], bool]) -> ScheduleInfo:
    """The same schedule."""
    return replace(info, args=mask(info.args, hides), kwargs=mask(info.kwargs, hides))


def redacted_workflow(info: WorkflowInfo, hides: Callable[[str], bool]) -> WorkflowInfo:
    """The same workflow."""
    return replace(info, arguments=mask(info.arguments, hides))


def redacted_step(step: StepInfo) -> StepInfo:
    """The same step of one."""
    return replace(step, failed_reason=_said(step.failed_reason))


def redacted_why(why: AnyWhy) -> AnyWhy:
    """The same answer."""
    return replace(why, reasons=tuple(map(redact_lines, why.reasons)))


def _said(text: str | None) -> str | None:
    return None if text is None else redact_lines(text)


def _error(error: TaskError | None, hides: Callable[[str], bool]) -> TaskError | None:
    if error is None:
        return None
    return TaskError.stored(
        str(error.error_code),
        redact_lines(error.message),
        mask(error.data, hides),
        error.exception,
        _said(error.traceback),
        tuple(map(redact_lines, error.causes)),
    )
