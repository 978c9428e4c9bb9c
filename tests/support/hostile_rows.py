"""Rows that Holdfast would never write: every column of every table, with values that do not fit.

For somebody who may only INSERT and UPDATE. They are written with plain SQL, past the CHECK
constraints, which this tests without: on SQLite a pragma turns them off, on PostgreSQL they are
dropped. What the types themselves refuse (and NOT NULL) is passed over.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

import apsw
import psycopg
from psycopg import sql

from holdfast.core.schedules.definition import ScheduledCall
from holdfast.core.status import TaskStatus

NOW: Final = "now"
TABLES: Final = (
    "tasks",
    "leases",
    "task_attempts",
    "task_logs",
    "checkpoints",
    "task_notes",
    "task_dependencies",
    "workflows",
    "scopes",
    "step_counts",
    "workers",
    "worker_states",
    "queues",
    "limits",
    "counters",
    "freed",
    "routes",
    "stats",
    "schedules",
    "schedule_ticks",
    "meta",
)
"""Those that anything reads or writes so far, without the version of the schema."""
_OF_A_TASK: Final = ("task_attempts", "task_logs", "checkpoints", "task_notes")
_LONG: Final = "".join(random.Random(8).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8_000))
_TEXTS: Final = (
    "",
    "zz",
    "a\nERROR forged\x1b[31m",
    "{",
    "null",
    "[NaN]",
    '{"a":1}',
    '["x"]',
    "g" * 36,
    _LONG,
    "\x01" * 200_000,
)
_BYTES: Final = (b"\xff\xfe\x00A", b"\xed\xa0\x80")
_INTS: Final = (None, -1, 0, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63))
_TIMES: Final = (None, "infinity", "-infinity", "294276-12-31", "4713-01-01 BC", "1970-01-01")


@dataclass(frozen=True, slots=True)
class Hostile:
    """One value in one column of one row."""

    table: str
    column: str
    value: Any
    status: TaskStatus | None = None


class Database(Protocol):
    """Plain SQL on one store."""

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table, and the type of each."""
        ...

    def write(self, rows: Iterable[Hostile]) -> int:
        """Write these, each by itself; how many were not refused by the types."""
        ...

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


def corpus(database: Database, tables: Sequence[str] = TABLES) -> Iterator[Hostile]:
    """Everything there is to write."""
    for table in tables:
        statuses = tuple(TaskStatus) if table == "tasks" else (None,)
        for column, kind in database.columns(table).items():
            if column in ("seq", "status", "ready"):
                continue
            for value in _values(kind):
                for status in statuses:
                    yield Hostile(table, column, value, status)


def always() -> Iterator[Hostile]:
    """Those that have ended whole fleets; each in the type of one engine, refused by the other."""
    yield Hostile("tasks", "id", "zz", TaskStatus.SCHEDULED)
    for column in ("parent_id", "root_id", "workflow_id", "args", "kwargs", "task_options"):
        yield Hostile("tasks", column, "zz", TaskStatus.PENDING)
        yield Hostile("tasks", column, "", TaskStatus.PENDING)
    for column in ("trace_context", "queue_name"):
        yield Hostile("tasks", column, "", TaskStatus.PENDING)
    for most in (2**31 - 1, 2**63 - 1):
        yield Hostile("tasks", "attempt", most, TaskStatus.PENDING)
    yield Hostile("tasks", "args", "\x01" * 200_000, TaskStatus.PENDING)
    yield Hostile("tasks", "queue_name", _LONG, TaskStatus.SCHEDULED)
    yield Hostile("tasks", "enqueued_at", "infinity", TaskStatus.PENDING)
    yield Hostile("tasks", "started_at", None, TaskStatus.RUNNING)
    yield Hostile("leases", "token", "x")
    for ids in ("nope", "{NULL}", f"{{{{{uuid4()}}},{{{uuid4()}}}}}"):
        yield Hostile("leases", "task_ids", ids)
    yield Hostile("task_dependencies", "child_id", "zz")
    for column in ("parent_id", "root_id", "step_id", "tags", "arguments", "on_failure"):
        yield Hostile("workflows", column, "zz")
    for column in ("deadline_at", "created_at"):
        yield Hostile("workflows", column, "-infinity")
        yield Hostile("workflows", column, -(2**63))
    for column in ("workflow_id", "error_id", "error_gate", "ended_gate"):
        yield Hostile("scopes", column, "zz")
    for most in (2**31 - 1, -(2**31), 2**63 - 1, -(2**63)):
        yield Hostile("scopes", "body_open", most)
        yield Hostile("step_counts", "open", most)
        yield Hostile("step_counts", "bad", most)
    yield Hostile("workers", "known", "nope")
    yield Hostile("limits", "chosen", "nope")
    yield Hostile("limits", "scope", "nope")
    yield Hostile("counters", "held", 2**63 - 1)
    yield Hostile("freed", "n", 2**63 - 1)
    yield Hostile("routes", "queues", "nope")
    yield Hostile("routes", "pattern", "no pattern")
    for table in ("limits", "routes"):
        yield Hostile(table, "updated_at", "294276-12-31")
        yield Hostile(table, "updated_at", 2**63 - 1)
    for column in ("pattern", "timezone", "overlap", "payload"):
        yield Hostile("schedules", column, "nope")
    for column in ("next_run_at", "start_at", "end_at", "created_at"):
        yield Hostile("schedules", column, "-infinity")
        yield Hostile("schedules", column, -(2**63))
    yield Hostile("schedules", "next_run_at", "1970-01-01")
    yield Hostile("schedules", "run_count", 2**63 - 1)


def _values(kind: str) -> Sequence[Any]:
    kind = kind.lower()
    if kind == "text":
        return (None, *_TEXTS)
    if kind.startswith("timestamp"):
        return _TIMES
    if kind == "uuid":
        return (None, "00000000-0000-0000-0000-000000000000")
    if kind == "array":
        return (None, "{}", "{NULL}", f"{{{{{uuid4()}}},{{{uuid4()}}}}}")
    if kind == "boolean":
        return (None, True, False)
    if kind.startswith("double"):
        return (None, "NaN", "Infinity")
    if kind in ("bytea", "blob"):
        return (None, b"", b"\xff\x00")
    return _INTS


class _Templates:
    """Rows as Holdfast writes them, one for each table, to be spoilt."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def columns(self, table: str) -> dict[str, str]:
        raise NotImplementedError

    def _kinds(self, table: str) -> dict[str, str]:
        if table not in self._known:
            self._known[table] = self.columns(table)
        return self._known[table]

    def row(self, hostile: Hostile, number: int) -> tuple[str, dict[str, Any]]:
        id = str(UUID(int=(0x0190 << 112) | (7 << 76) | (2 << 62) | number))
        token = str(uuid4())
        match hostile.table:
            case "tasks":
                assert hostile.status is not None
                return id, _task(id, hostile.status, token)
            case "leases":
                return token, {"token": token, "worker_id": "gone", "expires_at": NOW}
            case "task_attempts":
                return id, {
                    "attempt": 1,
                    "outcome": "FAILED",
                    "will_retry": False,
                    "claim_token": token,
                    "started_at": NOW,
                    "finished_at": NOW,
                    "created_at": NOW,
                }
            case "task_logs":
                return id, {"attempt": 1, "part": 0, "written_at": NOW, "data": b"x"}
            case "checkpoints":
                return id, {"name": "x", "value": "1", "attempt": 1, "created_at": NOW}
            case "task_notes":
                return id, {"stage": "x", "updated_at": NOW}
            case "task_dependencies":
                return id, {"parent_id": id, "child_id": str(uuid4()), "on_status": "always"}
            case "workflows":
                return id, {
                    "workflow_id": id,
                    "workflow_name": "w",
                    "version": 1,
                    "status": "RUNNING",
                    "on_failure": "fail_fast",
                    "digest": "x",
                    "sent_at": NOW,
                    "created_at": NOW,
                    "updated_at": NOW,
                    "steps": 1,
                }
            case "scopes":
                return id, {"scope_id": id, "workflow_id": id, "body_open": 1, "tail_open": 0}
            case "step_counts":
                return id, {"scope_id": id, "part": 0, "is_tail": False, "open": 1}
            case "workers":
                return id, {
                    "worker_id": id,
                    "hostname": "h",
                    "pid": 1,
                    "version": "0",
                    "started_at": NOW,
                    "seen_at": NOW,
                    "lease_us": 30_000_000,
                    "queues": "[]",
                    "known": "[]",
                    "settings": "{}",
                }
            case "worker_states":
                return id, {
                    "worker_id": id,
                    "snapshot_at": NOW,
                    "hostname": "h",
                    "pid": 1,
                    "processes": 1,
                    "queues": "[]",
                    "tasks_running": 0,
                    "tasks_claimed": 0,
                    "worker_started_at": NOW,
                }
            case "queues":
                return id, {"queue_name": f"q{number}", "updated_at": NOW}
            case "limits":
                limit = '[{"concurrency":1}]'
                return id, {"scope": f"task t{number}", "chosen": limit, "updated_at": NOW}
            case "counters":
                return id, {"scope": f"task t{number}", "place": 0, "held": 0, "paid_until": NOW}
            case "freed":
                return id, {"scope": f"task t{number}", "n": 1}
            case "routes":
                return id, {"pattern": f"t{number}*", "queues": '{"a":1}', "updated_at": NOW}
            case "stats":
                return id, {
                    "minute": NOW,
                    "worker_id": id,
                    "queue_name": "default",
                    "task_name": "good",
                }
            case "schedules":
                return f"s{number}", _schedule(f"s{number}")
            case "schedule_ticks":
                return f"s{number}", {
                    "schedule_name": f"s{number}",
                    "tick": NOW,
                    "status": "fired",
                    "cause": "tick",
                    "noted_at": NOW,
                }
            case _:
                return id, {"name": f"n{number}", "value": "x", "at": NOW}


def _schedule(name: str) -> dict[str, Any]:
    """One that is due, and then not for a year."""
    return {
        "schedule_name": name,
        "pattern": "0 0 1 1 *",
        "timezone": "UTC",
        "overlap": "skip",
        "missed": "latest",
        "max_missed": 100,
        "task_name": "good",
        "version": 1,
        "payload": ScheduledCall("good", 1, "default", 50, "[0]", "{}", "x").encode(),
        "declared": False,
        "config_hash": "x",
        "seen_hashes": "[]",
        "next_run_at": NOW,
        "created_at": NOW,
        "updated_at": NOW,
    }


def _task(id: str, status: TaskStatus, token: str) -> dict[str, Any]:
    in_flight = status in (TaskStatus.CLAIMED, TaskStatus.RUNNING)
    row: dict[str, Any] = {
        "id": id,
        "task_name": "good",
        "version": 1,
        "queue_name": "default",
        "priority": 50,
        "status": status.value,
        "ready": status is TaskStatus.PENDING,
        "args": "[0]",
        "kwargs": "{}",
        "enqueue_sha": "x",
        "sent_at": NOW,
        "created_at": NOW,
        "updated_at": NOW,
        "enqueued_at": NOW,
        "max_retries": 0,
    }
    if status is TaskStatus.SCHEDULED:
        row["due_at"] = NOW
    if status is TaskStatus.WAITING:
        row["deps_open"] = row["deps_needed"] = 1
    if in_flight:
        row |= {"claim_token": token, "claimed_at": NOW, "claimed_by_worker_id": "gone"}
    if status is TaskStatus.RUNNING:
        row |= {"attempt": 1, "started_at": NOW, "first_started_at": NOW, "heartbeat_at": NOW}
    if status.is_terminal:
        row["finished_at"] = NOW
        if status is TaskStatus.COMPLETED:
            row["result"] = "1"
        else:
            row["error_code"] = "X"
    return row


class SqliteRows(_Templates):
    """By apsw, as the store itself: one process, one library."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._raw = apsw.Connection(path)
        self._raw.set_busy_timeout(10_000)
        self._raw.execute("PRAGMA ignore_check_constraints = ON")
        self._number = 0

    def columns(self, table: str) -> dict[str, str]:
        return {
            str(row[1]): str(row[2])
            for row in self._raw.execute(f"PRAGMA table_info(holdfast_{table})").fetchall()
        }

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._raw.execute(text, values).fetchall()

    def write(self, rows: Iterable[Hostile]) -> int:
        written = 0
        with self._raw:
            for hostile in rows:
                for value in self._raws(hostile):
                    self._number += 1
                    try:
                        with self._raw:
                            self._insert(hostile, value)
                        written += 1
                    except apsw.Error:
                        continue
        return written

    def _raws(self, hostile: Hostile) -> tuple[Any, ...]:
        # Text that is not UTF-8 goes with each empty text.
        return (hostile.value, *_BYTES) if hostile.value == "" else (hostile.value,)

    def _insert(self, hostile: Hostile, value: Any) -> None:
        row = self.row(hostile, self._number)[1]
        now = self._raw.execute("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)").get
        plain = {name: now if given is NOW else given for name, given in row.items()}
        if hostile.table in _OF_A_TASK:
            plain["task_seq"] = self._number
        if hostile.table == "leases":
            plain |= {"task_ids": "[1]", "expires_at": now - 1}
        kind = self._kinds(hostile.table)[hostile.column]
        text = kind == "TEXT" and isinstance(value, bytes)
        plain[hostile.column] = value
        marks = ["CAST(? AS TEXT)" if text and name == hostile.column else "?" for name in plain]
        names = ", ".join(plain)
        self._raw.execute(
            f"INSERT INTO holdfast_{hostile.table} ({names}) VALUES ({', '.join(marks)})",
            tuple(int(v) if isinstance(v, bool) else v for v in plain.values()),
        )
        if hostile.status in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
            self._raw.execute(
                "INSERT OR IGNORE INTO holdfast_leases VALUES (?, 'gone', ?, ?)",
                (row["claim_token"], now - 1, f"[{self._raw.last_insert_rowid()}]"),
            )

    def close(self) -> None:
        self._raw.close()


class PostgresRows(_Templates):
    """By psycopg."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._raw = psycopg.connect(url, autocommit=True)
        self._number = 0
        self._drop_checks()

    def _drop_checks(self) -> None:
        found = self._raw.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint "
            "WHERE contype = 'c' AND conrelid::regclass::text LIKE 'holdfast%'"
        ).fetchall()
        for table, name in found:
            self._raw.execute(
                sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
                    sql.Identifier(table), sql.Identifier(name)
                )
            )

    def columns(self, table: str) -> dict[str, str]:
        found = self._raw.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = %s ORDER BY ordinal_position",
            [f"holdfast_{table}"],
        )
        return dict(found.fetchall())

    def execute(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._raw.execute(text.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def write(self, rows: Iterable[Hostile]) -> int:
        written = 0
        with self._raw.transaction():
            for hostile in rows:
                self._number += 1
                try:
                    with self._raw.transaction():
                        self._insert(hostile)
                    written += 1
                except psycopg.Error:
                    continue
        return written

    def _insert(self, hostile: Hostile) -> None:
        id, row = self.row(hostile, self._number)
        if hostile.table in _OF_A_TASK:
            row["task_id"] = id
        if hostile.table == "leases":
            row["task_ids"] = [UUID(id)]
        row[hostile.column] = hostile.value
        kinds = self._kinds(hostile.table)
        marks = [
            sql.SQL("statement_timestamp() - interval '1 ms'")
            if value is NOW
            else _mark("uuid[]" if kinds[name] == "ARRAY" else kinds[name])
            for name, value in row.items()
        ]
        self._raw.execute(
            sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                sql.Identifier(f"holdfast_{hostile.table}"),
                sql.SQL(", ").join(map(sql.Identifier, row)),
                sql.SQL(", ").join(marks),
            ),
            [value for value in row.values() if value is not NOW],
        )
        if hostile.status in (TaskStatus.CLAIMED, TaskStatus.RUNNING) and row.get("claim_token"):
            self._raw.execute(
                "INSERT INTO holdfast_leases VALUES (%s, 'gone', statement_timestamp(), %s) "
                "ON CONFLICT DO NOTHING",
                [row["claim_token"], [UUID(row["id"])]],
            )

    def close(self) -> None:
        self._raw.close()


def open_rows(url: str) -> SqliteRows | PostgresRows:
    """The store behind this URL, for somebody who writes by hand."""
    if url.startswith("sqlite"):
        return SqliteRows(url.removeprefix("sqlite:///"))
    return PostgresRows(url)


def _mark(kind: str) -> sql.SQL:
    """A parameter of a type that the catalogue has named."""
    text: Any = f"%s::{kind}"
    return sql.SQL(text)
