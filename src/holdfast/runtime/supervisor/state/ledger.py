"""The ledger: what this worker has in hand, and the one lock around it.

Owns the supervisor's memory: which tasks are ours and under which leases, which of them children
have, and what the next claim and start will be. Methods take the lock, also those of its parts
(`roster`, `sources`, `outcomes`); no other code touches it, or what it guards.

Other state that threads share has locks of its own: `Outage`, `HeldRows`, `RefusedRows`, `TaskLog`,
`StackQueries`, `EvidenceRecorder`, `RelayServer`, and `ChildPool`, whose lock is taken before this
one; `Listening` is shared without one. Some fields of an `Assignment` have one writer and no lock
(see there).

The claimer waits in `plan`, the finisher in `outcomes.take`. Whatever changes state so that a wait
could end must notify: a missed notification delays work by up to a second.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from time import monotonic
from typing import TypeAlias

from holdfast.core.outcome import NotBegun, Why
from holdfast.core.records import Answer, ClaimedTask, Landing
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.state import reserve
from holdfast.runtime.supervisor.state.blocked_rows import HeldRows
from holdfast.runtime.supervisor.state.child_handle import (
    Assignment,
    ChildHandle,
    ChildState,
    ProtocolError,
)
from holdfast.runtime.supervisor.state.outcome_queue import Finished, OutcomeQueue
from holdfast.runtime.supervisor.state.placement import HELD_FOR, Placement
from holdfast.runtime.supervisor.state.queue_source import QueueSource, SourceList
from holdfast.runtime.supervisor.state.roster import Roster
from holdfast.runtime.supervisor.state.turn_choice import TurnChoice
from holdfast.runtime.supervisor.state.turn_plan import GatedClaims, TurnPlan, take_off
from holdfast.runtime.wire.messages import KnownTask
from holdfast.store.op import Key
from holdfast.store.verbs.claims import Turn

Orders: TypeAlias = "list[tuple[ChildHandle, list[Assignment]]]"
"""Children, and what each is to be told to run: tasks whose start is durable."""

_ALIKE = attrgetter("token", "queue_name", "task_name", "version")
"""Most tasks of a batch are alike in this, so they are counted together."""
_LOOK_AFTER_HELD = 0.2
"""Seconds between two looks at tasks that wait for a child, at the most."""
_LOOK_AT_WAITING = 0.005
"""Seconds between two looks at tasks that wait in a child while another has nothing to do."""


class Ledger:
    """Any thread may call any method; none of them waits for the store."""

    def __init__(
        self,
        options: WorkerOptions,
        tasks: Sequence[KnownTask],
        sources: Sequence[QueueSource] = (),
    ) -> None:
        self.options = options
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)
        """Notified by all that can make a claim or a start possible: room, a hint, a stop."""
        self._assignments: dict[int, Assignment] = {}
        self.outcomes = OutcomeQueue(self._lock)
        self.sources = SourceList(sources, self._lock, options.poll)
        self.roster = Roster(self._lock, self._work)
        self.held_rows = HeldRows()
        """What to say about rows that others hold; has a lock of its own."""
        self._placement = Placement(
            self.roster.children,
            self._assignments,
            tasks,
            options.max_tasks_per_child,
            self.sources.ranks(),
        )
        self._held_back = 0
        """Claimed tasks that are to go back, and whose rows another transaction holds."""
        self._tokens: Counter[bytes] = Counter()
        """How many tasks of ours each lease covers."""
        self._spent: set[bytes] = set()
        """Tokens whose tasks have all ended durably: their lease rows can go."""
        self._unwritten: set[bytes] = set()
        """Tokens of tasks whose end could not be written: their lease rows must stay."""
        self.ahead_us: int | None = None
        """How far the store's clock is ahead of our monotonic one, once it is known."""
        self._accepting = True
        self._claiming = False
        """Whether the claimer is in the middle of a turn."""
        self._came_back: set[str] = set()
        """Queues into which tasks of ours went back: there is something in them."""
        self._paused: set[str] = set()
        """Queues that were paused a moment ago: what is held of them goes back at once."""
        self._by_name: Counter[str] = Counter()
        self._by_queue: Counter[str] = Counter()
        self.gated = GatedClaims()
        """What limits have to do with claims; changes under the lock only."""
        self._choice = TurnChoice(
            self.sources, self._placement, self.gated, self._by_queue, self._by_name
        )

    def hinted(self, queues: frozenset[str]) -> None:
        """A hint: look into these queues (all of them if it does not say)."""
        with self._lock:
            if self.sources.hinted(queues):
                self._paused -= queues
                if self._choice.heard():
                    self._work.notify()

    def freed(self, scopes: Collection[str]) -> None:
        """A hint: slots of these limits came free."""
        with self._lock:
            if self.sources.freed(scopes):
                self._work.notify()

    def pause(self, queues: frozenset[str]) -> None:
        """A hint: these queues were paused; what was claimed of them must not begin."""
        with self._lock:
            self._paused |= queues
            self._work.notify()
            self.roster.take_back(queues)

    def begin_asking(self, *, may_claim: bool) -> bool:
        """Whether to ask now which of many queues have something; `sources.asked` follows."""
        with self._lock:
            now = monotonic()
            if not self.sources.begin_asking(now):
                return False
            self._paused.clear()
            if self._accepting and may_claim:
                return True
            self.sources.asked((), now, now)
            return False

    def plan(self, *, may_claim: bool, patience: float = math.inf) -> TurnPlan | None:
        """What to start and to claim next; `turn_over` follows.

        None, after a wait, if there was nothing to do.
        """
        with self._lock:
            now = monotonic()
            if self.sources.poll(now):
                self._paused.clear()
                self._choice.heard()
            if self._came_back:
                self.sources.wake(self._came_back)
                self._came_back.clear()
            self.sources.revive(now)
            is_open = may_claim and self._accepting
            self._choice.set_reserve(now)
            plan = TurnPlan(self._placement.fit_held(self._paused))
            if is_open:
                self._choice.choose(plan, now)
            if plan.begins or plan.source is not None:
                self._claiming = True
                return plan
            wait = min(patience, self.sources.until_poll(now), self._choice.until_look(now))
            if is_open and not self._placement.held:
                again = self._move(now)
                wait = min(wait, again)
            self._work.wait(min(wait, _LOOK_AFTER_HELD) if self._placement.held else wait)
            return None

    def begin_look(self) -> list[QueueSource]:
        """Where to look for urgent tasks now; `looked` follows for each."""
        with self._lock:
            return self._choice.begin_look(monotonic()) if self._accepting else []

    def looked(self, source: QueueSource, priority: int | None, took: float) -> None:
        """The first task of its queue has this priority; None if there is none."""
        with self._lock:
            self._choice.looked(source, priority, took)

    def _move(self, now: float) -> float:
        """Have a child give back what another could begin now; seconds to the next look."""
        return _LOOK_AT_WAITING if self._placement.move(now) else math.inf

    def turn_over(self) -> None:
        """What was planned has been done, or has failed."""
        with self._lock:
            self._claiming = False

    def fit(self, tasks: Sequence[ClaimedTask], plan: TurnPlan) -> list[Assignment]:
        """Give tasks of one kind that are being claimed to children that have room; urgent ones to
        children that have none, too."""
        with self._lock:
            if plan.is_urgent:
                given = self._placement.fit_urgent(tasks)
                if any(assignment.is_urgent for assignment in given):
                    self._choice.found_urgent()
                return given
            # Room that came up since must not let them pass those that were there before.
            may_begin = plan.source is not None and self._placement.may_begin(plan.source.kind)
            return self._placement.fit(tasks if may_begin else ())

    def put_back(self, given: Iterable[Assignment]) -> list[ClaimedTask]:
        """The start of these tasks did not happen: their children are free of them."""
        with self._lock:
            return self._placement.put_back(given)

    def landed(self, begins: Sequence[Assignment], now: Sequence[Assignment], turn: Turn) -> Orders:
        """A turn is durable: it started `begins`, and of what it claimed some that begin `now`."""
        with self._lock:
            self._claimed(turn.claimed)
            # Not together: a task whose claim was lost may have been claimed again.
            orders = self.started(begins, turn.started) + self.started(now, turn.begun)
            self._placement.hold(task for task in turn.claimed if task.key not in turn.begun)
            return orders

    def started(
        self, given: Iterable[Assignment], landings: Mapping[Key, Landing] | None = None
    ) -> Orders:
        """The start of these is durable, as far as it landed (all, if that is not said).

        Tell the children (`ChildHandle.run`): nobody is told of a task before its start is durable.
        """
        orders: defaultdict[ChildHandle, list[Assignment]] = defaultdict(list)
        with self._lock:
            now = monotonic()
            for assignment in given:
                if landings is not None:
                    landing = landings[assignment.task.key]
                    if landing.answer is not Answer.LANDED:
                        # Cancelled in between, or the lease is gone: there is nothing to run.
                        self.forget(self._placement.put_back([assignment]))
                        continue
                    assignment.attempt = landing.attempt or 0
                    assignment.started = True
                assignment.given_at = assignment.beat_at = now
                if assignment.child.state is ChildState.DEAD:
                    self.ended([Finished(assignment, NotBegun())])
                else:
                    orders[assignment.child].append(assignment)
        return list(orders.items())

    def fill_window(
        self, child: ChildHandle, source: QueueSource, tasks: Sequence[ClaimedTask]
    ) -> Orders:
        """Tasks were claimed, and so started, for one child."""
        with self._lock:
            self._claimed(tasks)
            window = self._placement.fill_window(child, tasks, accepting=self._accepting)
            orders = self.started(window.given)
            if window.back:
                if window.fits:
                    # They are claimed again in the other way, in which they wait for a child.
                    source.met_alone(monotonic())
                self.ended([Finished(run, NotBegun()) for run in window.back])
            return orders

    def hold(self, tasks: Sequence[ClaimedTask], *, first: bool = False) -> None:
        """Keep tasks of ours until a child has room; `first`: before all others."""
        with self._lock:
            self._placement.hold(tasks, first=first)

    def hold_claimed(self, tasks: Sequence[ClaimedTask]) -> None:
        """These were claimed, and wait for a child."""
        with self._lock:
            self._claimed(tasks)
            self._placement.hold(tasks)

    def _claimed(self, tasks: Sequence[ClaimedTask]) -> None:
        """Tasks were claimed: they count as ours from now on.

        One that is held here already has been taken from us since (its lease was lost, or it was
        cancelled and resubmitted), and we have not heard of it yet: the older claim is over.
        """
        if self._placement.held:
            again = {task.key for task in tasks}
            self.forget(self._placement.take_held(lambda task: task.key in again))
        for (token, queue, name, version), count in Counter(map(_ALIKE, tasks)).items():
            self._tokens[token] += count
            self._by_queue[queue] += count
            self._by_name[name] += count
            self._placement.claimed(name, version, count)

    def take_stale(self) -> list[ClaimedTask]:
        """Held tasks that no child had room for in time, or whose queue was paused, or all when
        we stop; they are to be given back."""
        with self._lock:
            stale: list[ClaimedTask] = []
            if self._paused:
                stale += self._placement.take_held(lambda task: task.queue_name in self._paused)
            latest = monotonic() - HELD_FOR if self._accepting else math.inf
            return stale + self._placement.take_held_before(latest)

    def forget(self, tasks: Sequence[ClaimedTask]) -> None:
        """These tasks are not ours any more: given back, or lost, or durably ended."""
        with self._lock:
            for (token, queue, name, _), count in Counter(map(_ALIKE, tasks)).items():
                take_off(self._by_name, name, count)
                take_off(self._by_queue, queue, count)
                if take_off(self._tokens, token, count):
                    if token in self._unwritten:
                        self._unwritten.remove(token)
                    else:
                        self._spent.add(token)

    def leave_to_lease(self, tasks: Sequence[ClaimedTask]) -> None:
        """What became of these could not be written: their lease has to run out, not to be removed.

        Without one nobody would ever come back to them.
        """
        with self._lock:
            self._unwritten.update(task.token for task in tasks)
            self.outcomes.settled(tasks)
            self.forget(tasks)

    def set_held_back(self, number: int) -> None:
        """So many tasks that are to go back have rows that another transaction holds."""
        with self._lock:
            self._held_back = number

    def own(self, child: ChildHandle, slot: int) -> Assignment | None:
        """The task that a child means by this slot; None if it has ended.

        Nobody but the child that it was given to has any business with a task.
        """
        assignment = self._assignments.get(slot)
        if assignment is None:
            return None
        if assignment.child is not child or not assignment.given_at:
            raise ProtocolError(f"spoke about slot {slot}, which it was never given")
        return assignment

    def ended(self, finished: Iterable[Finished], *, wakes: bool = True) -> None:
        """Runs have ended: their children are free of them, and the finisher has them.

        Without `wakes`, `heard` follows.
        """
        runs: defaultdict[str, list[int]] = defaultdict(list)
        with self._lock:
            written: list[Finished] = []
            for done in finished:
                assignment = done.assignment
                slot, child = assignment.slot, assignment.child
                if self._assignments.pop(slot, None) is None:
                    continue
                child.drop(slot)
                if type(done.outcome) is not NotBegun:
                    child.served += 1
                    child.slow = False
                if done.run_us:
                    runs[assignment.task.task_name].append(done.run_us)
                written.append(done)
            for name, took in runs.items():
                self._placement.costs.learn(name, took)
            self.outcomes.add(written, wakes=wakes)
            if wakes:
                self._stir()

    def heard(self) -> None:
        """What ended of late may be written, and make room."""
        with self._lock:
            self.outcomes.wake()
            self._stir()

    def _stir(self) -> None:
        """Wake the claimer, if it can make something of the room that there is now."""
        if not self._placement.has_reserve or not self._accepting or self._placement.is_due:
            self._work.notify_all()

    def rest_of(self, child: ChildHandle) -> float:
        """Seconds for which nobody needs to hear what ends in this child; 0.0: not at all."""
        with self._lock:
            return reserve.rest_s(child, self.roster.children.values()) if self._accepting else 0.0

    def settled(
        self,
        tasks: Sequence[ClaimedTask],
        *,
        came_back: Collection[str],
        freed: Collection[str] = (),
        totals: Mapping[str, int],
    ) -> None:
        """The ends of these are durable; some went back into these queues, and slots of limits
        came free."""
        with self._lock:
            self.forget(tasks)
            self._came_back.update(came_back)
            self.outcomes.settled(tasks)
            self.outcomes.count(totals)
            is_awaited = bool(freed) and self.sources.freed(freed)
            if came_back or is_awaited or not self._placement.has_reserve:
                self._work.notify()

    def tell_to_end(self, assignment: Assignment, why: Why) -> bool:
        """A run is to end; False if it has ended, or has been told before."""
        with self._lock:
            if assignment.told_to_end is not None or assignment.slot not in self._assignments:
                return False
            assignment.told_to_end = why
            assignment.told_to_end_at = monotonic()
            # Before its child can be found dead, and its number be another's.
            assignment.child.tell_to_end(assignment.slot, why)
            return True

    def assignments(self) -> list[Assignment]:
        """Every task that children have, or are about to have."""
        with self._lock:
            return list(self._assignments.values())

    def stop_accepting(self) -> tuple[int, int]:
        """Claim nothing more; how many tasks run, and how many are claimed only."""
        with self._lock:
            self._accepting = False
            self._work.notify_all()
            return self.counts()

    def wake(self) -> None:
        """End the wait of the claimer."""
        with self._lock:
            self._work.notify_all()

    def tokens(self) -> list[bytes]:
        """The leases that cover tasks of ours."""
        with self._lock:
            return list(self._tokens)

    def lost(self, tokens: Iterable[bytes]) -> tuple[set[bytes], list[Assignment]]:
        """These leases are gone, and what they covered is not ours; which, and what of it runs."""
        with self._lock:
            # One that was settled since it was asked about is not lost, only finished.
            gone = self._tokens.keys() & tokens
            self.forget(self._placement.take_held(lambda task: task.token in gone))
            return gone, [a for a in self._assignments.values() if a.task.token in gone]

    def take_spent(self) -> set[bytes]:
        """Leases whose rows can go; they are not told again."""
        with self._lock:
            spent, self._spent = self._spent, set()
            return spent

    def spend(self, tokens: Iterable[bytes]) -> None:
        """The rows of these leases can go: nothing is under them."""
        with self._lock:
            self._spent.update(tokens)

    def known_keys(self) -> set[Key]:
        """The keys of every task that is ours and that we know of."""
        with self._lock:
            keys = {task.key for task, _ in self._placement.held}
            keys |= {assignment.task.key for assignment in self._assignments.values()}
            return keys | self.outcomes.keys()

    def learn_time(self, now_us: int) -> None:
        """The store's clock says so, at this moment."""
        self.ahead_us = now_us - round(monotonic() * 1_000_000)

    def paused_queues(self) -> list[str]:
        """Those that were paused a moment ago."""
        with self._lock:
            return sorted(self._paused)

    @property
    def is_accepting(self) -> bool:
        """Whether more is claimed."""
        return self._accepting

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in hand, nothing waits to be written, and nothing is being claimed."""
        with self._lock:
            return not (self._is_busy or self._tokens)

    @property
    def is_drained(self) -> bool:
        """Whether it is idle, and the last look into every queue found nothing to take."""
        with self._lock:
            more = self._came_back or self.sources.may_find(monotonic())
            return self.is_idle and not more

    @property
    def held_up(self) -> int:
        """How many tasks are in hand, if other transactions hold the rows of all of them; or 0."""
        with self._lock:
            held, every = self.outcomes.number_aside + self._held_back, self._tokens.total()
            busy = self._is_busy or self.outcomes.is_writing
            return every if every == held and not busy else 0

    @property
    def _is_busy(self) -> bool:
        in_hand = self._placement.held or self._assignments or self.outcomes
        return bool(self._claiming or in_hand)

    def counts(self) -> tuple[int, int]:
        """How many tasks run (or may), and how many are claimed only."""
        with self._lock:
            running = sum(a.started for a in self._assignments.values())
            return running, len(self._placement.held) + len(self._assignments) - running
