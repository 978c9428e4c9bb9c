"""One kind of what can be waited for: tasks, or whole workflows.

Owns what a waiter asks the store about either. A workflow that is a step of another one has the
id of that step, so ids alone do not tell which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holdfast.core.errors import Noun, TaskNotFound
from holdfast.store.op import Op

__all__ = ["Awaited"]

E = TypeVar("E")


@dataclass(frozen=True, slots=True, eq=False)
class Awaited(Generic[E]):
    """What is asked; `E` is what is told of an end."""

    noun: Noun
    endings: Callable[[Sequence[bytes], set[bytes] | None], Op[dict[bytes, E]]]
    """How those of these that have ended did so; the others that there are go into the set."""
    statuses: Callable[[Sequence[bytes]], Op[Any]]
    """Where those of these that there are stand, by their ids."""
    unattended: Callable[[bytes, bytes | None], Op[Any]]
    """Why this one stands where it does, if waiting for it may be in vain. The second: the task
    whose code waits, if it is one's."""

    def missing(self, id: bytes) -> TaskNotFound:
        """What is raised about an id that does not exist."""
        return TaskNotFound(id, noun=self.noun)
