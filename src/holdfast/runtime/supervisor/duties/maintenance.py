"""Maintenance: what any worker does for the whole store.

Promotes what is due, expires what is too late, recovers what a vanished worker left,
forgets what is old. Every worker tries; row locks decide which one does it. Each step is one
short transaction, and one that fails costs only itself.

Recovery comes last after an outage: live owners of leases that ran out meanwhile renew first (the
gap rule, see `store.verbs.leases`). Likewise for a lease whose row was locked.

The next due task sets a timer, so that a delayed task starts at its time and not at the
next poll.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from math import inf
from typing import TypeAlias

from holdfast.core.decide import Change, decide
from holdfast.core.errors import SchemaMismatch, StoreUnavailable
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed
from holdfast.core.pause import growing
from holdfast.core.text import one_line
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.lease_keeper import uptime
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.blocked_rows import RefusedRows
from holdfast.runtime.supervisor.task_log import TaskLog
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.op import Key, Op, at_once
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import leases, timing
from holdfast.store.verbs.leases import Abandoned
from holdfast.store.verbs.timing import Met

log = logging.getLogger("holdfast.worker")

_LOOK_AGAIN = 0.05
"""Seconds between two looks at what is due next, however many hints come."""
_LONGEST_REST = 60.0
"""Seconds for which what has failed again and again is left alone."""
_ONE_BY_ONE = 200
"""Rows that are tried one by one before the next look at a batch."""
_MOST_REFUSED = 50
"""Rows that are found one by one; of more, all that break a constraint are passed over."""
Verb: TypeAlias = "Callable[..., Op[Met]]"
First: TypeAlias = "Callable[[Sequence[Key]], Op[Key | None]]"


class Maintenance:
    """A duty: call `tick` from one thread only."""

    name = "maintenance"

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        outage: Outage,
        *,
        promoted: Callable[[], None],
        told_time: Callable[[int], None] = lambda now: None,
        clock: Callable[[], float] = uptime,
        refused: RefusedRows | None = None,
        task_log: TaskLog | None = None,
    ) -> None:
        self._task_log = task_log or TaskLog()
        self._clock = clock
        self._store = store
        self._options = options
        self._outage = outage
        self._promoted = promoted
        self._told_time = told_time
        """Called with what the store's clock says, whenever it was asked."""
        self._looked_at = self._recover_at = self._expire_at = -inf
        self._refused = refused if refused is not None else RefusedRows()
        self._failed: dict[str, tuple[int, float]] = {}
        """How often each part has failed in a row, and when it is tried again."""
        self._careful: set[str] = set()
        """What was refused for more rows than can be found one by one."""
        self._steering = WorkflowSteering(store, clock)
        self._put_off: dict[bytes, float] = {}
        """Leases that could not be recovered as a whole, and until when others come first."""

    def tick(self) -> float:
        """Do what is due; how long until something may be due again."""
        now = self._clock()
        since = now - self._looked_at
        if since < _LOOK_AGAIN:
            return _LOOK_AGAIN - since
        self._looked_at = now
        if self._outage.is_on:
            # The keeper asks whether the store is back.
            return _LOOK_AGAIN * 4
        try:
            return self._round(now)
        except StoreUnavailable as error:
            self._outage.noted(error)
            return _LOOK_AGAIN * 4

    def _round(self, now: float) -> float:
        wait = self._on_its_own("promote", self._promote, now)
        if now >= self._expire_at:
            self._expire_at = now + self._options.poll * random.uniform(0.5, 1.0)
            self._on_its_own("expire", self._expire, now)
        if now >= self._recover_at:
            self._recover_at = now + min(self._options.gap / 3, 1.0)
            self._on_its_own("recover", self._recover, now)
            self._on_its_own("workflows", self._steer_workflows, now)
            self._on_its_own("tend", self._tend, now)
        return min(wait, self._expire_at - now, self._recover_at - now)

    def _on_its_own(self, name: str, part: Callable[[], float], now: float) -> float:
        """Do one part. If it fails it rests for a while, and the others go on."""
        failures, again_at = self._failed.get(name, (0, -inf))
        if now < again_at:
            return again_at - now
        try:
            wait = part()
        except StoreUnavailable as error:
            if not error.locked:
                raise
            # Another transaction holds something that it has to write; the others need not.
            return _LOOK_AGAIN * 4
        except Exception as error:
            pause = growing(1.0, failures, _LONGEST_REST)
            self._failed[name] = failures + 1, now + pause
            if isinstance(error, SchemaMismatch):
                # No defect of ours: the tables are gone, and the message says what to do.
                log.error("%s failed; it is tried again in %g s: %s", name, pause, error)
            else:
                log.exception("%s failed; it is tried again in %g s", name, pause)
            return pause
        self._failed.pop(name, None)
        return wait

    def _steer_workflows(self) -> float:
        self._steering.round()
        return inf

    def _tend(self) -> float:
        self._store.tend()
        return inf

    def _promote(self) -> float:
        due = self._store.run(
            timing.next_due(self._refused.keys, careful="promote" in self._careful)
        )
        self._told_time(due.now)
        if due.at is None:
            return self._options.poll
        if due.at > due.now:
            return (due.at - due.now) / 1_000_000
        while True:
            found = self._batch(timing.promote, timing.first_due, "promote").written
            if found:
                self._promoted()
            if found < timing.BATCH:
                # Due and not met: another transaction holds it.
                return 0.0 if found else _LOOK_AGAIN * 4

    def _expire(self) -> float:
        # A look, because an idle worker should not write: on SQLite that needs a turn.
        if self._store.run(timing.first_expired(self._refused.keys)) is None:
            return inf
        expired = 0
        while True:
            met = self._batch(timing.expire, timing.first_expired, "expire")
            expired += len(met)
            if met.written < timing.BATCH:
                break
        if expired:
            log.info("%d task(s) expired: nobody claimed them before their good_until", expired)
        return inf

    def _batch(self, verb: Verb, first: First, doing: str) -> Met:
        """Apply a verb to a batch.

        If the store refuses the batch, one by one: the row that it refuses is set aside. So, too,
        if another transaction holds a row that one of them has to write; that one is passed over.
        """
        try:
            careful = doing in self._careful
            return self._store.attempt(lambda: verb(aside=self._refused.keys, careful=careful))
        except RowRefused:
            pass
        except StoreUnavailable as error:
            if not error.locked:
                raise
        met, refused = Met((), written=0), 0
        held: list[Key] = []
        for _ in range(_ONE_BY_ONE):
            passed_over = [*self._refused.keys, *held]
            key = self._store.run(first(passed_over))
            if key is None:
                break
            try:
                done = self._store.attempt(
                    lambda: at_once(verb(1, aside=passed_over))  # noqa: B023
                )
                met += done
                met.written += done.written
                if not done.written:
                    # Somebody else met it: others come behind it.
                    held.append(key)
            except RowRefused as error:
                self._refused.add(key, error, doing)
                refused += 1
            except StoreUnavailable as error:
                if not error.locked:
                    raise
                held.append(key)
        if refused > _MOST_REFUSED:
            self._careful.add(doing)
        return met

    def _recover(self) -> float:
        gap_us = round(self._options.gap * 1_000_000)
        outlook = self._store.run(leases.outlook())
        if not outlook.leases:
            return inf
        may = outlook.may_recover(gap_us)
        if may is None:
            may = self._store.attempt(lambda: leases.may_recover(gap_us))
        if not may or not outlook.expired:
            return inf
        now = self._clock()
        self._put_off = {token: until for token, until in self._put_off.items() if until > now}
        # Whoever holds one keeps its owner from renewing it, who needs a moment afterwards.
        patience = max(self._options.gap, leases.KEEPERS_NEED_US / 1_000_000)
        held = self._store.attempt(leases.held)
        self._put_off |= dict.fromkeys(held, now + patience)
        # Those that failed a moment ago come last.
        tried: list[bytes] = list(self._put_off)
        decided: dict[bytes, tuple[Abandoned, Change]] = {}

        def decide_about(task: Abandoned) -> Change:
            change = abandoned(task)
            decided[task.id] = task, change
            return change

        while self._store.attempt(lambda: leases.may_recover(gap_us)):
            decided.clear()
            try:
                done = self._store.attempt(
                    lambda: at_once(
                        leases.recover(
                            decide_about, tried=tried, aside=self._refused.keys, gap_us=gap_us
                        )
                    )
                )
            except StoreUnavailable as error:
                if not error.locked or not self._pass_over(tried):
                    raise
                continue
            except RowRefused as error:
                if not self._recover_singly(decide_about, tried, error):
                    raise
                continue
            if done is None:
                return inf
            tried.append(done.token)
            if done.unreadable is not None:
                log.error(
                    "INVALID_ROW: the lease %s of worker %s could not be read and is deleted; its "
                    "tasks are found by the audit",
                    one_line(done.unreadable, 100),
                    one_line(done.worker_id, 100),
                )
            if done.released or done.recovered:
                log.warning(
                    "worker %s vanished: %d of its tasks recovered, %d unstarted ones released",
                    one_line(done.worker_id),
                    done.recovered,
                    done.released,
                )
                for task, change in decided.values() if done.recovered else ():
                    policy = Policy.decode(task.task_options)
                    self._task_log.recovered(task, task.attempt, change, policy)
                self._promoted()
        return inf

    def _pass_over(self, tried: list[bytes]) -> bool:
        """Another transaction holds a row that recovering a lease would write: the next one, then.

        False if there is none.
        """
        found = self._store.attempt(lambda: leases.expired(tried))
        if found is None:
            return False
        tried.append(found[0])
        return True

    def _recover_singly(
        self, decide_about: Callable[[Abandoned], Change], tried: list[bytes], error: RowRefused
    ) -> bool:
        """The store refused to have a lease recovered: its tasks one by one.

        What is refused alone is set aside, and the lease is put off; False if there is none.
        """
        found = self._store.attempt(lambda: leases.expired(tried))
        if found is None:
            return False
        token, keys = found
        log.warning("a lease is recovered task by task: %s", one_line(str(error), 300))
        for key in keys:
            others = {*keys, *self._refused.keys} - {key}
            try:
                self._store.attempt(
                    lambda others=others: leases.recover(  # type: ignore[misc]
                        decide_about, tried=tried, aside=others
                    )
                )
            except RowRefused as refused:
                self._refused.add(key, refused, "recover")
        tried.append(token)
        self._put_off[token] = self._clock() + _LONGEST_REST
        return True


def abandoned(task: Abandoned) -> Change:
    """What becomes of a task whose worker is gone: the same as after a crash of its child."""
    return decide(task, Crashed(), Policy.decode(task.task_options), random.random)
