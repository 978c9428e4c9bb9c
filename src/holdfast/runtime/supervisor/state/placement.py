"""Placement: which child gets which task, and how many more are worth claiming.

Owns the claimed tasks that wait for a child, and which of them a child has room for.

Called by `Ledger` only, with its lock held: a child's load and hand change only here meanwhile.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from holdfast.core.errors import HoldfastError
from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.supervisor.state import reserve
from holdfast.runtime.supervisor.state.child_handle import (
    LEAST_US,
    WINDOW_US,
    Assignment,
    ChildHandle,
    ChildState,
    Rank,
)
from holdfast.runtime.supervisor.state.costs import Costs, Mix
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import KINDS, Kind, KnownTask, Withdraw

log = logging.getLogger("holdfast.worker")

HELD_FOR = 1.0
"""Seconds after which a claimed task that found no child goes back to its queue."""


class Openings:
    """The children of one kind that have room, in a heap by how much they have to do."""

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
        """Whether a child has room, and will soon have nothing to do."""
        child = self.find(LEAST_US, False)
        return child is not None and reserve.is_due(child)

    def __bool__(self) -> bool:
        """Whether any child has room for the least that a task can cost."""
        return self.find(LEAST_US, False) is not None


class Window(NamedTuple):
    """What was claimed for one child."""

    given: list[Assignment]
    back: list[Assignment]
    """Those that must have a child to themselves, or may be long for all we know; or all."""
    fits: bool
    """Whether the child could take them."""


class Placement:
    """Holds the claimed tasks that wait, gives them to children, and says how many more to claim.

    Called by `Ledger` only, with its lock held.
    """

    def __init__(
        self,
        children: Mapping[int, ChildHandle],
        assignments: dict[int, Assignment],
        tasks: Sequence[KnownTask],
        max_tasks_per_child: int | None,
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._children = children
        self._assignments = assignments
        self._known = {(task.name, task.version): task for task in tasks}
        self._max_tasks_per_child = max_tasks_per_child
        self._ranks = ranks
        """The places of queues of which the first ones are served first."""
        kinds = {task.kind for task in tasks}
        self._only_kind = kinds.pop() if len(kinds) == 1 else None
        """The kind of all known tasks, where they are of one."""
        self.costs = Costs()
        self._mixes = {kind: Mix() for kind in KINDS}
        self._next_slot = 1
        self.held: deque[tuple[ClaimedTask, float]] = deque()
        """Claimed tasks that wait for a child, and since when (monotonic)."""
        self.window_us = WINDOW_US
        """How much work a process child is given ahead."""

    @property
    def has_reserve(self) -> bool:
        """Whether process children are given more ahead than the next batch takes to come."""
        return self.window_us > WINDOW_US

    def set_reserve(self, is_wanted: bool) -> None:
        """Whether a deep queue is there to be worked off."""
        if is_wanted:
            mix = self._mixes["process"]
            typical = mix.typical(self.costs, most_us=reserve.RESERVE_US)
            self.window_us = reserve.window_us(typical)
        else:
            self.window_us = WINDOW_US
        for child in self._children.values():
            if child.kind == "process":
                child.window_us = self.window_us

    def claimed(self, name: str, version: int, count: int) -> None:
        """So many tasks like this were claimed."""
        self._mixes[self.kind_of(name, version)].add(name, count)

    def hold(self, tasks: Iterable[ClaimedTask], *, first: bool = False) -> None:
        """Keep claimed tasks until a child has room; `first`: before all others."""
        now = monotonic()
        entries = [(task, now) for task in tasks]
        if first:
            self.held.extendleft(reversed(entries))
        else:
            self.held.extend(entries)

    def take_held(self, unwanted: Callable[[ClaimedTask], bool]) -> list[ClaimedTask]:
        """Hold these no longer."""
        taken = [task for task, _ in self.held if unwanted(task)]
        if taken:
            self.held = deque(entry for entry in self.held if not unwanted(entry[0]))
        return taken

    def take_held_before(self, moment: float) -> list[ClaimedTask]:
        """Hold those no longer that have been held since before this moment."""
        taken: list[ClaimedTask] = []
        # The oldest come first.
        while self.held and self.held[0][1] < moment:
            taken.append(self.held.popleft()[0])
        return taken

    def fit(self, tasks: Iterable[ClaimedTask]) -> list[Assignment]:
        """Give tasks to children that have room, in order; those that found one."""
        give = self._giver(self._openings())
        given = [give(task) for task in tasks]
        return [assignment for assignment in given if assignment is not None]

    def fit_urgent(self, tasks: Iterable[ClaimedTask]) -> list[Assignment]:
        """Give tasks to process children, whether they have room or not; those that found one.

        What goes before what the child has not begun is run next.
        """
        given: list[Assignment] = []
        for task in tasks:
            cost, policy, alone, _ = self._terms(task)
            able = [
                child
                for child in self._children.values()
                if child.kind == "process"
                and child.state is ChildState.READY
                and not (child.hand and (child.slow or child.alone))
                and child.places > 0
            ]
            if alone or task.crash_count or not able:
                continue
            child = min(able, key=lambda child: (child.number_urgent, child.load_us))
            given.append(self._give(task, policy, child, cost, alone=False))
        return given

    def rank(self, queue: str, priority: int) -> Rank:
        """What goes first has the lower one."""
        return self._ranks.get(queue, 0), priority

    def is_urgent(self, queue: str, priority: int) -> bool:
        """Whether such a task would go before one that some process child has not begun."""
        rank = self.rank(queue, priority)
        return any(
            self._goes_before(rank, child)
            for child in self._children.values()
            if child.kind == "process" and child.state is ChildState.READY
        )

    def _goes_before(self, rank: Rank, child: ChildHandle) -> bool:
        """Whether a task of this rank goes before the last that was handed to a child."""
        return len(child.hand) > 1 and rank < max(
            self.rank(run.task.queue_name, run.task.priority) for run in child.hand.values()
        )

    def _give(
        self, task: ClaimedTask, policy: Policy, child: ChildHandle, cost: int, *, alone: bool
    ) -> Assignment:
        assignment = self._assign(task, policy, child, cost)
        rank = self.rank(task.queue_name, task.priority)
        if rank < child.last_rank and child.window_us > WINDOW_US:
            assignment.is_urgent = self._goes_before(rank, child)
        child.last_rank = max(child.last_rank, rank)
        child.take(assignment, alone)
        return assignment

    def fit_held(self, paused: Collection[str]) -> list[Assignment]:
        """Give held tasks to children that have room now."""
        given: list[Assignment] = []
        passed: list[tuple[ClaimedTask, float]] = []
        openings = self._openings() if self.held else {}
        # A start costs nearly the same for few as for many: it is worth it when a child will
        # soon have nothing to do.
        has_room = any(opening.is_due for opening in openings.values())
        give = self._giver(openings)
        while self.held and has_room:
            entry = self.held.popleft()
            is_paused = paused and entry[0].queue_name in paused
            assignment = None if is_paused else give(entry[0])
            if assignment is None:
                passed.append(entry)
                has_room = any(openings.values())
            else:
                given.append(assignment)
        self.held.extendleft(reversed(passed))
        return given

    def may_begin(self, kind: Kind) -> bool:
        """Whether a task of this kind that was claimed now could be given to a child at once."""
        return bool(self._openings()[kind]) and not self._held_of(kind)

    def free_places(self, kind: Kind) -> int:
        """How many tasks of this kind could begin now, each in a child that has nothing to do."""
        ready = [
            child
            for child in self._children.values()
            if child.kind == kind and child.state is ChildState.READY
        ]
        if kind == "process":
            return sum(not child.hand for child in ready)
        return sum(child.lanes - len(child.hand) for child in ready)

    @property
    def short_room(self) -> int:
        """How many more short tasks process children could be given, if one of them will soon
        have nothing to do."""
        if not self.is_due:
            return 0
        ready = (c for c in self._children.values() if c.state is ChildState.READY)
        quick = [c for c in ready if c.kind == "process" and not c.slow and not c.alone]
        return reserve.missing(quick, self._mixes["process"].typical(self.costs))

    @property
    def ready_processes(self) -> int:
        """How many process children are given tasks."""
        children = self._children.values()
        return sum(c.kind == "process" and c.state is ChildState.READY for c in children)

    @property
    def is_due(self) -> bool:
        """Whether a process child could be given more, and will soon have nothing to do."""
        return self._openings()["process"].is_due

    def move(self, now: float) -> bool:
        """Have a child give back what one that has nothing to do could begin; whether there may be
        such a thing in a moment: one has nothing to do, and another more than it runs."""
        children = [child for child in self._children.values() if child.kind == "process"]
        waiting = [child for child in children if len(child.hand) > 1]
        if not waiting or all(child.hand for child in children if child.state is ChildState.READY):
            return False
        begun = {child: child.running(now) for child in waiting}
        found = reserve.to_move(children, begun)
        if found is not None:
            child, runs = found
            for run in runs:
                run.is_recalled = True
            child.say(Withdraw([run.slot for run in runs]))
        return True

    def due_window(self) -> tuple[ChildHandle, int] | None:
        """A process that will soon have nothing to do, and how many short tasks it could be given.

        None if there is no such process, or if tasks are held, which come first.
        """
        children = self._openings()["process"]
        child = children.find(LEAST_US, False)
        if child is None or not children.is_due or self._held_of("process"):
            return None
        typical = self._mixes["process"].typical(self.costs)
        return child, min(child.places, math.ceil((WINDOW_US - child.load_us) / typical))

    def fill_window(
        self, child: ChildHandle, tasks: Iterable[ClaimedTask], *, accepting: bool
    ) -> Window:
        """Give a child the tasks that were claimed, and so started, for it.

        If it cannot take them any more, or if we have begun to stop, all of them go back.
        """
        stuck = child.slow and child.hand
        window = Window([], [], accepting and child.state is ChildState.READY and not stuck)
        known: dict[tuple[str, int, str | None], tuple[int, Policy, bool]] = {}
        for task in tasks:
            alike = task.task_name, task.version, task.task_options
            if alike not in known:
                cost, policy, alone, _ = self._terms(task)
                apart = not window.fits or alone or not self.costs.knows(task.task_name)
                known[alike] = cost, policy, apart
            cost, policy, apart = known[alike]
            assignment = self._assign(task, policy, child, cost)
            assignment.attempt, assignment.started = task.attempt + 1, True
            child.take(assignment, False)
            (window.back if apart or task.crash_count else window.given).append(assignment)
        return window

    def put_back(self, given: Iterable[Assignment]) -> list[ClaimedTask]:
        """Undo `fit`: the start of these tasks did not happen."""
        tasks = []
        for assignment in given:
            self._assignments.pop(assignment.slot, None)
            assignment.child.drop(assignment.slot)
            tasks.append(assignment.task)
        return tasks

    def wanted(self) -> dict[Kind, int]:
        """How many more tasks to claim for each kind of child."""
        wanted: dict[Kind, int] = {kind: self._wanted_of(kind) for kind in KINDS}
        return {kind: number for kind, number in wanted.items() if number > 0}

    def _wanted_of(self, kind: Kind) -> int:
        ready = [
            m for m in self._children.values() if m.kind == kind and m.state is ChildState.READY
        ]
        held = self._held_of(kind)
        if kind != "process":
            return sum(m.lanes - len(m.hand) for m in ready) - held
        quick = [m for m in ready if not m.slow and not m.alone]
        mix = self._mixes[kind]
        if self.has_reserve:
            if not self._openings()[kind].is_due:
                return 0
            typical = mix.typical(self.costs, self.window_us, most_us=self.window_us)
            wanted = max(1, reserve.missing((m for m in quick if not m.saved), typical))
        else:
            # Claims go ahead of what children can be given by one more window, so that the next
            # batch is in hand when a child asks; but not for those that are stuck in a long task.
            budget = sum(max(0, 2 * WINDOW_US - m.load_us) for m in quick)
            typical = mix.typical(self.costs)
            wanted = max(sum(not m.hand for m in ready), math.ceil(budget / typical))
        if held and (wanted - held) * typical < len(quick) * self.window_us / 2:
            # Little is missing, and what is held keeps children busy: a claim costs nearly the
            # same for few as for many, so it waits until there are many to claim.
            return 0
        most = self._max_tasks_per_child
        if most is not None:
            # Also claim for the children that will replace these.
            wanted = min(wanted, sum(2 * most - m.served - len(m.hand) for m in ready))
        return wanted - held

    def _held_of(self, kind: Kind) -> int:
        if self._only_kind is not None:
            return len(self.held) if kind == self._only_kind else 0
        return sum(self.kind_of(t.task_name, t.version) == kind for t, _ in self.held)

    def kind_of(self, name: str, version: int) -> Kind:
        """Which kind of child runs this task."""
        known = self._known.get((name, version))
        return known.kind if known is not None else "process"

    def _openings(self) -> dict[Kind, Openings]:
        children = self._children.values()
        return {kind: Openings(child for child in children if child.kind == kind) for kind in KINDS}

    def _giver(self, openings: dict[Kind, Openings]) -> Callable[[ClaimedTask], Assignment | None]:
        """Gives tasks, one after the other, to the child with the least to do that has room.

        Good for as long as the lock is held: tasks alike are looked up once.
        """
        known: dict[tuple[str, int, str | None], tuple[int, Policy, bool, Kind]] = {}

        def give(task: ClaimedTask) -> Assignment | None:
            alike = task.task_name, task.version, task.task_options
            if alike not in known:
                known[alike] = self._terms(task)
            cost, policy, alone, kind = known[alike]
            # A task that crashed a child, or must not start twice, gets a child to itself: nobody
            # else is charged for its next crash, and it is charged for nobody's.
            alone = alone or task.crash_count > 0
            child = openings[kind].find(cost, alone)
            if child is None:
                if self.has_reserve and kind == "process" and (alone or cost >= self.window_us):
                    self._save_one()
                return None
            assignment = self._give(task, policy, child, cost, alone=alone and kind == "process")
            openings[kind].given(child)
            return assignment

        return give

    def _save_one(self) -> None:
        """Let one child run out of work, for a task that fits behind nothing."""
        children = [
            child
            for child in self._children.values()
            if child.kind == "process" and child.state is ChildState.READY
        ]
        if children and not any(child.saved for child in children):
            min(children, key=lambda child: child.load_us).saved = True

    def _terms(self, task: ClaimedTask) -> tuple[int, Policy, bool, Kind]:
        policy = _policy(task)
        kind = self.kind_of(task.task_name, task.version)
        window_us = self.window_us if kind == "process" else WINDOW_US
        return self.costs.of(task.task_name, window_us), policy, policy.is_alone, kind

    def _assign(
        self, task: ClaimedTask, policy: Policy, child: ChildHandle, cost: int
    ) -> Assignment:
        slot = self._next_slot
        self._next_slot = slot + 1
        assignment = self._assignments[slot] = Assignment(slot, task, policy, child, cost)
        return assignment


def _entry(child: ChildHandle) -> tuple[int, int, int, ChildHandle]:
    return child.load_us, len(child.hand), child.number, child


def _policy(task: ClaimedTask) -> Policy:
    try:
        return Policy.decode(task.task_options)
    except HoldfastError as error:
        # Written by other code than ours. The task can still run; the defaults are safe.
        log.warning("%s: its options cannot be read: %s", named(task), error)
        return Policy()
