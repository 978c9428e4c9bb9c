"""From raw rows to records. Strict, and row by row: one that does not fit its record is an
`UnreadableRow`, and says nothing about the others.

Owns the only place where the engines' raw values differ (SQLite gives ids as text, flags as 0
and 1, and text that is not UTF-8 with lone surrogates), and what a row may hold: neither engine
stops somebody who writes by hand from putting a time beyond the year 9999 into a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypedDict, TypeVar

import msgspec

from holdfast.core.errors import UnreadableRow
from holdfast.core.identity import as_text
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

T = TypeVar("T")

MOST_STARTS: Final = 2**31 - 2
"""The largest counter of a row that can still be counted up on both engines."""
LONGEST_PAYLOAD: Final = 64 * 1024 * 1024
"""Bytes of arguments, or of options, that a claim hands out. No sender stores as
many unless `max_payload` was raised far above its default of 1 MiB."""
_EARLIEST_US: Final = -62_135_596_800_000_000
_LATEST_US: Final = 253_402_300_799_999_999
"""What a datetime can hold: the years 1 to 9999."""
_MOST: Final = 2**63 - 1

_decode = msgspec.json.Decoder().decode


def uuid(value: bytes | str) -> bytes:
    """An id or token, whichever way the engine stores it; `ValueError` if it is neither."""
    if type(value) is bytes:
        return value
    if type(value) is str and len(value) == 36:
        raw = bytes.fromhex(value.replace("-", ""))
        if len(raw) == 16:
            return raw
    raise ValueError("is not a uuid")


def optional_uuid(value: bytes | str | None) -> bytes | None:
    return None if value is None else uuid(value)


def uuids(found: Rows, place: int = 0) -> Iterator[bytes]:
    """The ids of rows; malformed ones are passed over."""
    for row in found:
        try:
            yield uuid(row[place])
        except ValueError:
            continue


def last_id(found: Rows, place: int, page: int) -> bytes | None:
    """Where a walk over ids goes on after this page; None after the last one.

    A malformed id has no position: the walk continues after the last valid one.
    """
    ids = list(uuids(found, place)) if len(found) == page else []
    return ids[-1] if ids else None


def texts(values: Iterable[Any]) -> Iterator[str]:
    """Those of these values that are texts and valid UTF-8."""
    return (value for value in values if type(value) is str and _is_utf8(value))


def optional_text(value: str | None) -> str | None:
    """A text of a row, if there is one and it can be written again."""
    return next(texts([value]), None)


def as_bound(text: str) -> str | bytes:
    """A text of a row, to find its place again; its bytes, if it is not UTF-8."""
    return text if _is_utf8(text) else text.encode("utf-8", "surrogateescape")


def within_calendar(us: int | None) -> int:
    """A time that a datetime can hold, whatever the row says."""
    return max(_EARLIEST_US, min(us or 0, _LATEST_US))


def key(value: bytes | str | int) -> Key:
    """A row key: an id on PostgreSQL, an integer on SQLite."""
    return value if type(value) is int else uuid(value)  # type: ignore[arg-type]


def keys(value: Sequence[Any] | str) -> list[Key]:
    """The tasks that a lease names: an array on PostgreSQL, JSON on SQLite."""
    if isinstance(value, str):
        inner = value.strip()[1:-1]
        return [int(part) for part in inner.split(",")] if inner else []
    return [_id(item) for item in value]


def _id(value: object) -> bytes:
    # An array may hold NULL, or arrays.
    if type(value) is bytes:
        return value
    raise ValueError("is not a list of ids")


class LeasedTask(NamedTuple):
    """A row of `leased_tasks`, as it stands there."""

    key: Any
    id: Any
    status: Any
    attempt: Any
    retry_count: Any
    max_retries: Any
    crash_count: Any
    good_until: Any
    task_options: Any
    worker_pid: Any
    claimed_by_worker_id: Any
    worker_hostname: Any
    task_name: Any
    queue_name: Any
    locked: Any


def wrong_in_flight(row: LeasedTask) -> str | None:
    """Why the row of a leased task cannot be read; None if it can."""
    try:
        check(row._fields[:-1], row[:-1], "holdfast_tasks")
    except UnreadableRow as error:
        return f"{error.column} {error.reason}"
    return None


def as_hex(raw: bytes | str) -> str:
    """A raw token or id, whatever it is, in hexadecimal digits."""
    return (raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogateescape")).hex()


_claimed: Callable[..., ClaimedTask] = ClaimedTask


def claim(found: Rows) -> tuple[Rows, bool]:
    """The rows of a claim (SQLite gives them in one text), and whether all texts are UTF-8."""
    if len(found) == 1 and len(found[0]) == 1:
        given: bytes = found[0][0]
        try:
            return _decode(given), True
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The other library takes what is not UTF-8.
            return json.loads(given.decode("utf-8", "surrogateescape")), False
    return found, True


def claimed(row: Row, token: bytes, is_utf8: bool = True) -> ClaimedTask:
    """A claimed task; `UnreadableRow` if its row is none that a worker can do anything with."""
    try:
        if type(row[0]) is bytes:
            task = _claimed(*row, token)
        else:
            key, id, *rest, parent_id, root_id, workflow_id, trace_context, scope_id, inputs = row
            parents = map(optional_uuid, (parent_id, root_id, workflow_id))
            scope = optional_uuid(scope_id)
            task = _claimed(key, uuid(id), *rest, *parents, trace_context, scope, inputs, token)
    except (ValueError, TypeError) as error:
        raise unfit("holdfast_tasks", row, _CLAIM, error) from error
    if (
        is_utf8
        # Empty: it was too long to be handed out.
        and task.args
        and task.kwargs
        and task.task_options != ""
        and 0 <= task.attempt <= MOST_STARTS
        and 0 <= task.retry_count <= MOST_STARTS
        and 0 <= task.crash_count <= MOST_STARTS
        and 0 <= task.max_retries <= MOST_STARTS
    ):
        return task
    check(_CLAIM, row, "holdfast_tasks")
    return task


_CLAIM: Final = tuple(field for field in ClaimedTask.__struct_fields__ if field != "token")
_TASK: Final = tuple(field.name for field in fields(TaskRecord))
_TASK_STATUS: Final = _TASK.index("status")
_TASK_DEAD: Final = _TASK.index("dead")
_TASK_HANDED_OVER: Final = _TASK.index("handed_over")
CREATED_AT: Final = _TASK.index("created_at")
"""Where a raw row of a task has the time at which it was stored."""
_ATTEMPT: Final = tuple(field.name for field in fields(AttemptRecord))
_WORKER: Final = tuple(field.name for field in fields(WorkerRecord))
_QUEUE: Final = tuple(field.name for field in fields(QueueRecord))
_STATE: Final = (
    "worker_id",
    "snapshot_at",
    "hostname",
    "pid",
    "processes",
    "queues",
    "tasks_running",
    "tasks_claimed",
    "memory_usage_mb",
    "memory_percent",
    "cpu_percent",
    "max_claim_batch",
    "max_claim_per_worker",
    "cluster_wide_cap",
    "queue_priorities",
    "queue_max_concurrency",
    "recovery_config",
    "worker_started_at",
)
_UUIDS: Final = frozenset(
    {
        "id",
        "task_id",
        "last_task_id",
        "claim_token",
        "workflow_id",
        "parent_id",
        "root_id",
        "scope_id",
    }
)
_TASK_UUIDS: Final = tuple(at for at, name in enumerate(_TASK) if name in _UUIDS)
_COUNTERS: Final = frozenset(
    {"attempt", "retry_count", "max_retries", "crash_count", "version", "pid", "worker_pid"}
)
_TIMES: Final = frozenset({"good_until", "schedule_tick", "last_tick", "tick", "history_from"})
_LONGEST: Final = {"queue_name": 100, "task_name": 255}
_PAYLOADS: Final = frozenset({"args", "kwargs", "task_options"})


def check(columns: Sequence[str], row: Row, table: str) -> None:
    """Look at each value of a row; `UnreadableRow` for the first that cannot be."""
    for column, value in zip(columns, row, strict=True):
        reason = _wrong(column, value)
        if reason is not None:
            raise UnreadableRow(table, named(row[0]), column, reason)


def _wrong(column: str, value: Any) -> str | None:
    if value is None or column == "key":
        return None
    if column in _UUIDS:
        return None if is_uuid(value) else "is not a uuid"
    if type(value) is str:
        if column in _PAYLOADS and not value:
            return f"is empty, or larger than {LONGEST_PAYLOAD:,} bytes"
        if len(value) > _LONGEST.get(column, len(value)):
            return f"is longer than {_LONGEST[column]} characters"
        return None if _is_utf8(value) else "is not UTF-8"
    if type(value) is int:
        if column.endswith("_at") or column in _TIMES:
            return None if _EARLIEST_US <= value <= _LATEST_US else "is a time beyond all years"
        if column in _COUNTERS:
            return None if 0 <= value <= MOST_STARTS else f"is {value}, which nothing counts to"
        return None if -_MOST <= value <= _MOST else f"is {value}, which is too large"
    return None


def is_uuid(value: Any) -> bool:
    """Whether a raw value is an id or a token."""
    try:
        uuid(value)
    except ValueError:
        return False
    return True


_STATUSES: Final = frozenset(status.value for status in TaskStatus)


def is_status(value: Any) -> bool:
    """Whether a raw value is a task's status."""
    return value in _STATUSES


def _is_utf8(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def named(raw: object) -> str:
    """A key as an operator writes it."""
    if type(raw) is bytes and len(raw) == 16:
        return as_text(raw)
    return str(raw)


def unfit(table: str, row: Row, columns: Sequence[str], error: Exception) -> UnreadableRow:
    """The error for a row that could not become its record."""
    try:
        check(columns, row, table)
    except UnreadableRow as found:
        return found
    except Exception:  # noqa: BLE001 - it is unreadable anyway; this was to say where
        pass
    return UnreadableRow(table, named(row[0]), "one of its columns", f"does not fit ({error})")


def readable(
    decode: Callable[[Row], T], found: Rows, set_aside: list[UnreadableRow] | None = None
) -> Iterator[T]:
    """The records of those rows that can be read; the errors of the others go to `set_aside`."""
    for row in found:
        try:
            yield decode(row)
        except UnreadableRow as error:
            if set_aside is not None:
                set_aside.append(error)


def task(row: Row) -> TaskRecord:
    """A task; behind its columns stands its key, to name it if it cannot be read."""
    *values, raw_key = row
    try:
        check(_TASK, values := list(values), "holdfast_tasks")  # type: ignore[arg-type]
        for place in _TASK_UUIDS:
            values[place] = optional_uuid(values[place])
        values[_TASK_STATUS] = _enumerated("status", TaskStatus, values[_TASK_STATUS])
        values[_TASK_DEAD] = bool(values[_TASK_DEAD])
        values[_TASK_HANDED_OVER] = bool(values[_TASK_HANDED_OVER])
        record = TaskRecord(*values)
        wrong = _contradiction(record)
        if wrong is not None:
            raise UnreadableRow("holdfast_tasks", "", *wrong)
        return record
    except UnreadableRow as error:
        raise UnreadableRow(error.table, named(raw_key), error.column, error.reason) from error


_JSON: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "args": msgspec.json.Decoder(list[Any]),
    "kwargs": msgspec.json.Decoder(dict[str, Any]),
    "task_options": msgspec.json.Decoder(dict[str, Any]),
    "tags": msgspec.json.Decoder(list[Any]),
    "stage_meta": msgspec.json.Decoder(),
    "progress": msgspec.json.Decoder(),
}


def _contradiction(record: TaskRecord) -> tuple[str, str] | None:
    """What a task's columns say against one another, or against what they mean."""
    status = record.status
    failed = status.is_terminal and status is not TaskStatus.COMPLETED
    if not 1 <= record.priority <= 100:
        return "priority", f"is {record.priority}"
    for column, is_set, goes_with in (
        ("claim_token", record.claim_token is not None, status in _HELD),
        ("due_at", record.due_at is not None, status is TaskStatus.SCHEDULED),
        ("finished_at", record.finished_at is not None, status.is_terminal),
        ("error_code", record.error_code is not None, failed),
    ):
        if is_set != goes_with:
            return column, f"does not go with the status {status.value}"
    for column, decoder in _JSON.items():
        text = getattr(record, column)
        if text is not None and not _fits(decoder, text):
            return column, "is not the JSON that belongs there"
    if status is TaskStatus.COMPLETED and record.result is not None:
        return None if _fits(_ANY_JSON, record.result) else ("result", "is not JSON")
    return None


_HELD: Final = frozenset({TaskStatus.CLAIMED, TaskStatus.RUNNING})
_ANY_JSON: Final = msgspec.json.Decoder()


def _fits(decoder: msgspec.json.Decoder[Any], text: str) -> bool:
    try:
        decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


def _enumerated(column: str, kind: Callable[[Any], T], value: Any) -> T:
    try:
        return kind(value)
    except ValueError as error:
        raise UnreadableRow("", "", column, f"is {value!r:.50}") from error


def attempt(row: Row) -> AttemptRecord:
    check(_ATTEMPT, row, "holdfast_task_attempts")
    values = dict(zip(_ATTEMPT, row, strict=True))
    try:
        values["task_id"] = uuid(values["task_id"])
        values["outcome"] = AttemptOutcome(values["outcome"])
        values["will_retry"] = bool(values["will_retry"])
        values["claim_token"] = uuid(values["claim_token"])
        return AttemptRecord(**values)
    except (ValueError, TypeError) as error:
        raise unfit("holdfast_task_attempts", row, _ATTEMPT, error) from error


def queue(row: Row) -> QueueRecord:
    check(_QUEUE, row, "holdfast_queues")
    return QueueRecord(*row)


def worker(row: Row) -> WorkerRecord:
    check(_WORKER, row, "holdfast_workers")
    for column, decoder in _WORKER_JSON.items():
        text = row[_WORKER.index(column)]
        if text is not None and not _fits(decoder, text):
            wrong = "is not the JSON that belongs there"
            raise UnreadableRow("holdfast_workers", row[0], column, wrong)
    return WorkerRecord(*row)


class _ChildUsage(TypedDict):
    """What a worker says of one of its children."""

    name: str
    pid: int
    memory_mb: float
    cpu_percent: float | None


_WORKER_JSON: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "queues": msgspec.json.Decoder(list[str]),
    "known": msgspec.json.Decoder(list[str]),
    "settings": msgspec.json.Decoder(dict[str, Any]),
    "children": msgspec.json.Decoder(list[_ChildUsage]),
}


def worker_state(row: Row) -> WorkerState:
    check(_STATE, row, "holdfast_worker_states")
    return WorkerState(**dict(zip(_STATE, row, strict=True)))
