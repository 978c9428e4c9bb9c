"""The lifecycle in SQL one would write by hand for PostgreSQL, with psycopg as it comes.

Owns the statements that Holdfast's are measured against: the same columns, the same lease
row and attempt row, one commit for each step. They know the plan rule that costs most when
it is missed (reach rows by `id = ANY(...)`), and nothing of names, pauses, expiry or limits.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

from bench import fill
from bench.place import PgConnection
from bench.raw import COLUMNS, Row

_TYPES = {
    "id": "uuid",
    "version": "int4",
    "priority": "int2",
    "sent_at": "timestamptz",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
    "run_at": "timestamptz",
    "good_until": "timestamptz",
    "good_for_us": "int8",
    "expire_at": "timestamptz",
    "max_retries": "int4",
    "workflow_id": "uuid",
    "deps_needed": "int4",
    "deps_open": "int4",
    "parent_id": "uuid",
    "root_id": "uuid",
    "schedule_tick": "timestamptz",
    "ready": "bool",
    "due_at": "timestamptz",
    "enqueued_at": "timestamptz",
}

_INSERT = f"""
INSERT INTO holdfast_tasks ({", ".join(COLUMNS)}) VALUES ({", ".join(["%s"] * len(COLUMNS))})
""".encode()
_COPY = f"COPY holdfast_tasks ({', '.join(COLUMNS)}) FROM STDIN WITH (FORMAT binary)".encode()

_CLAIM = """
WITH claimed AS (
    UPDATE holdfast_tasks
    SET status = 'CLAIMED', ready = false, claim_token = %(token)s, claimed_at = now(),
        claimed_by_worker_id = %(worker)s, expire_at = NULL, updated_at = now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast_tasks
        WHERE queue_name = %(queue)s AND ready
        ORDER BY priority, enqueued_at, id
        LIMIT %(wanted)s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, task_name, version, args, kwargs, task_options, attempt, retry_count, max_retries
), leased AS (
    INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids)
    SELECT %(token)s, %(worker)s, now() + interval '30 seconds', array_agg(id) FROM claimed
)
SELECT * FROM claimed
"""

_START = """
UPDATE holdfast_tasks
SET status = 'RUNNING', attempt = attempt + 1, started_at = now(),
    first_started_at = coalesce(first_started_at, now()), heartbeat_at = now(),
    worker_hostname = %(host)s, worker_pid = %(pid)s, worker_process_name = %(process)s,
    updated_at = now()
WHERE id = ANY (%(ids)b) AND status = 'CLAIMED' AND claim_token = %(token)s
RETURNING id
"""

_COMPLETE = """
WITH ended AS (
    UPDATE holdfast_tasks
    SET status = 'COMPLETED', claim_token = NULL, worker_pid = NULL,
        result = %(results)s::jsonb ->> (id::text), finished_at = now(), completed_at = now(),
        updated_at = now()
    WHERE id = ANY (%(ids)b) AND status = 'RUNNING' AND claim_token = %(token)s
    RETURNING id, attempt, started_at, claimed_by_worker_id, worker_hostname, worker_process_name
), written AS (
    INSERT INTO holdfast_task_attempts (
        task_id, attempt, outcome, will_retry, claim_token, started_at, finished_at, created_at,
        worker_id, worker_hostname, worker_pid, worker_process_name
    )
    SELECT id, attempt, 'COMPLETED', false, %(token)s, started_at, now(), now(),
        claimed_by_worker_id, worker_hostname, %(pid)s, worker_process_name
    FROM ended
)
SELECT id FROM ended
"""


class RawPostgres:
    """One plain psycopg connection in autocommit mode."""

    def __init__(self, connection: PgConnection) -> None:
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._token = uuid4()

    def insert(self, row: Row) -> None:
        self._cursor.execute(_INSERT, row, prepare=True)

    def insert_many(self, rows: list[Row]) -> None:
        with self._cursor.copy(_COPY) as copy:
            copy.set_types([_TYPES.get(name, "text") for name in COLUMNS])
            for row in rows:
                copy.write_row(row)

    def claim(self, wanted: int) -> list[UUID]:
        self._token = uuid4()
        values = {
            "token": self._token,
            "worker": "raw",
            "queue": fill.QUEUE,
            "wanted": wanted,
        }
        rows = self._cursor.execute(_CLAIM, values, prepare=True).fetchall()
        return [row[0] for row in rows]

    def start(self, keys: list[Any]) -> int:
        values = {
            "ids": keys,
            "token": self._token,
            "host": "host",
            "pid": 4711,
            "process": "child",
        }
        return len(self._cursor.execute(_START, values, prepare=True).fetchall())

    def complete(self, keys: list[Any]) -> int:
        values = {
            "ids": keys,
            "token": self._token,
            "pid": 4711,
            "results": json.dumps({str(key): fill.RESULT for key in keys}),
        }
        return len(self._cursor.execute(_COMPLETE, values, prepare=True).fetchall())

    def forget_leases(self) -> None:
        self._cursor.execute("DELETE FROM holdfast_leases")

    def close(self) -> None:
        self._connection.close()
