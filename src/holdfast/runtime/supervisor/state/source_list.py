"""All sources of a worker, and which of them are worth a look.

Owns the choice between two ways to poll. A worker of a few queues asks each of them. A worker of
many would do nothing else: it asks once which of them have anything, and looks into those. A
source is *awake* from the hint or the answer that names its queue until a look finds nothing more
in it; with few queues all sources are awake all the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.runtime.supervisor.state.queue_source import QueueSource, in_turn

FEW: Final = 4
"""Queues that are asked one by one."""


class SourceList:
    """Changes under the ledger's lock only."""

    def __init__(self, sources: Sequence[QueueSource]) -> None:
        self._all = sources
        self._by_queue: defaultdict[str, list[int]] = defaultdict(list)
        for place, source in enumerate(sources):
            self._by_queue[source.queue].append(place)
        self.queues = list(self._by_queue)
        self.are_many = len(self.queues) > FEW
        self._awake = set() if self.are_many else set(range(len(sources)))

    def ring(self, queues: Iterable[str]) -> bool:
        """There may be something in these queues; False if none of them is ours."""
        is_ours = False
        for queue in queues:
            for place in self._by_queue.get(queue, ()):
                is_ours = True
                self._all[place].rung()
                self._awake.add(place)
        return is_ours

    def ring_all(self) -> None:
        """There may be something in every queue."""
        self.ring(self.queues)

    def in_turn(self) -> Sequence[QueueSource]:
        """Those worth a look, in the order to try them."""
        if len(self._awake) == len(self._all):
            return in_turn(self._all)
        return in_turn([self._all[place] for place in sorted(self._awake)])

    def looked(self, source: QueueSource, now: float) -> None:
        """A claim from this source is over."""
        if self.are_many and not source.may_find(now):
            self._awake -= {p for p in self._by_queue[source.queue] if self._all[p] is source}

    def may_find(self, now: float) -> bool:
        """Whether a claim from any of them may find something."""
        return any(self._all[place].may_find(now) for place in self._awake)
