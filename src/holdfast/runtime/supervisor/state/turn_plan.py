"""What one turn of the claimer is to do, and what limits have to do with it.

Owns small parts of the ledger; they change under its lock only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from holdfast.core.limiting import NO_LIMITS, LimitBook
from holdfast.core.records import HEAD, ClaimedTask, Position
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle
from holdfast.runtime.supervisor.state.queue_source import QueueSource

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class TurnPlan:
    """What one turn of the claimer starts, and what it claims."""

    begins: list[Assignment]
    source: QueueSource | None = None
    """From where to claim, if at all."""
    wanted: int = 0
    claim_after: Position = HEAD
    may_begin: bool = False
    """Whether some of what is claimed may be given to a child at once."""
    child: ChildHandle | None = None
    """The child for which all of it is claimed."""
    is_urgent: bool = False
    """Whether it is given to children at once, whatever they have, and goes before that."""


@dataclass(slots=True)
class GatedClaims:
    """What the claims from gated sources go by."""

    book: LimitBook = NO_LIMITS
    """The limits that hold, as far as this worker knows."""
    come_first: bool = False
    """Whether what is claimed for free children only comes first: else it would never find one free
    while there is more of the rest."""

    def freed_by(self, tasks: Iterable[ClaimedTask]) -> set[str]:
        """The limits under which the end of these makes room, by their scopes."""
        if not self.book.rules:
            return set()
        ended = {(task.queue_name, task.task_name) for task in tasks}
        return {scope for queue, name in ended for scope in self.book.slots_of(queue, name)}


def take_off(counter: Counter[T], thing: T, count: int) -> bool:
    """Count a thing down; whether nothing is left of it."""
    counter[thing] -= count
    if counter[thing] > 0:
        return False
    del counter[thing]
    return True
