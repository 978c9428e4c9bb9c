"""What a user sees of a workflow and of its steps: frozen, in the user's own types.

Owns the translation of records. Asks nobody anything: a `WorkflowInfo` is how the whole stood when
it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.core.errors import PayloadError
from holdfast.core.moment import from_us
from holdfast.core.payload.codec import to_show
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.workflows.records import StepRecord, WorkflowRecord

__all__ = ["StepInfo", "WorkflowInfo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInfo:
    """Everything that is stored about a workflow, as it was when it was read."""

    id: UUID
    name: str
    version: int
    status: WorkflowStatus
    on_failure: str
    stopping: str | None
    """Why it winds down: "fail_fast", "deadline", "cancel"."""
    stopped_by: str | None
    paused_at: datetime | None
    paused_by: str | None
    deadline: timedelta | None
    deadline_at: datetime | None
    run_at: datetime | None
    tags: tuple[str, ...]
    arguments: Any
    steps: int
    """How many it was started with."""
    created_at: datetime
    finished_at: datetime | None
    parent_id: UUID | None
    """The workflow that it is a part of."""

    @classmethod
    def of(cls, record: WorkflowRecord) -> WorkflowInfo:
        """What is told of a record."""
        return cls(
            id=UUID(bytes=record.id),
            name=record.name,
            version=record.version,
            status=record.status,
            on_failure=record.on_failure,
            stopping=record.stopping,
            stopped_by=record.stopped_by,
            paused_at=_moment(record.paused_at),
            paused_by=record.paused_by,
            deadline=_span(record.deadline_us),
            deadline_at=_moment(record.deadline_at),
            run_at=_moment(record.run_at),
            tags=_tags(record.tags),
            arguments=_shown(record.arguments),
            steps=record.steps,
            created_at=from_us(record.created_at),
            finished_at=_moment(record.finished_at),
            parent_id=None if record.parent_id is None else UUID(bytes=record.parent_id),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """A step of a workflow: where it stands, and what it waits for."""

    id: UUID
    name: str
    task: str
    """The name of its task."""
    status: TaskStatus
    attempt: int
    required: bool
    """Whether the whole fails without it."""
    handler: bool
    """Whether it waits for a failure or an end, or hangs below such a step."""
    hidden: str | None
    """What it is for that nobody has written as a step: "map", "workflow"."""
    handed_over: bool
    """Its code has run, and it ends with the steps that it added."""
    added_by: UUID | None
    """The step that added it."""
    error_code: str | None
    failed_reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    tail: str | None = None
    """What releases it: "error" (the first failure), "ended" (all before it have ended); "below":
    other such steps. None: only the steps above it."""
    waits_for: Mapping[UUID, str] = field(default_factory=dict)
    """The steps above it, each with what it waits for: "success", "failure", "always"."""

    @classmethod
    def of(cls, record: StepRecord, workflow_id: bytes, waits_for: Mapping[UUID, str]) -> StepInfo:
        """What is told of a record."""
        added = record.scope_id != workflow_id
        return cls(
            id=UUID(bytes=record.id),
            name=record.name,
            task=record.task_name,
            status=record.status,
            attempt=record.attempt,
            required=record.required,
            handler=record.handler,
            hidden=record.hidden,
            handed_over=record.handed_over,
            added_by=UUID(bytes=record.scope_id) if added else None,
            error_code=record.error_code,
            failed_reason=record.failed_reason,
            created_at=from_us(record.created_at),
            started_at=_moment(record.started_at),
            finished_at=_moment(record.finished_at),
            tail=record.tail,
            waits_for=waits_for,
        )


def _tags(text: str | None) -> tuple[str, ...]:
    found = _shown(text)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _shown(text: str | None) -> Any:
    """What a sender stored, as plain data; what somebody changed by hand may be no JSON."""
    try:
        return None if text is None else to_show(text)
    except PayloadError:
        return "unreadable"


def _moment(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _span(us: int | None) -> timedelta | None:
    return None if us is None else timedelta(microseconds=us)
