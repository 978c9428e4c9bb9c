"""Tasks and attempts as the API shows them: the fields of `TaskInfo`, and what may be done now.

Owns their form. Field names are those of the Python objects and of `--json`; moments are ISO 8601
in UTC, durations are seconds. Fields may be added in later versions; none changes its meaning. What
a task is given, gives back and prints is null for visitors who may not see payloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.client.info import Attempt, Progress, TaskInfo
from holdfast.core.errors import UnreadableRow
from holdfast.web.allowed import operator_verbs
from holdfast.web.payload_view import PayloadView

__all__ = [
    "AttemptDocument",
    "ErrorDocument",
    "ProgressDocument",
    "TaskDocument",
    "TaskSummary",
    "UnreadableDocument",
    "unreadable",
]


class ErrorDocument(msgspec.Struct, kw_only=True):
    """Why a task did not succeed."""

    error_code: str
    message: str
    exception: str | None
    traceback: str | None
    causes: list[str]
    data: Any
    """What its author attached; payload."""

    @classmethod
    def of(cls, error: Any, view: PayloadView) -> ErrorDocument | None:
        """An error, as this visitor sees it."""
        shown = view.error(error)
        return None if shown is None else cls(**shown)


class ProgressDocument(msgspec.Struct, kw_only=True):
    """How far a task says it is."""

    done: float
    total: float | None
    message: str | None
    fraction: float | None

    @classmethod
    def of(cls, progress: Progress | None) -> ProgressDocument | None:
        """A progress, if there is one."""
        if progress is None:
            return None
        return cls(
            done=progress.done,
            total=progress.total,
            message=progress.message,
            fraction=progress.fraction,
        )


class TaskSummary(msgspec.Struct, kw_only=True):
    """A task in a list."""

    id: UUID
    name: str
    version: int
    queue: str
    priority: int
    status: str
    tags: list[str]
    submitted_at: datetime
    enqueued_at: datetime
    run_at: datetime | None
    good_until: datetime | None
    claimed_at: datetime | None
    claimed_by_worker_id: str | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    attempt: int
    retry_count: int
    max_retries: int
    crash_count: int
    next_retry_at: datetime | None
    error_code: str | None
    failed_reason: str | None
    dead: bool
    progress: ProgressDocument | None
    stage: str | None
    unique_key: str | None
    concurrency_key: str | None
    workflow_id: UUID | None
    parent_id: UUID | None
    root_id: UUID | None
    waits_for: int
    schedule_name: str | None
    schedule_tick: datetime | None
    allowed: list[str]
    """The verbs that can be applied to it now."""

    @classmethod
    def of(cls, info: TaskInfo, **more: Any) -> Any:
        """A task, without what it was given."""
        fields = {name: getattr(info, name) for name in _COPIED}
        return cls(
            **fields,
            status=info.status.value,
            tags=list(info.tags),
            failed_reason=None
            if info.failed_reason is None
            else PayloadView.said(info.failed_reason),
            progress=ProgressDocument.of(info.progress),
            allowed=list(operator_verbs(info.status)),
            **more,
        )


_MADE = {"status", "tags", "failed_reason", "progress", "allowed"}
_COPIED = tuple(name for name in TaskSummary.__struct_fields__ if name not in _MADE)


class TaskDocument(TaskSummary, kw_only=True):
    """Everything that is stored about a task."""

    options: dict[str, Any]
    sent_at: datetime
    updated_at: datetime
    first_started_at: datetime | None
    retried_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    last_heartbeat_at: datetime | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    trace_context: str | None
    payloads_shown: bool
    """Whether args, kwargs, result, meta and error.data are shown to you; else they are null."""
    args: Any
    kwargs: Any
    result: Any
    meta: Any
    error: ErrorDocument | None

    @classmethod
    def whole(cls, info: TaskInfo, view: PayloadView) -> TaskDocument:
        """A task, as this visitor sees it."""
        beat = info.last_heartbeat
        found: TaskDocument = cls.of(
            info,
            options=info.options,
            sent_at=info.sent_at,
            updated_at=info.updated_at,
            first_started_at=info.first_started_at,
            retried_at=info.retried_at,
            completed_at=info.completed_at,
            failed_at=info.failed_at,
            last_heartbeat_at=None if beat is None else beat.at,
            worker_hostname=info.worker_hostname,
            worker_pid=info.worker_pid,
            worker_process_name=info.worker_process_name,
            trace_context=info.trace_context,
            payloads_shown=view.allowed,
            args=view.value(info.args),
            kwargs=view.value(info.kwargs),
            result=view.value(info.result),
            meta=view.value(info.meta),
            error=ErrorDocument.of(info.error, view),
        )
        return found


class AttemptDocument(msgspec.Struct, kw_only=True):
    """One execution of a task that has ended."""

    number: int
    outcome: str
    will_retry: bool
    started_at: datetime
    finished_at: datetime
    duration: float
    error: ErrorDocument | None
    error_code: str | None
    failed_reason: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    exit_code: int | None
    exit_signal: int | None
    peak_memory_kb: int | None
    cpu_time: float | None

    @classmethod
    def of(cls, made: Attempt, view: PayloadView) -> AttemptDocument:
        """An attempt, as this visitor sees it."""
        return cls(
            number=made.number,
            outcome=made.outcome.value,
            will_retry=made.will_retry,
            started_at=made.started_at,
            finished_at=made.finished_at,
            duration=made.duration.total_seconds(),
            error=ErrorDocument.of(made.error, view),
            error_code=made.error_code,
            failed_reason=None
            if made.failed_reason is None
            else PayloadView.said(made.failed_reason),
            worker_id=made.worker_id,
            worker_hostname=made.worker_hostname,
            worker_pid=made.worker_pid,
            worker_process_name=made.worker_process_name,
            exit_code=made.exit_code,
            exit_signal=made.exit_signal,
            peak_memory_kb=made.peak_memory_kb,
            cpu_time=None if made.cpu_time is None else made.cpu_time.total_seconds(),
        )


class UnreadableDocument(msgspec.Struct, kw_only=True):
    """A row that cannot be read: written by hand, by other code, or damaged."""

    table: str
    key: str
    column: str
    reason: str


def unreadable(rows: Sequence[UnreadableRow]) -> list[UnreadableDocument]:
    """The rows of an answer that could not be read."""
    return [
        UnreadableDocument(table=row.table, key=row.key, column=row.column, reason=row.reason)
        for row in rows
    ]
