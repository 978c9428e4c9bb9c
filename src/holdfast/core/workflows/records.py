"""A workflow and its steps as they are read.

Owns the shapes. Times are integer microseconds since 1970 UTC and ids are 16 bytes, as in
`core.records`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core.status import TaskStatus, WorkflowStatus

__all__ = [
    "StepRecord",
    "StepValue",
    "WorkflowFilter",
    "WorkflowRecord",
]


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """Every column of a workflow, as stored, and what its scope says."""

    id: bytes
    name: str
    version: int
    status: WorkflowStatus
    on_failure: str
    stopping: str | None
    """Why it is winding down: "fail_fast", "deadline", "cancel"."""
    stopped_by: str | None
    paused_at: int | None
    paused_by: str | None
    """Who paused it; None with `paused_at`: its failure policy."""
    deadline_us: int | None
    deadline_at: int | None
    run_at: int | None
    unique_key: str | None
    tags: str | None
    arguments: str | None
    created_at: int
    updated_at: int
    finished_at: int | None
    steps: int
    """How many it was started with."""
    parent_id: bytes | None
    """The workflow that it is a part of."""
    step_id: bytes | None
    """The step there that handed over to it, which has the same id as this workflow."""
    root_id: bytes | None
    trace_context: str | None
    returns: str | None
    error_id: bytes | None
    """The step whose ending was the first bad one."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step in a list: where it stands, and what it waits for."""

    id: bytes
    workflow_id: bytes
    scope_id: bytes
    number: int
    name: str
    task_name: str
    status: TaskStatus
    attempt: int
    required: bool
    handler: bool
    cleanup: bool
    tail: str | None
    hidden: str | None
    handed_over: bool
    error_code: str | None
    failed_reason: str | None
    deps_needed: int
    deps_open: int
    created_at: int
    started_at: int | None
    finished_at: int | None


class StepValue(NamedTuple):
    """How a step stands, for whoever needs its value."""

    id: bytes
    number: int
    status: TaskStatus
    result: str | None
    handed_over: bool
    satisfied: bool | None = None
    """Of the edge to the step that asks: whether it was counted when that was released."""
    name: str | None = None

    @property
    def shown(self) -> str:
        """What it is called, for messages."""
        return f"step {self.number if self.name is None else repr(self.name)}"


@dataclass(frozen=True, slots=True)
class WorkflowFilter:
    """Which workflows a list shows; None means any."""

    status: frozenset[WorkflowStatus] = field(default_factory=frozenset)
    name: str | None = None
    tag: str | None = None
    created_from: int | None = None
    created_until: int | None = None
    parts: bool = True
    """Also those that are parts of others."""
