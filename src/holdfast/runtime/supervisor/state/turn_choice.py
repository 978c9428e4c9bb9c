"""The choice of a turn: from where the claimer claims next, how many, and for whom.

Owns no state of its own but when it last looked for urgent tasks; what it goes by belongs to the
ledger. Called by `Ledger` only, with its lock held.

While children have a reserve, nothing is claimed before one of them is due. A task that came
meanwhile and goes before what has not begun (a more urgent one, or one of a queue that comes
first) is not kept waiting for that: it is claimed at once, and its child runs it next.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import Final

from holdfast.core.records import HEAD
from holdfast.runtime.options import MAX_BATCH
from holdfast.runtime.supervisor.state.cursor import PATIENCE
from holdfast.runtime.supervisor.state.placement import Placement
from holdfast.runtime.supervisor.state.queue_source import FEW, QueueSource, SourceList
from holdfast.runtime.supervisor.state.turn_plan import GatedClaims, TurnPlan

_LOOK_EVERY: Final = 0.02
"""Seconds between two looks for urgent tasks, at the least."""
_IN_VAIN: Final = 1.0
"""The same after one that saw something, of which nothing could be claimed."""


class TurnChoice:
    """Chooses what to claim."""

    def __init__(
        self,
        sources: SourceList,
        placement: Placement,
        gated: GatedClaims,
        by_queue: Mapping[str, int],
        by_name: Mapping[str, int],
    ) -> None:
        self._sources = sources
        self._placement = placement
        self._gated = gated
        self._by_queue = by_queue
        self._by_name = by_name
        self._look_at = 0.0
        self._has_news = False
        """Whether something has come in since the last look for urgent tasks."""

    def heard(self) -> bool:
        """There may be something new; whether the claimer does not know that yet."""
        knew, self._has_news = self._has_news, True
        return not knew or not self._placement.has_reserve

    def until_look(self, now: float) -> float:
        """Seconds until urgent tasks may be looked for, if there is a reason to."""
        if self._has_news and self._placement.has_reserve:
            return max(0.0, self._look_at - now)
        return inf

    def begin_look(self, now: float) -> list[QueueSource]:
        """Where to look for urgent tasks now; `looked` follows for each."""
        if self.until_look(now) > 0:
            return []
        self._has_news = False
        self._look_at = now + _LOOK_EVERY
        return [source for source in self._sources.awake() if _may_be_urgent(source)][:FEW]

    def found_urgent(self) -> None:
        """A claim of urgent tasks found some."""
        self._look_at = monotonic() + _LOOK_EVERY

    def looked(self, source: QueueSource, priority: int | None, took: float) -> None:
        """The first task of its queue has this priority, and to see that took so many seconds."""
        self._look_at = max(self._look_at, monotonic() + PATIENCE * took)
        source.is_urgent = priority is not None and self._placement.is_urgent(
            source.queue, priority
        )

    def set_reserve(self, now: float) -> None:
        """Give children a reserve if a queue is deep, and nothing that needs a free child waits."""
        self._placement.set_reserve(
            any(
                source.is_deep and source.may_find(now) and self._is_for_reserve(source)
                for source in self._sources.awake()
            )
            and not self._sources.has_gated(now)
        )

    def choose(self, plan: TurnPlan, now: float) -> None:
        """From where to claim how many, and for whom."""
        if self._choose_urgent(plan, now):
            return
        room = self._placement.wanted()
        if not room:
            return
        in_turn = self._sources.in_turn()
        if self._gated.come_first:
            in_turn = sorted(in_turn, key=lambda source: not source.is_gated)
        for source in in_turn:
            if not source.may_find(now):
                continue
            if source.is_gated:
                if self._choose_gated(plan, source):
                    return
                if self._gated.come_first and self._left(source) > 0:
                    # Nor from others of this kind, until a child is free.
                    room[source.kind] = 0
                continue
            wanted = min(room.get(source.kind, 0), self._left(source), MAX_BATCH)
            if wanted <= 0:
                continue
            if source.is_deep and self._is_for_windows(source, now):
                window = self._placement.due_window()
                if window is None or plan.begins:
                    # Nor from those behind it, for children of this kind.
                    room[source.kind] = 0
                    continue
                plan.child = window[0]
                wanted = min(wanted, window[1])
            plan.source = source
            plan.wanted = wanted
            plan.claim_after = source.cursor.start(now)
            plan.may_begin = self._placement.may_begin(source.kind)
            self._gated.come_first = self._sources.has_gated(now)
            return

    def _choose_urgent(self, plan: TurnPlan, now: float) -> bool:
        """Claim what goes before all that children have not begun, if there is such a task."""
        if not self._placement.has_reserve:
            return False
        for source in self._sources.awake():
            if not source.is_urgent:
                continue
            source.is_urgent = False
            wanted = min(self._placement.ready_processes, self._left(source))
            if wanted > 0:
                plan.source, plan.wanted = source, wanted
                plan.claim_after = source.cursor.start(now, at_head=True)
                plan.may_begin = plan.is_urgent = True
                # Unless it was worth it: it may be a task that this worker does not know.
                self._look_at = now + _IN_VAIN
                return True
        return False

    def _choose_gated(self, plan: TurnPlan, source: QueueSource) -> bool:
        """Claim for the children that have nothing to do; False if there are none.

        Of short tasks a window is claimed, or each handful would cost two transactions. What a
        child has not begun then keeps its place under the limit for some milliseconds. Of what
        limits leave to this worker, each child has its share.
        """
        if plan.begins or not self._placement.may_begin(source.kind):
            return False
        now = monotonic()
        window = None
        if source.is_deep and self._is_for_windows(source, now):
            window = self._placement.due_window()
        if window is not None:
            share = source.share(self._placement.ready_processes)
            room = min(window[1], share - len(window[0].hand))
        else:
            room = self._placement.free_places(source.kind)
            if source.kind == "process" and self._placement.costs.are_short(source.tasks):
                room = max(room, self._placement.short_room)
        wanted = min(room, self._left(source), MAX_BATCH)
        if wanted <= 0:
            return False
        plan.source, plan.wanted, plan.may_begin = source, wanted, True
        plan.child = None if window is None else window[0]
        plan.claim_after = HEAD if source.is_keyed else source.cursor.start(now)
        source.begin_claim(now, sum(self._by_name.get(name, 0) for name in set(source.tasks)))
        self._gated.come_first = False
        return True

    def _is_for_windows(self, source: QueueSource, now: float) -> bool:
        """Whether to claim from it for one child after the other, which saves a start.

        Without that a task that does nothing costs a worker 15 % more CPU, and on PostgreSQL it
        does a third fewer a second. Of long tasks it matters who gets which, so they are claimed
        first and then given out.
        """
        return (
            source.kind == "process"
            and source.may_share(now)
            and self._placement.costs.are_short(source.tasks)
        )

    def _is_for_reserve(self, source: QueueSource) -> bool:
        """Whether children are given more of it ahead than a window: not of short tasks, of which
        a window lasts; and not by weight, which is drawn anew for each claim: reserves would make
        the turns of the queues a hundred tasks long."""
        return (
            source.kind == "process"
            and not source.is_gated
            and source.only is None
            and source.choice.cap is None
            and source.choice.weight is None
            and not self._placement.costs.are_short(source.tasks)
        )

    def _left(self, source: QueueSource) -> int:
        """How many more tasks a source may give, by the limits of its queue and its task."""
        left = MAX_BATCH
        if source.choice.cap is not None:
            left = source.choice.cap - self._by_queue.get(source.queue, 0)
        if source.only is not None and source.only.max_concurrent is not None:
            left = min(left, source.only.max_concurrent - self._by_name.get(source.only.name, 0))
        return left


def _may_be_urgent(source: QueueSource) -> bool:
    return source.kind == "process" and not source.is_gated and source.cursor.has_news
