"""Rows of schedules and of their ticks, as records; strict, as in `rows`.

Apart from those, because it knows what a schedule is, and with that cron: most programs send tasks
and need neither.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from holdfast.core.errors import ConfigError, PayloadError, UnreadableRow
from holdfast.core.schedules.definition import MOST_MISSED, ScheduleDefinition
from holdfast.core.schedules.records import ScheduleRecord, TickCause, TickRecord, TickStatus
from holdfast.store.op import Row
from holdfast.store.rows import check, named, optional_uuid, unfit

_DEFINITION: Final = (
    "name",
    "pattern",
    "timezone",
    "overlap",
    "missed",
    "max_missed",
    "start_at",
    "end_at",
    "task_name",
    "version",
    "payload",
)
_SCHEDULE: Final = _DEFINITION + tuple(field.name for field in fields(ScheduleRecord))[1:]
_TICK: Final = tuple(field.name for field in fields(TickRecord))


def schedule(row: Row) -> ScheduleRecord:
    """A schedule that can be fired; `UnreadableRow` for any other."""
    table = "holdfast_schedules"
    check(_SCHEDULE, row, table)
    values = dict(zip(_SCHEDULE, row, strict=True))
    try:
        definition = ScheduleDefinition(**{name: values.pop(name) for name in _DEFINITION})
        values["last_task_id"] = optional_uuid(values["last_task_id"])
        values["declared"] = bool(values["declared"])
        values["has_waiting"] = bool(values["has_waiting"])
        record = ScheduleRecord(definition, **values)
    except (ValueError, TypeError) as error:
        raise unfit(table, row, _SCHEDULE, error) from error
    column = "pattern or timezone"
    try:
        _ = definition.rule
        column = "payload"
        _ = definition.call
    except (ConfigError, PayloadError) as error:
        raise UnreadableRow(table, named(row[0]), column, str(error)) from error
    if not 1 <= definition.max_missed <= MOST_MISSED:
        reason = f"is {definition.max_missed}"
        raise UnreadableRow(table, named(row[0]), "max_missed", reason)
    return record


def tick(row: Row) -> TickRecord:
    check(_TICK, row, "holdfast_schedule_ticks")
    name, at, status, cause, task_id, noted_at = row
    try:
        return TickRecord(
            name, at, TickStatus(status), TickCause(cause), optional_uuid(task_id), noted_at
        )
    except (ValueError, TypeError) as error:
        raise unfit("holdfast_schedule_ticks", row, _TICK, error) from error
