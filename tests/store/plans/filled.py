"""A table of 200,000 tasks in all states, made by one statement on each engine."""

from __future__ import annotations

ROWS = 200_000

# Per hundred: how the states mix in a system that has run for a while.
_STATUS = """
    CASE
        WHEN n % 100 < 60 THEN 'COMPLETED'
        WHEN n % 100 < 85 THEN 'PENDING'
        WHEN n % 100 < 90 THEN 'SCHEDULED'
        WHEN n % 100 < 92 THEN 'CLAIMED'
        WHEN n % 100 < 95 THEN 'RUNNING'
        WHEN n % 100 < 98 THEN 'FAILED'
        WHEN n % 100 < 99 THEN 'CANCELLED'
        ELSE 'WAITING'
    END
"""

_COLUMNS = """
    id, task_name, version, queue_name, priority, status, ready, args, kwargs, enqueue_sha,
    sent_at, created_at, updated_at, enqueued_at, due_at, expire_at, claim_token, finished_at,
    error_code, dead, unique_slot, workflow_id
"""

POSTGRES = f"""
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT
    lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 3 = 0 THEN 'known' ELSE 'other' END, 1,
    'q' || n % 7, 50, status, status = 'PENDING', '[]', '{{}}', 'sha', at, at, at, at,
    CASE WHEN status = 'SCHEDULED' THEN at END,
    CASE WHEN status IN ('PENDING', 'SCHEDULED') AND n % 5 = 0 THEN at END,
    CASE WHEN status IN ('CLAIMED', 'RUNNING') THEN lpad(to_hex(n / 100), 32, '0')::uuid END,
    CASE WHEN status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN at END,
    CASE WHEN status IN ('FAILED', 'CANCELLED') THEN 'X' END,
    CASE WHEN status = 'FAILED' THEN true END,
    CASE WHEN status = 'PENDING' AND n % 11 = 0 THEN n::text END,
    CASE WHEN n % 50 = 0 THEN lpad(to_hex(n / 1000), 32, '0')::uuid END
FROM (
    SELECT n, {_STATUS} AS status, now() - interval '1 day' + n * interval '1 ms' AS at
    FROM generate_series(1, {ROWS}) AS n
) AS row
"""

SQLITE = f"""
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {ROWS})
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT
    printf('00000000-0000-0000-0000-%012x', n), iif(n % 3 = 0, 'known', 'other'), 1,
    'q' || (n % 7), 50, status, status = 'PENDING', '[]', '{{}}', 'sha', n, n, n, n,
    iif(status = 'SCHEDULED', n, NULL),
    iif(status IN ('PENDING', 'SCHEDULED') AND n % 5 = 0, n, NULL),
    iif(status IN ('CLAIMED', 'RUNNING'), printf('00000000-0000-0000-0000-%012x', n / 100), NULL),
    iif(status IN ('COMPLETED', 'FAILED', 'CANCELLED'), n, NULL),
    iif(status IN ('FAILED', 'CANCELLED'), 'X', NULL),
    iif(status = 'FAILED', 1, NULL),
    iif(status = 'PENDING' AND n % 11 = 0, n, NULL),
    iif(n % 50 = 0, printf('00000000-0000-0000-0000-%012x', n / 1000), NULL)
FROM (SELECT n, {_STATUS} AS status FROM number)
"""
