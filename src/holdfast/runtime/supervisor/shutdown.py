"""The way to stop: first nothing new, then patience, then each task's own policy.

    a first SIGTERM or SIGINT   claims nothing more, gives back what has not begun; what runs has
                                `grace` seconds to end by itself
    after the grace             `resubmit` tasks are interrupted (no retry spent), `stop` tasks end
                                as STALLED, `continue` tasks are waited for
    a second signal             the grace is over now, for `continue` tasks too
    a third signal              children are killed; leases bring the tasks back

Owns the phases. Signal handlers only count; everything happens in the supervisor's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from holdfast.runtime.supervisor.children.pool import Crew
from holdfast.runtime.supervisor.duties.time_limits import Watcher
from holdfast.runtime.supervisor.state.ledger import Desk
from holdfast.runtime.wire.messages import Withdraw

log = logging.getLogger("holdfast.worker")


class Shutdown:
    """Advanced by `step` from the supervisor's own thread."""

    def __init__(
        self, desk: Desk, crew: Crew, watcher: Watcher, *, announce: Callable[[], None]
    ) -> None:
        self._desk = desk
        self._crew = crew
        self._watcher = watcher
        self._announce = announce
        self._signals = 0
        self._begun_at: float | None = None
        self._hurried = False
        self.forced = False
        """Whether children had to be killed without asking."""

    def ask(self) -> None:
        """One more wish to stop; safe in a signal handler."""
        self._signals += 1

    @property
    def asked(self) -> bool:
        return self._signals > 0

    def step(self) -> bool:
        """Do what this moment asks for; True when nothing is left in hand."""
        if not self._signals:
            return False
        if self._begun_at is None:
            self._begin()
        if self._signals >= 3 and not self.forced:
            self.forced = True
            log.warning("stopping at once: children are killed")
            with self._desk.lock:
                self._crew.closing = True
                self._crew.kill_all()
            return True
        late = monotonic() - (self._begun_at or 0.0) >= self._desk.options.grace
        hurry = self._signals >= 2
        if (late or hurry) and not self._hurried:
            self._hurried = hurry
            self._apply_policies(hurry)
        with self._desk.lock:
            return self._desk.is_idle

    def _begin(self) -> None:
        self._begun_at = monotonic()
        with self._desk.lock:
            self._desk.accepting = False
            running, claimed = self._desk.counts()
            for member in self._desk.members.values():
                begun = {entry.slot for entry in member.board.begun()}
                waiting = [s for s, a in member.hand.items() if s not in begun and a.started]
                if waiting:
                    member.say(Withdraw(waiting))
            self._desk.stir()
        log.info(
            "stopping: %d running task(s) have %g s to end, %d claimed one(s) go back; "
            "a second signal interrupts what runs",
            running,
            self._desk.options.grace,
            claimed,
        )
        self._announce()

    def _apply_policies(self, hurry: bool) -> None:
        with self._desk.lock:
            running = list(self._desk.assignments.values())
        for assignment in running:
            if assignment.started and (hurry or assignment.policy.on_shutdown != "continue"):
                self._watcher.doom(assignment, "shutdown")
