"""The claimer: free children → claim → start → hand over.

Invariant: a task is handed to a child only after its start is durable, and every task that
was claimed is started, released, or left to its lease.

One turn is one transaction. When children are idle it claims and starts at once; under load
it starts the last batch and claims the next, so that children never wait for a claim. Tasks
that are known to be short are claimed for one child after the other, and so started by the
claim itself.

The poll is the truth; hints only make it quick. A worker of many queues polls them all by one
question, and claims from those that have something (see `source_list`).

Failure: a turn that raised is undone here; if its commit may have landed, the tasks it
could have touched are given back (`give_up`) before anything else is tried with them.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from holdfast.core.cursor import PATIENCE
from holdfast.core.errors import StoreUnavailable
from holdfast.core.outcome import NotBegun
from holdfast.core.records import ClaimedTask, Position, Refused
from holdfast.core.text import one_line
from holdfast.runtime.options import MAX_BATCH
from holdfast.runtime.supervisor.duties.refuser import Refuser
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.assignment import Assignment, Finished
from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.supervisor.state.handover import Handover, begins
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import QueueSource
from holdfast.runtime.supervisor.state.refused_rows import RefusedRows
from holdfast.runtime.supervisor.state.source_list import SourceList
from holdfast.runtime.supervisor.state.unknown_commits import UnknownCommits
from holdfast.store.op import Key, at_once
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import claims
from holdfast.store.verbs.claims import Begin, Child, Hold, Request, Turn

log = logging.getLogger("holdfast.worker")

_CLAIMS = b"claims"
"""What the lock watch calls the tables that a claim writes to."""


@dataclass(slots=True)
class _Plan:
    begins: list[Assignment]
    source: QueueSource | None = None
    request: Request | None = None
    may_begin: bool = False
    """Whether some of what is claimed may be given to a child at once."""
    child: ChildHandle | None = None
    """The child for which all of it is claimed."""


class Claimer:
    """A duty: call `tick` from one thread only."""

    name = "claimer"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        sources: Sequence[QueueSource],
        outage: Outage,
        *,
        worker_id: str,
        hostname: str,
        aside: RefusedRows | None = None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._sources = SourceList(sources)
        self._outage = outage
        self._worker_id = worker_id
        self._hostname = hostname
        self._poll_at = 0.0
        self._asked_for = self._sources.are_many
        """Whether to ask all queues of many before the next poll is due."""
        self._ask_not_before = 0.0
        self._is_asking = False
        self._unknown_commits = UnknownCommits(store, ledger, outage)
        self._aside = aside if aside is not None else RefusedRows()
        self._refuser = Refuser(
            store, ledger, outage, self._aside, worker_id=worker_id, hostname=hostname
        )

    def rung(self, queues: frozenset[str]) -> None:
        """A hint: look into these queues (all of them if it does not say)."""
        with self._ledger.lock:
            if queues and "" not in queues:
                if not self._sources.ring(queues):
                    return
            elif self._sources.are_many:
                self._asked_for = True
            else:
                self._sources.ring_all()
            self._ledger.paused -= queues
            self._ledger.work.notify()

    def paused(self, queues: frozenset[str]) -> None:
        """A hint: these queues were paused; what was claimed of them shall not begin."""
        with self._ledger.lock:
            self._ledger.paused |= queues
            self._ledger.work.notify()

    @property
    def found_nothing(self) -> bool:
        """Whether the last look into every queue found nothing to take."""
        return not (
            self._asked_for
            or self._is_asking
            or self._ledger.came_back
            or self._sources.may_find(monotonic())
        )

    def tick(self) -> float:
        """Wait until there is something to do, then do one turn of it."""
        if not self._unknown_commits.settle():
            return 0.0
        self._release_stale()
        if self._sources.are_many:
            self._ask_all()
        with self._ledger.lock:
            plan = self._plan()
            if plan is None:
                self._ledger.work.wait(self._until_poll())
                return 0.0
            self._ledger.claiming = True
        try:
            self._turn(plan)
        finally:
            with self._ledger.lock:
                self._ledger.claiming = False
        return 0.0

    def _until_poll(self) -> float:
        due = min(self._poll_at, self._ask_not_before) if self._asked_for else self._poll_at
        wait = max(0.0, due - monotonic())
        wait = min(wait, self._unknown_commits.until_due)
        return min(wait, 0.2) if self._ledger.held else wait

    def _is_time_to_poll(self, now: float) -> bool:
        if now < self._poll_at:
            return False
        # The jitter keeps a fleet from asking in step.
        self._poll_at = now + self._ledger.options.poll * random.uniform(0.75, 1.25)
        return True

    def _ask_all(self) -> None:
        """Find out which of many queues have something, if it is time to."""
        now = monotonic()
        if not self._is_time_to_poll(now) and not (self._asked_for and now >= self._ask_not_before):
            return
        with self._ledger.lock:
            # What comes in from here on gives another hint.
            self._asked_for = False
            self._ledger.paused.clear()
            if not self._ledger.accepting or self._outage.is_on:
                return
            self._is_asking = True
        try:
            found = self._store.run(claims.ready_queues(self._sources.queues))
        except StoreUnavailable as error:
            self._outage.noted(error)
            self._asked_for = True
            self._is_asking = False
            self._outage.wait()
            return
        # Hints that do not say which queue may come as often as anybody commits.
        self._ask_not_before = monotonic() + PATIENCE * (monotonic() - now)
        with self._ledger.lock:
            self._sources.ring(found)
            self._is_asking = False

    def _plan(self) -> _Plan | None:
        now = monotonic()
        if not self._sources.are_many and self._is_time_to_poll(now):
            self._sources.ring_all()
            self._ledger.paused.clear()
        if self._ledger.came_back:
            self._sources.ring(self._ledger.came_back)
            self._ledger.came_back.clear()
        plan = _Plan(self._ledger.fit_held())
        if self._ledger.accepting and not self._outage.is_on:
            self._choose(plan, now)
        return plan if plan.begins or plan.request is not None else None

    def _choose(self, plan: _Plan, now: float) -> None:
        appetite = self._ledger.appetite()
        if not appetite:
            return
        for source in self._sources.in_turn():
            if not source.may_find(now):
                continue
            left = self._ledger.left(source.queue, source.choice.cap, source.only)
            wanted = min(appetite.get(source.kind, 0), left, MAX_BATCH)
            if wanted <= 0:
                continue
            if source.is_deep and self._is_for_windows(source, now):
                window = self._ledger.due_window()
                if window is None or plan.begins:
                    # Nor from those behind it, for children of this kind.
                    appetite[source.kind] = 0
                    continue
                plan.child = window[0]
                wanted = min(wanted, window[1])
            plan.source = source
            plan.may_begin = self._ledger.may_begin(source.kind)
            plan.request = Request(
                os.urandom(16),
                self._worker_id,
                source.queue,
                source.names,
                wanted,
                self._ledger.options.lease_us,
                source.position(now),
                source.policies,
                self._as_known(plan.child),
                self._aside.keys,
                source.is_careful,
            )
            return

    def _is_for_windows(self, source: QueueSource, now: float) -> bool:
        """Whether to claim from it for one child after the other, which saves a start.

        Of long tasks it matters who gets which, so they are claimed first and then given out.
        """
        return (
            source.kind == "process"
            and source.may_share(now)
            and self._ledger.are_short(source.tasks)
        )

    def _as_known(self, child: ChildHandle | None) -> Child | None:
        return None if child is None else Child(self._hostname, child.pid or 0, child.name)

    def _turn(self, plan: _Plan) -> None:
        if plan.child is not None:
            self._fill(plan, plan.child)
            return
        at_once: list[Assignment] = []
        kind = plan.source.kind if plan.source is not None else None

        def begin_now(tasks: Sequence[ClaimedTask]) -> list[Begin]:
            with self._ledger.lock:
                self._ledger.put_back(at_once)
                # Room that came up since must not let them pass those that were there before.
                may_begin = kind is not None and self._ledger.may_begin(kind)
                at_once[:], _ = self._ledger.fit(tasks if may_begin else ())
                return begins(at_once)

        try:
            done = self._store.run(
                claims.turn(
                    begins(plan.begins),
                    plan.request,
                    hostname=self._hostname,
                    begin_now=begin_now if plan.may_begin else None,
                )
            )
        except StoreUnavailable as error:
            self._failed(plan, at_once, error)
            return
        except RowRefused as error:
            with self._ledger.lock:
                self._ledger.put_back(at_once)
            self._one_by_one(plan, error)
            return
        self._outage.over()
        self._ledger.held_rows.free("table", (_CLAIMS,))
        self._landed(plan, at_once, done)

    def _one_by_one(self, plan: _Plan, error: RowRefused) -> None:
        """The store has refused a turn: some row that it would write breaks a constraint."""
        log.warning(
            "a claim or a start was refused, and is made one by one: %s", one_line(str(error), 300)
        )
        try:
            self._refuser.start(plan.begins)
            if plan.source is not None:
                plan.source.is_careful = True
            claimed = () if plan.request is None else self._refuser.claim(plan.request)
        except StoreUnavailable as away:
            self._failed(_Plan([a for a in plan.begins if not a.started]), [], away)
            return
        with self._ledger.lock:
            self._ledger.claimed(claimed)
            self._ledger.hold(claimed)
            if plan.source is not None:
                plan.source.rung()

    def _fill(self, plan: _Plan, child: ChildHandle) -> None:
        """Claim and start a window for one child, in one statement."""
        assert plan.request is not None
        assert plan.source is not None
        try:
            found = self._store.run(claims.claim(**plan.request._asdict()))
        except StoreUnavailable as error:
            self._failed(plan, [], error)
            return
        except RowRefused as error:
            self._one_by_one(plan, error)
            return
        self._outage.over()
        self._ledger.held_rows.free("table", (_CLAIMS,))
        claimed = found.tasks
        with self._ledger.lock:
            self._ledger.claimed(claimed)
            window = self._ledger.fill_window(child, claimed)
            handover = Handover(self._ledger, window.given)
            if window.back:
                if window.fits:
                    # They are claimed again in the other way, in which they wait for a child.
                    plan.source.met_loner(monotonic())
                self._ledger.ended(*(Finished(run, NotBegun()) for run in window.back))
                self._ledger.announce()
        handover.send()
        self._looked(plan.source, plan.request, claimed, found.refused)

    def _landed(self, plan: _Plan, at_once: list[Assignment], done: Turn) -> None:
        with self._ledger.lock:
            self._ledger.claimed(done.claimed)
            handover = [
                Handover(self._ledger, plan.begins, done.started),
                Handover(self._ledger, at_once, done.begun),
            ]
            self._ledger.hold(task for task in done.claimed if task.key not in done.begun)
        for order in handover:
            order.send()
        # Not before: children need not wait for where the next claim begins.
        if plan.source is not None and plan.request is not None:
            self._looked(plan.source, plan.request, done.claimed, done.refused)

    def _looked(
        self,
        source: QueueSource,
        request: Request,
        claimed: Sequence[ClaimedTask],
        refused: Sequence[Refused],
    ) -> None:
        if refused:
            self._refuser.refuse(request.token, refused, alone=not claimed)
            # There may be more behind them.
            with self._ledger.lock:
                source.rung()
        elif len(claimed) < request.wanted:
            try:
                horizon = self._store.run(claims.horizon(request.queue, request.after))
            except StoreUnavailable:
                horizon = None
            with self._ledger.lock:
                source.short(horizon, now := monotonic())
                self._sources.looked(source, now)
        else:
            last = Position(claimed[-1].priority, claimed[-1].enqueued_at, claimed[-1].id)
            with self._ledger.lock:
                source.found(last, monotonic())

    def _failed(self, plan: _Plan, at_once: list[Assignment], error: StoreUnavailable) -> None:
        self._outage.noted(error)
        with self._ledger.lock:
            self._ledger.put_back(at_once)
            tasks = self._ledger.put_back(plan.begins)
        if error.locked:
            self._held_up(tasks)
            return
        with self._ledger.lock:
            if not error.commit_unknown:
                self._ledger.hold(tasks)
        if error.commit_unknown:
            self._unknown_commits.of_tasks(tasks)
            if plan.request is not None:
                self._unknown_commits.of_claim(plan.request.token)
        self._outage.wait()

    def _held_up(self, tasks: Sequence[ClaimedTask]) -> None:
        """Somebody holds one of the rows that were to be started: go on without it.

        It goes back to its queue as soon as it is free; he may be ending it, after all.
        """
        free: set[Key] = set()
        try:
            if tasks:
                free = self._store.run(at_once(claims.free([task.key for task in tasks])))
        except StoreUnavailable as error:
            self._outage.noted(error)
        with self._ledger.lock:
            self._ledger.hold_again([task for task in tasks if task.key in free])
        self._unknown_commits.of_tasks(task for task in tasks if task.key not in free)
        if len(free) == len(tasks):
            # It has come free, or it is nothing of ours: a little patience. A claim passes over
            # rows that are held, so it can only wait for a table.
            if not tasks:
                self._ledger.held_rows.held("table", _CLAIMS, "a table that claims need")
            self._outage.wait()

    def _release_stale(self) -> None:
        with self._ledger.lock:
            stale = self._ledger.take_stale()
        if stale:
            self.release(stale)

    def release(self, tasks: Sequence[ClaimedTask]) -> None:
        """Give claimed tasks back; while the store cannot be asked, they stay ours."""
        try:
            self._store.run(
                claims.release(
                    [Hold(task.key, task.token) for task in tasks],
                    queues={task.queue_name for task in tasks},
                )
            )
        except StoreUnavailable as error:
            self._outage.noted(error)
            self._unknown_commits.of_tasks(tasks)
            return
        except RowRefused as error:
            if len(tasks) > 1:
                for task in tasks:
                    self.release([task])
                return
            self._aside.add(tasks[0].key, error, "release")
            with self._ledger.lock:
                self._ledger.give_up(tasks)
            return
        with self._ledger.lock:
            self._ledger.forget(tasks)
