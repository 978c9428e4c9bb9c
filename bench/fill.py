"""Tables as they look after a while: many rows, written by one statement.

Owns what a row made for a benchmark looks like, and submissions of the same content. The
rows are such as `submit` and `complete` would have written.
"""

from __future__ import annotations

import time

from bench.place import Place, connect_postgres, connect_sqlite
from holdfast.core.identity import new_id
from holdfast.core.records import Submission

QUEUE = "default"
NAME = "bench.noop"
KNOWN = f"{NAME}@1"
UNKNOWN = "bench.elsewhere"
ARGS = '["photo-0123456789.png",640,480]'
KWARGS = '{"quality":85}'
RESULT = '{"ok":"photo-0123456789-640x480.png"}'
SHA = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"

_COLUMNS = """
    id, task_name, version, queue_name, priority, status, ready, args, kwargs, enqueue_sha,
    sent_at, created_at, updated_at, enqueued_at
"""
_ENDED = "attempt, started_at, first_started_at, finished_at, completed_at, result"

_PENDING_POSTGRES = f"""
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT lpad(to_hex(n), 32, '0')::uuid, %(name)s, 1, %(queue)s, 50, 'PENDING', true, %(args)s,
    %(kwargs)s, %(sha)s, at, at, at, at
FROM (
    SELECT n, clock_timestamp() - interval '1 day' + n * interval '1 microsecond' AS at
    FROM generate_series(%(first)s::bigint, %(first)s::bigint + %(count)s - 1) AS n
) AS row
"""

_FINISHED_POSTGRES = f"""
INSERT INTO holdfast_tasks ({_COLUMNS}, {_ENDED})
SELECT lpad(to_hex(n), 32, '0')::uuid, %(name)s, 1, %(queue)s, 50, 'COMPLETED', false, %(args)s,
    %(kwargs)s, %(sha)s, at, at, at, at, 1, at, at, at, at, %(result)s
FROM (
    SELECT n, clock_timestamp() - interval '2 days' + n * interval '1 microsecond' AS at
    FROM generate_series(%(first)s::bigint, %(first)s::bigint + %(count)s - 1) AS n
) AS row
"""

_PENDING_SQLITE = f"""
WITH RECURSIVE row (n) AS (
    SELECT :first UNION ALL SELECT n + 1 FROM row WHERE n + 1 < :first + :count
)
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT printf('00000000-0000-0000-0000-%012x', n), :name, 1, :queue, 50, 'PENDING', 1, :args,
    :kwargs, :sha, :at + n, :at + n, :at + n, :at + n
FROM row
"""

_FINISHED_SQLITE = f"""
WITH RECURSIVE row (n) AS (
    SELECT :first UNION ALL SELECT n + 1 FROM row WHERE n + 1 < :first + :count
)
INSERT INTO holdfast_tasks ({_COLUMNS}, {_ENDED})
SELECT printf('00000000-0000-0000-0000-%012x', n), :name, 1, :queue, 50, 'COMPLETED', 0, :args,
    :kwargs, :sha, :at + n, :at + n, :at + n, :at + n, 1, :at + n, :at + n, :at + n, :at + n,
    :result
FROM row
"""

_DAY_US = 86_400_000_000


def pending(place: Place, count: int, *, first: int = 1, name: str = NAME) -> None:
    """Tasks that can be claimed, oldest first, a microsecond apart."""
    _insert(place, _PENDING_POSTGRES, _PENDING_SQLITE, count, first, name, days=1)


def finished(place: Place, count: int, *, first: int = 1) -> None:
    """Tasks that were completed long ago."""
    _insert(place, _FINISHED_POSTGRES, _FINISHED_SQLITE, count, first, NAME, days=2)


def _insert(
    place: Place, postgres: str, sqlite: str, count: int, first: int, name: str, *, days: int
) -> None:
    values = {
        "first": first,
        "count": count,
        "name": name,
        "queue": QUEUE,
        "args": ARGS,
        "kwargs": KWARGS,
        "sha": SHA,
        "result": RESULT,
        "at": time.time_ns() // 1_000 - days * _DAY_US,
    }
    if place.engine == "postgresql":
        with connect_postgres(place) as connection:
            connection.execute(postgres.encode(), values)
    else:
        raw = connect_sqlite(place)
        raw.execute(sqlite, values)
        raw.close()


def settle(place: Place) -> None:
    """Leave nothing that the first claims would have to do: hint bits, statistics, dirty pages."""
    if place.engine == "postgresql":
        with connect_postgres(place) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    else:
        raw = connect_sqlite(place)
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()


def submission(name: str = NAME) -> Submission:
    """A task to submit, with the same content as the rows above."""
    return Submission(
        id=new_id(),
        task_name=name,
        version=1,
        queue_name=QUEUE,
        priority=50,
        args=ARGS,
        kwargs=KWARGS,
        enqueue_sha=SHA,
        sent_at=time.time_ns() // 1_000,
    )
