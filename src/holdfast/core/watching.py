"""Where somebody may watch what a worker does with the store: its claims, and the ends it writes.

Owns the shape of such a watcher. Nothing here watches; `contrib/otel_worker.py` does. It runs in
the worker's own process, in the threads that claim and write: what it does there must be quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["ClaimFacts", "EndedFacts", "Handled", "WorkerWatcher"]


class Handled(NamedTuple):
    """One task of a claim, or one run that has ended."""

    id: bytes
    task: str
    queue: str
    trace_context: str | None
    outcome: str = ""
    """Of one that has ended: what became of the task, `completed`, `scheduled`, …"""


class ClaimFacts(NamedTuple):
    """One claim: a question to the store."""

    queue: str
    began_ns: int
    """By the clock of the machine, since 1970."""
    took_ns: int
    tasks: Sequence[Handled]
    error: str | None = None
    """Why it failed; None: it did not."""


class EndedFacts(NamedTuple):
    """One write of ends."""

    began_ns: int
    took_ns: int
    tasks: Sequence[Handled]
    error: str | None = None


class WorkerWatcher(Protocol):
    """A watcher. What it raises is logged once, and dropped."""

    def claimed(self, claim: ClaimFacts) -> None:
        """A claim was answered, or failed."""
        ...

    def ended(self, write: EndedFacts) -> None:
        """Ends were written, or could not be."""
        ...
