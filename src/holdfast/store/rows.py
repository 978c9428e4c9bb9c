"""From raw rows to records. Strict: a row that does not fit its record is an error here.

Owns the only place where the engines' raw values differ: SQLite gives ids as text and
flags as 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.core.records import (
    AttemptRecord,
    ClaimedTask,
    QueueRecord,
    TaskRecord,
    WorkerRecord,
    WorkerState,
)
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store.op import Key, Row, Rows

_decode = msgspec.json.Decoder().decode


def uuid(value: bytes | str) -> bytes:
    """An id or token, whichever way the engine stores it."""
    if type(value) is bytes:
        return value
    return bytes.fromhex(value.replace("-", ""))  # type: ignore[arg-type]


def optional_uuid(value: bytes | str | None) -> bytes | None:
    return None if value is None else uuid(value)


def key(value: bytes | str | int) -> Key:
    """A row key: an id on PostgreSQL, an integer on SQLite."""
    return value if type(value) is int else uuid(value)  # type: ignore[arg-type]


def keys(value: Sequence[Any] | str) -> list[Key]:
    """The tasks that a lease names: an array on PostgreSQL, JSON on SQLite."""
    if isinstance(value, str):
        inner = value.strip()[1:-1]
        return [int(part) for part in inner.split(",")] if inner else []
    return [uuid(item) for item in value]


_claimed: Callable[..., ClaimedTask] = ClaimedTask


def claim(found: Rows) -> Rows:
    """The rows of a claim; SQLite gives them in one text."""
    if len(found) == 1 and len(found[0]) == 1:
        rows: Rows = _decode(found[0][0])
        return rows
    return found


def claimed(row: Row, token: bytes) -> ClaimedTask:
    if type(row[0]) is bytes:
        return _claimed(*row, token)
    key, id, *rest, parent_id, root_id, workflow_id, trace_context = row
    parents = map(optional_uuid, (parent_id, root_id, workflow_id))
    return _claimed(key, uuid(id), *rest, *parents, trace_context, token)


_TASK_UUIDS = (0, 20, 50, 53, 54)
_TASK_STATUS = 5
_TASK_DEAD = 42


def task(row: Row) -> TaskRecord:
    values = list(row)
    for place in _TASK_UUIDS:
        values[place] = optional_uuid(values[place])
    values[_TASK_STATUS] = TaskStatus(values[_TASK_STATUS])
    values[_TASK_DEAD] = bool(values[_TASK_DEAD])
    return TaskRecord(*values)


def attempt(row: Row) -> AttemptRecord:
    values = list(row)
    values[0] = uuid(values[0])
    values[2] = AttemptOutcome(values[2])
    values[3] = bool(values[3])
    values[4] = uuid(values[4])
    return AttemptRecord(*values)


def queue(row: Row) -> QueueRecord:
    return QueueRecord(*row)


def worker(row: Row) -> WorkerRecord:
    return WorkerRecord(*row)


def worker_state(row: Row) -> WorkerState:
    worker_id, snapshot_at, *between, started_at = row
    values = [worker_id, *between[:6], started_at, *between[6:], snapshot_at]
    return WorkerState(*values)
