"""Which task the current code belongs to, as far as others need to know.

Owns one context variable. A worker's child sets it around a task's code; a send made there
notes the task as its parent. It exists here because sending and running are siblings that
do not know each other.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

__all__ = ["Lineage", "running"]


class Lineage(Protocol):
    """The running task, seen from what it sends."""

    @property
    def task_id(self) -> bytes: ...

    @property
    def root_id(self) -> bytes:
        """The task with which it all began: its own id, if nobody sent it from a task."""
        ...

    @property
    def trace_context(self) -> str | None: ...


running: Final[ContextVar[Lineage | None]] = ContextVar("holdfast_running", default=None)
