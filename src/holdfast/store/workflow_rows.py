"""From raw rows to workflows and their steps; like `rows`, strict and row by row."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from holdfast.core.errors import UnreadableRow
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.records import StepRecord, WorkflowRecord
from holdfast.store import rows
from holdfast.store.op import Row

_WORKFLOW: Final = tuple(field.name for field in fields(WorkflowRecord))
_STEP: Final = tuple(field.name for field in fields(StepRecord))
_FLAGS: Final = ("required", "handler", "cleanup", "handed_over")
_NUMBERS: Final = ("number", "attempt", "deps_needed", "deps_open", "created_at")
_TEXTS: Final = ("name", "task_name")


def workflow_row(row: Row) -> WorkflowRecord:
    """A workflow; `UnreadableRow` if it is none that we could have written."""
    table = "holdfast_workflows"
    rows.check(_WORKFLOW, row, table)
    values: dict[str, Any] = dict(zip(_WORKFLOW, row, strict=True))
    for name in ("id", "parent_id", "step_id", "root_id", "error_id"):
        values[name] = _uuid(table, row, name, values[name])
    try:
        values["status"] = WorkflowStatus(values["status"])
    except ValueError:
        raise UnreadableRow(table, rows.named(row[0]), "status", "is no status") from None
    for name in ("name", "on_failure"):
        if type(values[name]) is not str:
            raise UnreadableRow(table, rows.named(row[0]), name, "is no text")
    for name in ("version", "steps", "created_at", "updated_at"):
        if type(values[name]) is not int:
            raise UnreadableRow(table, rows.named(row[0]), name, "is no number")
    return WorkflowRecord(**values)


def step_row(row: Row) -> StepRecord:
    """A step; `UnreadableRow` if it is none that we could have written."""
    table = "holdfast_tasks"
    rows.check(_STEP, row, table)
    values: dict[str, Any] = dict(zip(_STEP, row, strict=True))
    for name in ("id", "workflow_id", "scope_id"):
        values[name] = _uuid(table, row, name, values[name])
    if not rows.is_status(values["status"]):
        raise UnreadableRow(table, rows.named(row[0]), "status", "is no status")
    values["status"] = TaskStatus(values["status"])
    for name in _TEXTS:
        if type(values[name]) is not str:
            raise UnreadableRow(table, rows.named(row[0]), name, "is no text")
    for name in _NUMBERS:
        if type(values[name]) is not int:
            raise UnreadableRow(table, rows.named(row[0]), name, "is no number")
    values.update({name: bool(values[name]) for name in _FLAGS})
    return StepRecord(**values)


def _uuid(table: str, row: Row, name: str, value: Any) -> bytes | None:
    try:
        return rows.optional_uuid(value)
    except ValueError:
        raise UnreadableRow(table, rows.named(row[0]), name, "is not a uuid") from None
