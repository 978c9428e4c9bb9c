"""The ledger: what this worker has in hand, and the one lock around it.

Owns the supervisor's memory: children and what each holds, claimed tasks that wait for a
child, ended runs that wait to be written, and how many tasks each lease token still covers.
Every thread of the supervisor meets the others here and nowhere else.

Two conditions. `work` is for the claimer: notified by everything that can make a claim or a
start possible (room, a hint, the poll, a stop). `outcomes` is for the finisher. Whatever changes
state so that a wait could end must notify: a missed one is a second of silence.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from time import monotonic
from typing import NamedTuple, TypeVar

from holdfast.core.errors import HoldfastError
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import NotBegun
from holdfast.core.records import ClaimedTask
from holdfast.runtime.options import MAX_BATCH, WorkerOptions
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState, ProtocolError
from holdfast.runtime.supervisor.state.costs import LEAST_US, SHORT_US, WINDOW_US, Costs, Mix
from holdfast.runtime.supervisor.state.held_rows import HeldRows
from holdfast.runtime.supervisor.state.placement import Placement
from holdfast.runtime.supervisor.state.set_aside import SetAside
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import KINDS, Kind, KnownTask
from holdfast.store.op import Key

log = logging.getLogger("holdfast.worker")

T = TypeVar("T", bound=Hashable)

_ALIKE = attrgetter("token", "queue_name", "task_name", "version")
"""Most tasks of a batch are alike in this, so they are counted together."""

HELD_FOR = 1.0
"""Seconds after which a claimed task that found no child goes back to its queue."""


class Window(NamedTuple):
    """What was claimed for one child."""

    given: list[Assignment]
    back: list[Assignment]
    """Those that must have a child to themselves, or may be long for all we know; or all."""
    fits: bool
    """Whether the child could take them."""


class Ledger:
    """Shared state; take `lock` before touching anything here."""

    def __init__(self, options: WorkerOptions, tasks: Sequence[KnownTask]) -> None:
        self.options = options
        self.lock = threading.Lock()
        self.work = threading.Condition(self.lock)
        self.outcomes = threading.Condition(self.lock)
        self.children: dict[int, ChildHandle] = {}
        self.assignments: dict[int, Assignment] = {}
        self.held: deque[tuple[ClaimedTask, float]] = deque()
        self.finished: deque[Finished] = deque()
        self.aside: SetAside[Finished] = SetAside()
        """Ended runs whose rows somebody holds."""
        self.held_rows = HeldRows()
        """What to say about rows that others hold; has a lock of its own."""
        self.held_back = 0
        """Claimed tasks that are to go back, and whose rows somebody holds."""
        self.writing: Sequence[Finished] = ()
        """Ended runs that the finisher is writing at this moment."""
        self.tokens: Counter[bytes] = Counter()
        self.spent: set[bytes] = set()
        self._unwritten: set[bytes] = set()
        """Tokens whose tasks have all ended durably: their lease rows can go."""
        self.costs = Costs()
        self.ahead_us: int | None = None
        """How far the store's clock is ahead of our monotonic one, once it is known."""
        self.accepting = True
        self.claiming = False
        """Whether the claimer is in the middle of a turn."""
        self.came_back: set[str] = set()
        """Queues into which tasks of ours went back: there is something in them."""
        self.paused: set[str] = set()
        """Queues that were paused a moment ago: what is held of them goes back at once."""
        self._known = {(task.name, task.version): task for task in tasks}
        kinds = {task.kind for task in tasks}
        self._only_kind = kinds.pop() if len(kinds) == 1 else None
        """The kind of all known tasks, where they are of one."""
        self._by_name: Counter[str] = Counter()
        self._by_queue: Counter[str] = Counter()
        self._mixes = {kind: Mix() for kind in KINDS}
        self._next_slot = 1

    # --- claimed tasks ---------------------------------------------------------------------

    def claimed(self, tasks: Sequence[ClaimedTask]) -> None:
        """Tasks were claimed: they count as ours from now on.

        One that is held here already has been taken from us since (its lease was lost, or it was
        cancelled and resubmitted), and we have not heard of it yet: the older claim is over.
        """
        again = {task.key for task in tasks} if self.held else ()
        outlived = [task for task, _ in self.held if task.key in again]
        if outlived:
            self.held = deque(entry for entry in self.held if entry[0].key not in again)
            self.forget(outlived)
        for (token, queue, name, version), count in Counter(map(_ALIKE, tasks)).items():
            self.tokens[token] += count
            self._by_queue[queue] += count
            self._by_name[name] += count
            self._mixes[self._kind_of(name, version)].add(name, count)

    def hold(self, tasks: Iterable[ClaimedTask]) -> None:
        """Keep claimed tasks until a child has room."""
        now = monotonic()
        self.held.extend([(task, now) for task in tasks])

    def hold_again(self, tasks: Sequence[ClaimedTask]) -> None:
        """These were held before, and could not be started: they come first."""
        now = monotonic()
        self.held.extendleft([(task, now) for task in reversed(tasks)])

    def fit(self, tasks: Iterable[ClaimedTask]) -> tuple[list[Assignment], list[ClaimedTask]]:
        """Give tasks to children that have room, in order; the given, and the rest."""
        given: list[Assignment] = []
        rest: list[ClaimedTask] = []
        give = self._giver(self._placements())
        for task in tasks:
            assignment = give(task)
            if assignment is None:
                rest.append(task)
            else:
                given.append(assignment)
        return given, rest

    def may_begin(self, kind: Kind) -> bool:
        """Whether a task of this kind that was claimed now could be given to a child at once."""
        return bool(self._placements()[kind]) and not self._held_of(kind)

    def fit_held(self) -> list[Assignment]:
        """Give held tasks to children that have room now."""
        given: list[Assignment] = []
        passed: list[tuple[ClaimedTask, float]] = []
        placements = self._placements() if self.held else {}
        # A start costs nearly the same for few as for many: it is worth it when a child will
        # soon have nothing to do.
        has_room = any(opening.is_due for opening in placements.values())
        give = self._giver(placements)
        while self.held and has_room:
            entry = self.held.popleft()
            paused = self.paused and entry[0].queue_name in self.paused
            assignment = None if paused else give(entry[0])
            if assignment is None:
                passed.append(entry)
                has_room = any(placements.values())
            else:
                given.append(assignment)
        self.held.extendleft(reversed(passed))
        return given

    def _placements(self) -> dict[Kind, Placement]:
        children = self.children.values()
        return {
            kind: Placement(child for child in children if child.kind == kind) for kind in KINDS
        }

    def take_stale(self) -> list[ClaimedTask]:
        """Held tasks that no child had room for in time, or whose queue was paused, or all when
        we stop; no longer ours."""
        stale: list[ClaimedTask] = []
        if self.paused:
            stale += [task for task, _ in self.held if task.queue_name in self.paused]
            self.held = deque(
                entry for entry in self.held if entry[0].queue_name not in self.paused
            )
        # The oldest come first.
        latest = monotonic() - HELD_FOR if self.accepting else math.inf
        while self.held and self.held[0][1] < latest:
            stale.append(self.held.popleft()[0])
        return stale

    def _giver(
        self, placements: dict[Kind, Placement]
    ) -> Callable[[ClaimedTask], Assignment | None]:
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
            children = placements.get(kind)
            child = None if children is None else children.find(cost, alone)
            if children is None or child is None:
                return None
            assignment = self._assign(task, policy, child, cost)
            child.take(assignment, alone and kind == "process")
            children.given(child)
            return assignment

        return give

    def _assign(
        self, task: ClaimedTask, policy: Policy, child: ChildHandle, cost: int
    ) -> Assignment:
        slot = self._next_slot
        self._next_slot = slot + 1
        assignment = self.assignments[slot] = Assignment(slot, task, policy, child, cost)
        return assignment

    # --- windows ---------------------------------------------------------------------------

    def are_short(self, names: Iterable[str]) -> bool:
        """Whether all these tasks, as far as they are known, are so short that it does not matter
        which of them a child is given."""
        return self.costs.longest(names) <= SHORT_US

    def due_window(self) -> tuple[ChildHandle, int] | None:
        """A process that will soon have nothing to do, and how many short tasks it could be given.

        None if there is no such process, or if tasks are held, which come first.
        """
        children = self._placements()["process"]
        child = children.find(LEAST_US, False)
        if child is None or not children.is_due or self._held_of("process"):
            return None
        typical = self._mixes["process"].typical(self.costs)
        return child, min(child.places, math.ceil((WINDOW_US - child.load_us) / typical))

    def fill_window(self, child: ChildHandle, tasks: Iterable[ClaimedTask]) -> Window:
        """Give a child the tasks that were claimed, and so started, for it.

        If it cannot take them any more, or if we have begun to stop, all of them go back.
        """
        stuck = child.slow and child.hand
        window = Window([], [], self.accepting and child.state is ChildState.READY and not stuck)
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

    def _terms(self, task: ClaimedTask) -> tuple[int, Policy, bool, Kind]:
        policy = _policy(task)
        return self.costs.of(task.task_name), policy, policy.is_alone, self.kind(task)

    def put_back(self, given: Iterable[Assignment]) -> list[ClaimedTask]:
        """Undo `fit`: the start of these tasks did not happen."""
        tasks = []
        for assignment in given:
            self.assignments.pop(assignment.slot, None)
            assignment.child.drop(assignment.slot)
            tasks.append(assignment.task)
        return tasks

    def forget(self, tasks: Sequence[ClaimedTask]) -> None:
        """These tasks are not ours any more: given back, or lost, or durably ended."""
        for (token, queue, name, _), count in Counter(map(_ALIKE, tasks)).items():
            _take_off(self._by_name, name, count)
            _take_off(self._by_queue, queue, count)
            if _take_off(self.tokens, token, count):
                if token in self._unwritten:
                    self._unwritten.remove(token)
                else:
                    self.spent.add(token)

    def give_up(self, tasks: Sequence[ClaimedTask]) -> None:
        """What became of these could not be written: their lease has to run out, not to be removed.

        Without one nobody would ever come back to them.
        """
        self._unwritten.update(task.token for task in tasks)
        self.forget(tasks)

    # --- appetite --------------------------------------------------------------------------

    def appetite(self) -> dict[Kind, int]:
        """How many more tasks to claim for each kind of child."""
        found: dict[Kind, int] = {}
        for kind in KINDS:
            wanted = self._appetite_of(kind)
            if wanted > 0:
                found[kind] = wanted
        return found

    def _appetite_of(self, kind: Kind) -> int:
        ready = [
            m for m in self.children.values() if m.kind == kind and m.state is ChildState.READY
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
        most = self.options.max_tasks_per_child
        if most is not None:
            # Those in their place are worth claiming for, too; theirs is the next generation.
            wanted = min(wanted, sum(2 * most - m.served - len(m.hand) for m in ready))
        return wanted - held

    def _held_of(self, kind: Kind) -> int:
        if self._only_kind is not None:
            return len(self.held) if kind == self._only_kind else 0
        return sum(self.kind(task) == kind for task, _ in self.held)

    def left(self, queue: str, cap: int | None, only: KnownTask | None) -> int:
        """How many more tasks a source may give, by the limits of its queue and its task."""
        left = MAX_BATCH
        if cap is not None:
            left = min(left, cap - self._by_queue[queue])
        if only is not None and only.max_concurrent is not None:
            left = min(left, only.max_concurrent - self._by_name[only.name])
        return left

    def learn_time(self, now_us: int) -> None:
        """The store's clock says so, at this moment. (Any thread, without the lock.)"""
        self.ahead_us = now_us - round(monotonic() * 1_000_000)

    # --- what children say ------------------------------------------------------------------

    def own(self, child: ChildHandle, slot: int) -> Assignment | None:
        """The task that a child means by this slot; None if it has ended.

        Nobody but the child that it was given to has any business with a task.
        """
        assignment = self.assignments.get(slot)
        if assignment is None:
            return None
        if assignment.child is not child or not assignment.given_at:
            raise ProtocolError(f"spoke about slot {slot}, which it was never given")
        return assignment

    # --- ended runs ------------------------------------------------------------------------

    def ended(self, *finished: Finished) -> None:
        """Runs have ended: their children are free of them, and the finisher has them.

        `announce` it, once for all that ended together.
        """
        runs: defaultdict[str, list[int]] = defaultdict(list)
        for done in finished:
            assignment = done.assignment
            slot, child = assignment.slot, assignment.child
            if self.assignments.pop(slot, None) is None:
                continue
            child.drop(slot)
            if type(done.outcome) is not NotBegun:
                child.served += 1
                child.slow = False
            if done.run_us:
                runs[assignment.task.task_name].append(done.run_us)
            self.finished.append(done)
        for name, took in runs.items():
            self.costs.learn(name, took)

    def announce(self) -> None:
        """Runs have `ended`: there is something to write, and there is room."""
        self.outcomes.notify()
        self.stir()

    def stir(self) -> None:
        """There is room, or work, or a stop: whoever claims or starts shall look."""
        self.work.notify_all()

    def lost(self, tokens: Iterable[bytes]) -> list[Assignment]:
        """Leases are gone: what they covered is nobody's business of ours any more."""
        gone = set(tokens)
        dropped = [task for task, _ in self.held if task.token in gone]
        self.held = deque(entry for entry in self.held if entry[0].token not in gone)
        self.forget(dropped)
        return [a for a in self.assignments.values() if a.task.token in gone]

    def known_keys(self) -> set[Key]:
        """The keys of every task that is ours and that we know of."""
        keys = {task.key for task, _ in self.held}
        keys |= {assignment.task.key for assignment in self.assignments.values()}
        ended = (*self.finished, *self.writing, *self.aside)
        return keys | {done.assignment.task.key for done in ended}

    # --- questions -------------------------------------------------------------------------

    def kind(self, task: ClaimedTask) -> Kind:
        return self._kind_of(task.task_name, task.version)

    def _kind_of(self, name: str, version: int) -> Kind:
        known = self._known.get((name, version))
        return known.kind if known is not None else "process"

    def hooks_of(self, task: ClaimedTask) -> Sequence[str]:
        """The hooks that this task has."""
        known = self._known.get((task.task_name, task.version))
        return known.hooks if known is not None else ()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in hand, nothing waits to be written, and nothing is being claimed."""
        return not (self.claiming or self.held or self.assignments or self.finished or self.tokens)

    @property
    def is_held_up(self) -> bool:
        """Whether all that is left in hand has rows that somebody's transaction holds."""
        busy = self.claiming or self.held or self.assignments or self.finished or self.writing
        return not busy and self.tokens.total() == len(self.aside) + self.held_back > 0

    def counts(self) -> tuple[int, int]:
        """How many tasks run (or may), and how many are claimed only."""
        running = sum(a.started for a in self.assignments.values())
        return running, len(self.held) + len(self.assignments) - running


def _take_off(counter: Counter[T], thing: T, count: int) -> bool:
    """Count a thing down; whether nothing is left of it."""
    counter[thing] -= count
    if counter[thing] > 0:
        return False
    del counter[thing]
    return True


def _policy(task: ClaimedTask) -> Policy:
    try:
        return Policy.decode(task.task_options)
    except HoldfastError as error:
        # Written by other code than ours. The task can still run; the defaults are safe.
        log.warning("%s: its options cannot be read: %s", named(task), error)
        return Policy()
