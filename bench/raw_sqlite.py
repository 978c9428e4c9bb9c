"""The lifecycle in SQL one would write by hand for SQLite, with apsw as it comes.

Owns the statements that Holdfast's are measured against: the same columns, the same lease
row and attempt row, one transaction for each step. Batches travel as JSON, which is quicker
than a statement per task. There is no turnstile, and so no fairness to anyone.
"""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

import apsw

from bench import fill
from bench.raw import COLUMNS, Row

_INSERT = f"""
INSERT INTO holdfast_tasks ({", ".join(COLUMNS)}) VALUES ({", ".join(["?"] * len(COLUMNS))})
"""

_CLAIM = """
UPDATE holdfast_tasks
SET status = 'CLAIMED', ready = 0, claim_token = :token, claimed_at = :now,
    claimed_by_worker_id = :worker, expire_at = NULL, updated_at = :now
WHERE seq IN (
    SELECT seq FROM holdfast_tasks
    WHERE queue_name = :queue AND ready
    ORDER BY priority, enqueued_at, id
    LIMIT :wanted
)
RETURNING seq, id, task_name, version, args, kwargs, task_options, attempt, retry_count, max_retries
"""

_LEASE = """
INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids) VALUES (?, ?, ?, ?)
"""

_START = """
UPDATE holdfast_tasks
SET status = 'RUNNING', attempt = attempt + 1, started_at = :now,
    first_started_at = ifnull(first_started_at, :now), heartbeat_at = :now,
    worker_hostname = :host, worker_pid = :pid, worker_process_name = :process, updated_at = :now
WHERE seq IN (SELECT value FROM json_each(:keys)) AND status = 'CLAIMED' AND claim_token = :token
RETURNING seq
"""

_ATTEMPTS = """
INSERT INTO holdfast_task_attempts (
    task_seq, attempt, outcome, will_retry, claim_token, started_at, finished_at, created_at,
    worker_id, worker_hostname, worker_pid, worker_process_name
)
SELECT seq, attempt, 'COMPLETED', 0, claim_token, started_at, :now, :now, claimed_by_worker_id,
    worker_hostname, worker_pid, worker_process_name
FROM holdfast_tasks
WHERE seq IN (SELECT value FROM json_each(:keys)) AND status = 'RUNNING' AND claim_token = :token
"""

_COMPLETE = """
UPDATE holdfast_tasks AS task
SET status = 'COMPLETED', claim_token = NULL, worker_pid = NULL, result = given.value,
    finished_at = :now, completed_at = :now, updated_at = :now
FROM json_each(:results) AS given
WHERE task.seq = CAST(given.key AS INTEGER) AND status = 'RUNNING' AND claim_token = :token
RETURNING seq
"""


class RawSqlite:
    """One plain apsw connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._token = ""

    def insert(self, row: Row) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(_INSERT, row)
        execute("COMMIT")

    def insert_many(self, rows: list[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(_INSERT, rows)
        self._connection.execute("COMMIT")

    def claim(self, wanted: int) -> list[Any]:
        execute = self._connection.execute
        now = time.time_ns() // 1_000
        self._token = str(uuid4())
        values = {
            "token": self._token,
            "now": now,
            "worker": "raw",
            "queue": fill.QUEUE,
            "wanted": wanted,
        }
        execute("BEGIN IMMEDIATE")
        keys: list[Any] = [row[0] for row in execute(_CLAIM, values).fetchall()]
        execute(_LEASE, (self._token, "raw", now + 30_000_000, json.dumps(keys)))
        execute("COMMIT")
        return keys

    def start(self, keys: list[Any]) -> int:
        execute = self._connection.execute
        values = {
            "now": time.time_ns() // 1_000,
            "host": "host",
            "pid": 4711,
            "process": "child",
            "keys": json.dumps(keys),
            "token": self._token,
        }
        execute("BEGIN IMMEDIATE")
        started = len(execute(_START, values).fetchall())
        execute("COMMIT")
        return started

    def complete(self, keys: list[Any]) -> int:
        execute = self._connection.execute
        values = {
            "now": time.time_ns() // 1_000,
            "keys": json.dumps(keys),
            "results": json.dumps({str(key): fill.RESULT for key in keys}),
            "token": self._token,
        }
        execute("BEGIN IMMEDIATE")
        execute(_ATTEMPTS, values)
        ended = len(execute(_COMPLETE, values).fetchall())
        execute("COMMIT")
        return ended

    def forget_leases(self) -> None:
        self._connection.execute("DELETE FROM holdfast_leases")

    def close(self) -> None:
        self._connection.close()
