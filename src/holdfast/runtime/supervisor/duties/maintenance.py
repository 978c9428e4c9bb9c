"""Maintenance: what any worker does for the whole store.

Promotes what is due, expires what is too late, recovers what a vanished worker left,
forgets what is old. Every worker may; the rows decide who does. Each step is one short
transaction, and one that fails costs only itself.

Recovery comes last after an outage: the owners of leases that ran out meanwhile live, and
renew as soon as they are let in (the gap rule, see `store.leases`).

The next due task sets a timer, so that a delayed task starts at its time and not at the
next poll.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from math import inf

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Change, Crashed, decide
from holdfast.core.text import one_line
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.lease_keeper import uptime
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.task_log import TaskLog
from holdfast.store.protocol import Store
from holdfast.store.verbs import leases, timing
from holdfast.store.verbs.leases import Abandoned

log = logging.getLogger("holdfast.worker")

_LOOK_AGAIN = 0.05
"""Seconds between two looks at what is due next, however many hints come."""


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
        except StoreError:
            log.exception("maintenance failed; it is tried again")
            return self._options.poll

    def _round(self, now: float) -> float:
        wait = self._promote()
        if now >= self._expire_at:
            self._expire_at = now + self._options.poll * random.uniform(0.5, 1.0)
            while len(self._store.attempt(timing.expire)) == timing.BATCH:
                pass
        if now >= self._recover_at:
            self._recover_at = now + min(self._options.gap / 3, 1.0)
            self._recover()
            self._store.tend()
        return min(wait, self._expire_at - now, self._recover_at - now)

    def _promote(self) -> float:
        due = self._store.run(timing.next_due())
        self._told_time(due.now)
        if due.at is None:
            return self._options.poll
        if due.at > due.now:
            return (due.at - due.now) / 1_000_000
        while True:
            found = self._store.attempt(timing.promote)
            if found:
                self._promoted()
            if len(found) < timing.BATCH:
                return 0.0

    def _recover(self) -> None:
        gap_us = round(self._options.gap * 1_000_000)
        if not self._store.run(leases.count()):
            return
        tried: list[bytes] = []
        decided: dict[bytes, tuple[Abandoned, Change]] = {}

        def decide_about(task: Abandoned) -> Change:
            change = abandoned(task)
            decided[task.id] = task, change
            return change

        while self._store.attempt(lambda: leases.may_recover(gap_us)):
            decided.clear()
            done = self._store.attempt(
                lambda: leases.recover(decide_about, tried=tried, gap_us=gap_us)
            )
            if done is None:
                return
            tried.append(done.token)
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


def abandoned(task: Abandoned) -> Change:
    """What becomes of a task whose worker is gone: the same as after a crash of its child."""
    return decide(task, Crashed(), Policy.decode(task.task_options), random.random)
