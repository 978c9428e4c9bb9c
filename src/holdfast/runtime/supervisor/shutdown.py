"""The way to stop: first nothing new, then patience, then each task's own policy.

    a first SIGTERM or SIGINT   claims nothing more, gives back what has not begun; what runs has
                                `grace` seconds to end by itself
    after the grace             `resubmit` tasks are interrupted (no retry spent), `stop` tasks end
                                as STALLED, `continue` tasks are waited for; what cannot be written
                                because another transaction holds its row is left to its lease;
                                what cannot be written because the store is away, too, after
                                `kill_grace` and five seconds
    a second signal             the grace is over now, for `continue` tasks too
    a third signal              children are killed; leases bring the tasks back
    an order to drain           as a first signal, but without an end of the grace; a signal, or a
                                stronger order, makes it an ordinary stop
    when nothing is in hand     children leave by themselves, with their exit functions

Owns the phases. Signal handlers only count; everything happens in the supervisor's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.duties.time_limits import end_run
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Withdraw
from holdfast.store.verbs.workers import WorkerOrder

log = logging.getLogger("holdfast.worker")

_STEP = 0.01
_AWAY_PATIENCE = 5.0
"""Seconds beyond `kill_grace` for which a store that is away is waited for: less than what service
managers are told to wait."""


class Shutdown:
    """Advanced by `step` from the supervisor's own thread."""

    def __init__(
        self, ledger: Ledger, pool: ChildPool, outage: Outage, *, announce: Callable[[], None]
    ) -> None:
        self._ledger = ledger
        self._outage = outage
        self._pool = pool
        self._announce = announce
        self._signals = 0
        self._draining = False
        self._begun_at: float | None = None
        self._stopping_at: float | None = None
        """From when the grace counts: while it only drains, there is none."""
        self._late_at: float | None = None
        """Since when only the store is waited for."""
        self._hurried = False
        self.forced = False
        """Whether children had to be killed without asking."""
        self.gave_up = False
        """Whether outcomes could not be written."""

    def ask(self) -> None:
        """One more wish to stop; safe in a signal handler."""
        self._signals += 1

    def obey(self, order: WorkerOrder) -> None:
        """The same as an order of an operator; a weaker one than was given changes nothing."""
        if order is WorkerOrder.DRAIN:
            self._draining = True
        else:
            self._signals = max(self._signals, 1 if order is WorkerOrder.STOP else 2)

    @property
    def asked(self) -> bool:
        return self._signals > 0 or self._draining

    def step(self) -> bool:
        """Do what this moment asks for; True when nothing is left in hand."""
        if not self.asked:
            return False
        if self._begun_at is None:
            self._begin()
        if not self._signals:
            return self._ledger.is_idle
        if self._stopping_at is None:
            self._stop()
        if self._signals >= 3 and not self.forced:
            self.forced = True
            log.warning("stopping at once: children are killed")
            self._pool.kill_all()
            return True
        late = monotonic() - (self._stopping_at or 0.0) >= self._ledger.options.grace
        hurry = self._signals >= 2
        if (late or hurry) and not self._hurried:
            self._hurried = hurry
            self._apply_policies(hurry)
        if self._ledger.is_idle:
            return True
        held_up = self._ledger.held_up if late or hurry else 0
        if held_up:
            log.warning(
                "stopping although the end of %d task(s) is not written, because other "
                "transactions hold their rows: they are recovered when their leases end",
                held_up,
            )
        return held_up > 0 or self._gives_up(late=late or hurry)

    def _gives_up(self, *, late: bool) -> bool:
        """Whether to stop waiting for a store that is away, when no code runs any more."""
        if not late or not self._outage.is_unsettled or self._ledger.assignments():
            return False
        if self._late_at is None:
            self._late_at = monotonic()
        if monotonic() - self._late_at < self._ledger.options.kill_grace + _AWAY_PATIENCE:
            return False
        self.gave_up = True
        log.error(
            "stopping although the store is away: how %d run(s) ended is not written, so these "
            "tasks run again when their leases end",
            len(self._ledger.outcomes),
        )
        return True

    def let_leave(self, patience: float) -> None:
        """Have idle children end as Python processes do, with their exit functions.

        Not indefinitely, and not if a second signal asks for haste: what is left is killed.
        """
        deadline, hurried = monotonic() + patience, self._signals
        self._pool.leave()
        while (
            not self.forced
            and self._signals == hurried
            and any(child.is_ready for child in self._ledger.roster.all())
            and monotonic() < deadline
        ):
            self._ledger.roster.wait(_STEP)

    def _begin(self) -> None:
        self._begun_at = monotonic()
        running, claimed = self._ledger.stop_accepting()
        for child in self._ledger.roster.all():
            waiting = child.waiting({entry.slot for entry in child.page.begun()})
            if waiting:
                child.say(Withdraw(waiting))
        self._announce()
        if not self._signals:
            log.info(
                "draining: %d running task(s) may take as long as they need, %d claimed one(s) go "
                "back; then the worker ends",
                running,
                claimed,
            )
            return
        self._stop(running, claimed)

    def _stop(self, running: int | None = None, claimed: int = 0) -> None:
        self._stopping_at = monotonic()
        log.info(
            "stopping: %d running task(s) have %g s to end, %d claimed one(s) go back; "
            "a second signal interrupts what runs",
            self._ledger.counts()[0] if running is None else running,
            self._ledger.options.grace,
            claimed,
        )

    def _apply_policies(self, hurry: bool) -> None:
        for assignment in self._ledger.assignments():
            if assignment.started and (hurry or assignment.policy.on_shutdown != "continue"):
                end_run(self._ledger, assignment, "shutdown")
