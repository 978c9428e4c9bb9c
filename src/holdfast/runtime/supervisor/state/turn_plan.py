"""What one turn of the claimer is to do, and which claims were made under limits.

Owns small parts of the ledger; they change under its lock only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

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
    """The claims from gated sources."""

    tokens: set[bytes] = field(default_factory=set)
    """When a task of theirs ends, a slot comes free."""
    come_first: bool = False
    """Whether what is claimed for free children only comes first: else it would never find one free
    while there is more of the rest."""

    def freed_by(self, tasks: Iterable[ClaimedTask]) -> set[str]:
        """The queues in which the end of these makes room under limits."""
        if not self.tokens:
            return set()
        return {task.queue_name for task in tasks if task.token in self.tokens}


def take_off(counter: Counter[T], thing: T, count: int) -> bool:
    """Count a thing down; whether nothing is left of it."""
    counter[thing] -= count
    if counter[thing] > 0:
        return False
    del counter[thing]
    return True
