"""Schedules as they are stored, and what became of their ticks.

Owns the shapes. Times are integer µs since 1970 UTC, ids 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.schedules.definition import ScheduleDefinition

__all__ = ["ScheduleRecord", "TickCause", "TickRecord", "TickStatus"]


class TickStatus(StrEnum):
    """Where one tick stands."""

    FIRED = "fired"
    WAITING = "waiting"
    """It is fired when the prior run has ended."""
    DROPPED = "dropped"


class TickCause(StrEnum):
    """Why it stands there."""

    TICK = "tick"
    """Its time had come."""
    RUN_NOW = "run_now"
    BACKFILL = "backfill"
    OVERLAP = "overlap"
    """The prior run had not ended, or a newer tick took its place."""
    MISSED = "missed"
    """Nobody fired it in time."""
    UNIQUE = "unique"
    """The task's unique key was taken, by the task that is named."""
    CHANGED = "changed"
    """It waited while the schedule was changed, or resumed."""


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """A schedule, and where it stands."""

    definition: ScheduleDefinition
    declared: bool
    """By code that workers run; otherwise added at run time."""
    config_hash: str
    seen_hashes: str
    """JSON: the hashes that were ever in force, so that an old one does not come back by itself."""
    next_run_at: int | None
    last_run_at: int | None
    last_tick: int | None
    last_task_id: bytes | None
    run_count: int
    dropped_count: int
    has_waiting: bool
    paused_at: int | None
    paused_by: str | None
    stopped_at: int | None
    """Since when no live worker declares it."""
    history_from: int | None
    """What its older ticks came to is forgotten."""
    created_at: int
    created_by: str | None
    updated_at: int

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass(frozen=True, slots=True)
class TickRecord:
    """What became of one tick."""

    name: str
    tick: int
    status: TickStatus
    cause: TickCause
    task_id: bytes | None
    noted_at: int
