"""The claimer: free children → claim → start → hand over.

Invariant: a task is handed to a child only after its start is durable, and every task that
was claimed is started, released, or left to its lease.

One turn is one transaction. When children are idle it claims and starts at once; under load
it starts the last batch and claims the next, so that children never wait for a claim. Tasks
that are known to be short are claimed for one child after the other, and so started by the
claim itself.

The poll is the truth; hints only make it quick. A worker of many queues polls them all by one
question, and claims from those that have something (see `queue_source`).

Failure: a turn that raised is undone here; if its commit may have landed, the tasks it
could have touched are given back (`hand_back`) before anything else is tried with them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from math import inf
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.core.records import ClaimedTask, Position, Refused
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.duties.claim_recovery import Refuser, UnknownCommits
from holdfast.runtime.supervisor.duties.known_limits import KnownLimits
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.readiness import Readiness
from holdfast.runtime.supervisor.state.blocked_rows import RefusedRows
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import QueueSource
from holdfast.runtime.supervisor.state.turn_plan import TurnPlan
from holdfast.runtime.watch import WorkerWatch, handled
from holdfast.runtime.wire.messages import KnownTask
from holdfast.store.op import Key, Mode, Op, Steps, at_once
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import claims
from holdfast.store.verbs.claims import ChildIdentity, Hold, Request, Standing, Turn
from holdfast.store.verbs.limited_claims import LimitedClaim

log = logging.getLogger("holdfast.worker")

_SIGNS_EVERY = 1.0
"""Seconds between two looks for tasks with concurrency keys, while there are enough others."""
_CLAIMS = b"claims"
"""What the lock watch calls the tables that a claim writes to."""


class Claimer:
    """A duty: call `tick` from one thread only."""

    name = "claimer"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        *,
        worker_id: str,
        hostname: str,
        tasks: Sequence[KnownTask] = (),
        refused: RefusedRows | None = None,
        readiness: Readiness | None = None,
        watch: WorkerWatch | None = None,
    ) -> None:
        self._watch = watch or WorkerWatch()
        self._began = 0
        self._readiness = readiness or Readiness(outage, ledger.options.poll)
        self._limits = KnownLimits(store, ledger, tasks, worker_id) if tasks else None
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._worker_id = worker_id
        self._hostname = hostname
        self._lease_us = ledger.options.lease_us
        self._unknown_commits = UnknownCommits(store, ledger, outage)
        self._refused = refused if refused is not None else RefusedRows()
        self._refuser = Refuser(
            store,
            ledger,
            outage,
            self._refused,
            self._unknown_commits,
            worker_id=worker_id,
            hostname=hostname,
        )

    def tick(self) -> float:
        """Wait until there is something to do, then do one turn of it."""
        if self._unknown_commits.is_open and not self._unknown_commits.settle():
            return 0.0
        stale = self._ledger.take_stale()
        if stale:
            self.release(stale)
        if self._limits is not None and not self._limits.is_declared and not self._learn():
            return 0.0
        if self._ledger.sources.are_many:
            self._ask_all()
        self._look_for_urgent()
        patience = self._unknown_commits.until_due if self._unknown_commits.is_open else inf
        plan = self._ledger.plan(may_claim=not self._outage.is_on, patience=patience)
        if plan is not None:
            self._readiness.claims()
            self._began = self._watch.begin()
            try:
                self._turn(plan)
            except Exception:
                self._readiness.claim_failed()
                raise
            finally:
                self._ledger.turn_over()
        return 0.0

    def _learn(self) -> bool:
        """Learn the limits before anything is claimed; False if the store is away."""
        assert self._limits is not None
        try:
            self._limits.declare()
        except StoreUnavailable as error:
            self._readiness.claim_failed()
            self._outage.noted(error)
            self._outage.wait()
            return False
        return True

    def _ask_all(self) -> None:
        """Find out which of many queues have something, if it is time to."""
        if not self._ledger.begin_asking(may_claim=not self._outage.is_on):
            return
        sources, began = self._ledger.sources, monotonic()
        try:
            found = self._store.run(claims.ready_queues(sources.queues))
        except StoreUnavailable as error:
            self._outage.noted(error)
            sources.asked(None, began, monotonic())
            self._outage.wait()
            return
        sources.asked(found, began, monotonic())

    def _look_for_urgent(self) -> None:
        """See whether something came that goes before what children have not begun."""
        for source in self._ledger.begin_look():
            began = monotonic()
            try:
                first = self._store.run(claims.head_priority(source.queue))
            except StoreUnavailable as error:
                self._outage.noted(error)
                return
            self._ledger.looked(source, first, monotonic() - began)

    def _request(self, plan: TurnPlan) -> Request | None:
        """What the store is asked for."""
        source, child = plan.source, plan.child
        if source is None:
            return None
        return Request(
            os.urandom(16),
            self._worker_id,
            source.queue,
            source.names,
            plan.wanted,
            self._lease_us,
            plan.claim_after,
            source.policies,
            None if child is None else ChildIdentity(self._hostname, child.pid or 0, child.name),
            self._refused.keys if self._refused.has_any else (),
            source.is_careful,
            None if self._limits is None else self._limits.book.version,
        )

    def _turn(self, plan: TurnPlan) -> None:
        request = self._request(plan)
        if plan.source is not None and request is not None:
            if plan.source.is_gated and self._limits is not None:
                self._claim_gated(plan, plan.source, request, self._limits)
                return
            if plan.child is not None:
                self._fill(plan, request, plan.child, plan.source)
                return
        begun: list[Assignment] = []
        begins = [assignment.begin() for assignment in plan.begins]
        turn = claims.turn(begins, request, hostname=self._hostname)
        if plan.source is not None and plan.may_begin:
            turn = Op(self._begin_at_once(turn, plan, begun), Mode.WRITE, turn.name)
        try:
            done = self._store.run(turn)
        except StoreUnavailable as error:
            self._ledger.put_back(begun)
            self._failed(plan.begins, request, error)
            return
        except RowRefused as error:
            self._ledger.put_back(begun)
            self._one_by_one(plan, request, error)
            return
        self._store_answered(request, done.claimed)
        for child, runs in self._ledger.landed(plan.begins, begun, done):
            child.run(runs)
        # Not before: children need not wait for where the next claim begins.
        if plan.source is not None and request is not None:
            self._looked(plan.source, request, done.claimed, done.refused)

    def _begin_at_once(
        self, turn: Op[Turn], plan: TurnPlan, begun: list[Assignment]
    ) -> Steps[Turn]:
        """A turn, and the start of what it claimed and a child has room for (`begun`), in one
        transaction: which that is depends on what was claimed.

        The ledger is asked inside the transaction, and never waits for the store.
        """
        done = yield from turn
        begun[:] = self._ledger.fit(done.claimed, plan) if done.claimed else ()
        if not begun:
            return done
        begins = [assignment.begin() for assignment in begun]
        return done._replace(begun=(yield from claims.start(begins, hostname=self._hostname)))

    def _claim_gated(
        self, plan: TurnPlan, source: QueueSource, request: Request, limits: KnownLimits
    ) -> None:
        """Claim under limits, and start what was claimed: for children that are free, or a window
        for one child."""
        begun: list[Assignment] = []
        found: list[LimitedClaim] = []

        def claim() -> Steps[Turn]:
            done = yield from limits.claim(source, request)
            found[:] = [done]
            taken = done.claimed
            return Turn(claimed=taken.tasks, refused=taken.refused)

        turn = Op(claim(), Mode.WRITE, "claim")
        if plan.child is None:
            turn = Op(self._begin_at_once(turn, plan, begun), Mode.WRITE, "claim")
        try:
            done = self._store.run(turn)
        except StoreUnavailable as error:
            self._ledger.put_back(begun)
            self._failed((), request, error)
            return
        except RowRefused as error:
            self._ledger.put_back(begun)
            log.warning("a claim was refused, and is made with care: %s", one_line(str(error), 300))
            self._ledger.sources.look_again(source)
            source.is_careful = True
            self._readiness.claimed()
            return
        self._store_answered(request, done.claimed)
        if plan.child is None:
            orders = self._ledger.landed((), begun, done)
        else:
            orders = self._ledger.fill_window(plan.child, source, done.claimed)
        for child, runs in orders:
            child.run(runs)
        if done.refused:
            self._refuser.refuse(request.token, done.refused, alone=not done.claimed)
        try:
            known = limits.note(source, found[0], request.wanted)
        except StoreUnavailable:
            known = False
        if not known:
            self._ledger.sources.look_again(source)
        elif not source.is_keyed and not (found[0].is_held_back and found[0].saw_all):
            self._looked(source, request, done.claimed, ())
            if found[0].is_held_back and not source.cursor.may_find(monotonic()):
                limits.hold_back(source, found[0])

    def _fill(
        self, plan: TurnPlan, request: Request, child: ChildHandle, source: QueueSource
    ) -> None:
        """Claim and start a window for one child, in one statement."""
        try:
            found = self._store.run(claims.claim(request))
        except StoreUnavailable as error:
            self._failed(plan.begins, request, error)
            return
        except RowRefused as error:
            self._one_by_one(plan, request, error)
            return
        self._store_answered(request, found.tasks)
        for each, runs in self._ledger.fill_window(child, source, found.tasks):
            each.run(runs)
        self._looked(source, request, found.tasks, found.refused)

    def _store_answered(self, request: Request | None, claimed: Sequence[ClaimedTask]) -> None:
        self._readiness.claimed()
        if request is not None:
            self._watch.claimed(
                request.queue, self._began, lambda: map(handled, claimed), error=None
            )
        if self._outage.is_unsettled:
            self._outage.over()
        if self._ledger.held_rows.has_any:
            self._ledger.held_rows.free("table", (_CLAIMS,))

    def _one_by_one(self, plan: TurnPlan, request: Request | None, error: RowRefused) -> None:
        """The store has refused a turn: some row that it would write breaks a constraint."""
        log.warning(
            "a claim or a start was refused, and is made one by one: %s", one_line(str(error), 300)
        )
        try:
            self._refuser.start(plan.begins)
            if plan.source is not None:
                plan.source.is_careful = True
            claimed = () if request is None else self._refuser.claim(request)
        except StoreUnavailable as away:
            self._failed([run for run in plan.begins if not run.started], None, away)
            return
        self._readiness.claimed()
        self._ledger.hold_claimed(claimed)
        if plan.source is not None:
            self._ledger.sources.look_again(plan.source)

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
            self._ledger.sources.look_again(source)
        elif len(claimed) < request.wanted:
            standing = self._standing(request.queue, request.after)
            if standing is None:
                # The limits are others now.
                self._ledger.sources.look_again(source)
                return
            self._ledger.sources.short(source, standing.horizon, monotonic())
        else:
            if monotonic() >= source.signs_at + _SIGNS_EVERY:
                self._standing(request.queue, None)
            last = Position(claimed[-1].priority, claimed[-1].enqueued_at, claimed[-1].id)
            self._ledger.sources.found(source, last, monotonic())

    def _standing(self, queue: str, after: Position | None) -> Standing | None:
        """What a claim did not tell of its queue; None if the limits are others by now."""
        try:
            standing = self._store.run(claims.standing(queue, after))
            known = self._limits is None or self._limits.noted(queue, standing)
            return standing if known else None
        except StoreUnavailable:
            return Standing(None, False, None)

    def _failed(
        self, begins: Sequence[Assignment], request: Request | None, error: StoreUnavailable
    ) -> None:
        self._outage.noted(error)
        if error.locked:
            self._readiness.claimed()
        else:
            self._readiness.claim_failed()
        if request is not None:
            self._watch.claimed(request.queue, self._began, lambda: (), type(error).__name__)
        tasks = self._ledger.put_back(begins)
        if error.locked:
            self._held_up(tasks)
            return
        if error.commit_unknown:
            self._unknown_commits.of_tasks(tasks)
            if request is not None:
                self._unknown_commits.of_claim(request.token)
        else:
            self._ledger.hold(tasks)
        self._outage.wait()

    def _held_up(self, tasks: Sequence[ClaimedTask]) -> None:
        """Another transaction holds one of the rows that were to be started: go on without it.

        It goes back to its queue as soon as it is free: its holder may be ending it.
        """
        free: set[Key] = set()
        try:
            if tasks:
                free = self._store.run(at_once(claims.free([task.key for task in tasks])))
        except StoreUnavailable as error:
            self._outage.noted(error)
        self._ledger.hold([task for task in tasks if task.key in free], first=True)
        self._unknown_commits.of_tasks(task for task in tasks if task.key not in free)
        if len(free) == len(tasks):
            # It has come free, or it is nothing of ours: a little patience. A claim passes over
            # rows that are held, so it can only wait for a table.
            if not tasks:
                self._ledger.held_rows.held("table", _CLAIMS, "a table that claims need")
            self._outage.wait()

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
        except RowRefused as error:
            if len(tasks) > 1:
                for task in tasks:
                    self.release([task])
                return
            self._refused.add(tasks[0].key, error, "release")
            self._ledger.leave_to_lease(tasks)
        else:
            self._ledger.forget(tasks)
