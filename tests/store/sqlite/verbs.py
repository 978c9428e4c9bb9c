"""A table of notes, and operations on it that show what the engine does."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

import apsw

from holdfast.store.callers.sqlite_connection import CallersConnection
from holdfast.store.op import (
    Alike,
    At,
    Channel,
    Column,
    Hint,
    Op,
    Statement,
    Steps,
    Table,
    alone,
    reads,
    writes,
)
from holdfast.store.settings import StoreSettings

T = TypeVar("T")

TEXTS: dict[str, list[str]] = {
    "make": [
        """CREATE TABLE IF NOT EXISTS notes (
            seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, at INTEGER,
            CONSTRAINT not_empty CHECK (body <> '')
        )""",
        """CREATE TABLE IF NOT EXISTS holdfast_meta (
            name TEXT PRIMARY KEY, value TEXT, at INTEGER
        ) STRICT, WITHOUT ROWID""",
    ],
    "put": ["INSERT INTO notes (body, at) VALUES (:body, :now) RETURNING seq"],
    "put_all": ["INSERT INTO notes (id, body, at) VALUES (:id, :body, :at) RETURNING seq"],
    "put_some": [
        "INSERT INTO notes (id, body, at) VALUES (:id, :body, :now) ON CONFLICT DO NOTHING"
    ],
    "put_alike": [
        """INSERT INTO notes (id, body, at)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), :now
        FROM json_each(:rows)"""
    ],
    "put_twice": [
        "INSERT INTO notes (body, at) VALUES (:body, :now)",
        "INSERT INTO notes (body, at) VALUES (:body || '!', :now) RETURNING body",
    ],
    "count": ["SELECT count(*) FROM notes"],
    "bodies": ["SELECT body FROM notes ORDER BY seq"],
    "now": ["SELECT :now"],
    "absent": ["SELECT * FROM nowhere"],
    "endless": [
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n"
    ],
    "clock": ["SELECT at FROM holdfast_meta WHERE name = 'clock'"],
}


def texts(name: str) -> Sequence[str]:
    return TEXTS[name]


@writes
def make() -> Steps[None]:
    yield Statement("make")


@writes
def put(body: str) -> Steps[int]:
    rows = yield Statement("put", {"body": body})
    return int(rows[0][0])


@reads
def read_for_ever() -> Steps[None]:
    yield Statement("endless")


@alone
def put_alone(body: str) -> Steps[int]:
    rows = yield Statement("put", {"body": body})
    return int(rows[0][0])


@alone
def put_some(*bodies: str, ids: Sequence[bytes] = ()) -> Steps[int]:
    """Write notes, several by one statement if that can be; how many were written."""
    rows = [*zip(ids or [os.urandom(16) for _ in bodies], bodies, strict=True)]
    columns = {"id": Column.UUID, "body": Column.TEXT}
    answer = yield Statement("put_some", table=Table(columns, rows, Alike("put_alike", own=2)))
    return len(answer)


@writes
def put_and_ring(body: str, *queues: str) -> Steps[None]:
    yield Statement("put", {"body": body}, hint=Hint(Channel.READY, queues))


@writes
def put_all(rows: Sequence[tuple[bytes, str, int]]) -> Steps[list[int]]:
    columns = {"id": Column.UUID, "body": Column.TEXT, "at": Column.TIME}
    answer = yield Statement("put_all", table=Table(columns, rows))
    return [row[0] for row in answer]


@writes
def put_then_fail(body: str) -> Steps[None]:
    yield Statement("put", {"body": body})
    yield Statement("absent")


@writes
def put_then_raise(body: str, error: BaseException) -> Steps[None]:
    yield Statement("put", {"body": body})
    raise error


@writes
def put_then_call(body: str, call: Callable[[], object]) -> Steps[None]:
    """Let a program's code run in the middle of an operation."""
    yield Statement("put", {"body": body})
    call()


@writes
def put_twice(body: str) -> Steps[str]:
    rows = yield Statement("put_twice", {"body": body})
    return str(rows[0][0])


@reads
def count() -> Steps[int]:
    rows = yield Statement("count")
    return int(rows[0][0])


@reads
def bodies() -> Steps[list[str]]:
    rows = yield Statement("bodies")
    return [row[0] for row in rows]


@reads
def write_in_a_read() -> Steps[None]:
    yield Statement("put", {"body": "x"})


@reads
def now() -> Steps[int]:
    rows = yield Statement("now")
    return int(rows[0][0])


@writes
def now_in_write() -> Steps[tuple[int, int]]:
    first = yield Statement("now")
    second = yield Statement("now")
    return first[0][0], second[0][0]


@reads
def stored_clock() -> Steps[int | None]:
    rows = yield Statement("clock")
    return rows[0][0] if rows else None


SOME_TIME = At(1_700_000_000_000_000)


def run_on(
    connection: sqlite3.Connection | apsw.Connection,
    op: Op[T],
    settings: StoreSettings,
    *,
    texts: Callable[[str], Sequence[str]] | None = None,
) -> T:
    """Run one operation on the caller's connection."""
    return CallersConnection(connection, settings, texts=texts).run(op)
