"""What hand-written SQL has to write: one task, as the tuple of its columns.

Owns the columns both counterparts insert: those that `submit` inserts, no fewer. Each engine
gives them the types its driver takes by itself.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from bench import fill
from holdfast.core.identity import as_text, new_id
from holdfast.store.settings import Engine

Row = tuple[Any, ...]

COLUMNS = (
    "id",
    "task_name",
    "version",
    "queue_name",
    "priority",
    "args",
    "kwargs",
    "task_options",
    "tags",
    "enqueue_sha",
    "sent_at",
    "created_at",
    "updated_at",
    "run_at",
    "good_until",
    "good_for_us",
    "expire_at",
    "max_retries",
    "unique_key",
    "unique_slot",
    "workflow_id",
    "deps_needed",
    "deps_open",
    "parent_id",
    "root_id",
    "schedule_name",
    "schedule_tick",
    "trace_context",
    "status",
    "ready",
    "due_at",
    "enqueued_at",
)


class Raw(Protocol):
    """One connection of a plain driver, and the statements one would write by hand for it."""

    def insert(self, row: Row) -> None:
        """One row, one commit."""
        ...

    def insert_many(self, rows: list[Row]) -> None:
        """Many rows in one transaction, by the fastest way the driver has."""
        ...

    def claim(self, wanted: int) -> list[Any]:
        """Claim tasks, with a lease row; their keys."""
        ...

    def start(self, keys: list[Any]) -> int: ...

    def complete(self, keys: list[Any]) -> int:
        """Complete tasks, each with its own result and its attempt row."""
        ...

    def forget_leases(self) -> None:
        """Delete the lease rows that the claims left."""
        ...

    def close(self) -> None: ...


def row(engine: Engine) -> Row:
    """A task that can be claimed at once."""
    raw_id = new_id()
    id: UUID | str
    now: datetime | int
    ready: bool | int
    if engine == "postgresql":
        id, now, ready = UUID(bytes=raw_id), datetime.now(UTC), True
    else:
        id, now, ready = as_text(raw_id), time.time_ns() // 1_000, 1
    return (
        id, fill.NAME, 1, fill.QUEUE, 50, fill.ARGS, fill.KWARGS, None, None, fill.SHA,
        now, now, now, None, None, None, None, 0, None, None, None, 0, 0, None, None, None,
        None, None, "PENDING", ready, None, now,
    )  # fmt: skip


def drain(raw: Raw, batches: int, size: int) -> int:
    """claim, start and complete, as many batches; how many tasks that were."""
    done = 0
    for _ in range(batches):
        keys = raw.claim(size)
        raw.start(keys)
        done += raw.complete(keys)
    return done
