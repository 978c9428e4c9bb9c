"""Placement: the children of one kind that have room, the least loaded first.

Owns who gets the next task while a batch is handed out. Good for as long as the ledger's lock
is held: what it knows of a child changes only by what it gives away.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace

from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.supervisor.state.costs import LEAST_US, WINDOW_US


class Placement:
    """A heap of children by how much they have to do."""

    def __init__(self, children: Iterable[ChildHandle]) -> None:
        self._heap = [_entry(child) for child in children if child.room(LEAST_US, False)]
        heapify(self._heap)

    def find(self, cost_us: int, alone: bool) -> ChildHandle | None:
        """The child that a task of this cost should go to, if any has room for it."""
        while self._heap:
            child = self._heap[0][-1]
            if child.room(cost_us, alone):
                return child
            if child.room(LEAST_US, False):
                # Who has more to do has no more room.
                return None
            heappop(self._heap)
        return None

    def given(self, child: ChildHandle) -> None:
        """The child that was found has taken the task."""
        heapreplace(self._heap, _entry(child))

    @property
    def is_due(self) -> bool:
        """Whether a child has room and is half through what it was given, or further; one with
        several lanes is due when a lane is free."""
        child = self.find(LEAST_US, False)
        if child is None:
            return False
        return child.kind != "process" or child.load_us <= WINDOW_US // 2

    def __bool__(self) -> bool:
        """Whether any child has room for the least that a task can cost."""
        return self.find(LEAST_US, False) is not None


def _entry(child: ChildHandle) -> tuple[int, int, int, ChildHandle]:
    return child.load_us, len(child.hand), child.number, child
