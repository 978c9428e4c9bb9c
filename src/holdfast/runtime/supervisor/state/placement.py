"""Placement: which child gets which task, and how many more are worth claiming.

Owns the claimed tasks that wait for a child, and the estimate behind every window: how many short
tasks may be handed to a child at once. A task that nobody has seen costs a whole window, so it gets
one to itself.

Called by `Ledger` only, with its lock held: a child's load and hand change only here meanwhile.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from time import monotonic
from typing import NamedTuple

from holdfast.core.errors import HoldfastError
from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.supervisor.state.child_handle import (
    LEAST_US,
    WINDOW_US,
    Assignment,
    ChildHandle,
    ChildState,
)
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import KINDS, Kind, KnownTask

log = logging.getLogger("holdfast.worker")

HELD_FOR = 1.0
"""Seconds after which a claimed task that found no child goes back to its queue."""
SHORT_US = WINDOW_US // 16
"""A task that costs no more is short: whichever of such tasks a child is given, it will soon be
through with them."""
_WEIGHT = 0.2
_TRUST = 8
"""A window holds at most so many times the runs that its guess is made of: the first runs of a
task may have been lucky."""


class Costs:
    """Mean run time per task name, recent runs counting most."""

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def of(self, name: str) -> int:
        """The expected cost of one run in µs, never so little that a window overflows."""
        mean = self._mean.get(name)
        if mean is None:
            return WINDOW_US
        return max(LEAST_US, WINDOW_US // (_TRUST * self._seen[name]), int(mean))

    def knows(self, name: str) -> bool:
        """Whether a task of this name has run."""
        return name in self._mean

    def are_short(self, names: Iterable[str]) -> bool:
        """Whether all these tasks, as far as they are known, are so short that it does not matter
        which of them a child is given."""
        known = [self._mean[name] for name in names if name in self._mean]
        return max(known, default=WINDOW_US) <= SHORT_US

    def learn(self, name: str, runs_us: Sequence[int]) -> None:
        """These runs, one after the other, took so long."""
        self._seen[name] += len(runs_us)
        mean = self._mean.get(name)
        if mean is None:
            mean = float(runs_us[0])
        for run_us in runs_us:
            seen = mean + _WEIGHT * (run_us - mean)
            # Raise the estimate at once, lower it gradually: one that is too low leaves tasks
            # waiting behind a long one.
            mean = run_us / 4 if seen < run_us / 4 else seen
        self._mean[name] = mean


class Mix:
    """Which tasks are being claimed, those of late counting most."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}

    def add(self, name: str, count: int) -> None:
        """So many of this name were claimed."""
        kept = 0.9**count
        shares = {other: share * kept for other, share in self._shares.items()}
        shares[name] = shares.get(name, 0.0) + 1.0 - kept
        # What has not been claimed for long tells nothing about what will be.
        self._shares = {other: share for other, share in shares.items() if share > 0.001}

    def typical(self, costs: Costs) -> float:
        """What the next tasks will cost on average, as far as can be told."""
        if not self._shares:
            return float(WINDOW_US)
        weighed = sum(share * costs.of(name) for name, share in self._shares.items())
        return weighed / sum(self._shares.values())


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
        """Whether a child has room and is half through what it was given, or further; one with
        several lanes is due when a lane is free."""
        child = self.find(LEAST_US, False)
        if child is None:
            return False
        return child.kind != "process" or child.load_us <= WINDOW_US // 2

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
    ) -> None:
        self._children = children
        self._assignments = assignments
        self._known = {(task.name, task.version): task for task in tasks}
        self._max_tasks_per_child = max_tasks_per_child
        kinds = {task.kind for task in tasks}
        self._only_kind = kinds.pop() if len(kinds) == 1 else None
        """The kind of all known tasks, where they are of one."""
        self.costs = Costs()
        self._mixes = {kind: Mix() for kind in KINDS}
        self._next_slot = 1
        self.held: deque[tuple[ClaimedTask, float]] = deque()
        """Claimed tasks that wait for a child, and since when (monotonic)."""

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
        # Claims go ahead of what children can be given by one more window, so that the next
        # batch is in hand when a child asks; but not for children that are stuck in a long task.
        quick = [m for m in ready if not m.slow and not m.alone]
        budget = sum(2 * WINDOW_US - m.load_us for m in quick)
        typical = self._mixes[kind].typical(self.costs)
        idle = sum(not m.hand for m in ready)
        wanted = max(idle, math.ceil(budget / typical))
        if held and (wanted - held) * typical < len(quick) * WINDOW_US / 2:
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
                return None
            assignment = self._assign(task, policy, child, cost)
            child.take(assignment, alone and kind == "process")
            openings[kind].given(child)
            return assignment

        return give

    def _terms(self, task: ClaimedTask) -> tuple[int, Policy, bool, Kind]:
        policy = _policy(task)
        kind = self.kind_of(task.task_name, task.version)
        return self.costs.of(task.task_name), policy, policy.is_alone, kind

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
