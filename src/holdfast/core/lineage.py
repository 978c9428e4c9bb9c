"""Which task the current code belongs to, as far as others need to know.

Owns one context variable. A worker's child sets it around a task's code; a send made there
notes the task as its parent. It exists here because sending and running are siblings that
do not know each other.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["Lineage", "Running", "current", "running"]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The running task, seen from what it sends."""

    task_id: bytes
    root_id: bytes
    """The task with which it all began: its own id, if nobody sent it from a task."""
    trace_context: str | None


class Running(Protocol):
    """Whatever stands for the running task."""

    @property
    def lineage(self) -> Lineage: ...

    def waits(self, waiting: bool, /) -> None:
        """Its code does nothing but wait for other tasks, or no longer."""


running: Final[ContextVar[Running | None]] = ContextVar("holdfast_running", default=None)


def current() -> Lineage | None:
    """The lineage of what is sent here and now; None outside a task."""
    task = running.get()
    return None if task is None else task.lineage
