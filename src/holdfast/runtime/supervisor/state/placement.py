"""Placement: the children of one kind that have room, the least loaded first.

Owns who gets the next task while a batch is handed out. Good for as long as the desk's lock
is held: what it knows of a child changes only by what it gives away.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace

from holdfast.runtime.supervisor.state.child_handle import Member
from holdfast.runtime.supervisor.state.costs import LEAST_US, WINDOW_US


class Openings:
    """A heap of children by how much they have to do."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._heap = [_entry(member) for member in members if member.room(LEAST_US, False)]
        heapify(self._heap)

    def find(self, cost_us: int, alone: bool) -> Member | None:
        """The child that a task of this cost should go to, if any has room for it."""
        while self._heap:
            member = self._heap[0][-1]
            if member.room(cost_us, alone):
                return member
            if member.room(LEAST_US, False):
                # Who has more to do has no more room.
                return None
            heappop(self._heap)
        return None

    def given(self, member: Member) -> None:
        """The child that was found has taken the task."""
        heapreplace(self._heap, _entry(member))

    @property
    def is_due(self) -> bool:
        """Whether a child has room and is half through what it was given, or further; one with
        several lanes is due when a lane is free."""
        member = self.find(LEAST_US, False)
        if member is None:
            return False
        return member.kind != "process" or member.load_us <= WINDOW_US // 2

    def __bool__(self) -> bool:
        """Whether any child has room for the least that a task can cost."""
        return self.find(LEAST_US, False) is not None


def _entry(member: Member) -> tuple[int, int, int, Member]:
    return member.load_us, len(member.hand), member.number, member
