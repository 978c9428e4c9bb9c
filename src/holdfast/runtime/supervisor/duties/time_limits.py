"""The watch over time limits of running code.

Owns the ending of code that runs: for its timeout, its silence, a cancel, a shutdown, or a
lost lease. A process child is told by SIGTERM, for which the shared page says which task is meant
(so a child that has just gone on to the next one ignores it), and after `kill_grace` its
whole process group is killed. Children of the other kinds are told by message, and when that
does not help they are replaced; their other tasks are interrupted at no cost.

It also sees to it that no short task waits behind a long one: what has not begun in a child
that is stuck is taken back.

Durations are counted from when the code began, on the monotonic clock both sides share; what a
child says about that is believed once. While a coroutine keeps an event loop to itself, the time
of its neighbours does not count (`blocked_loop`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic, monotonic_ns

from holdfast.core.outcome import Why
from holdfast.runtime.supervisor.children import blocked_loop
from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.process_usage import megabytes
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import Withdraw

log = logging.getLogger("holdfast.worker")

_BUSY_TICK = 0.05
_IDLE_TICK = 0.25
_SLOW_S = 0.05
_SLOW_TIMES = 3
"""A run is slow that takes longer than this, and so many times what was expected."""
_MEMORY_EVERY = 1.0

_WORDS: dict[Why, str] = {
    "cancel": "is cancelled",
    "timeout": "has run into its timeout",
    "silence": "has given no heartbeat for too long",
    "shutdown": "is interrupted by the shutdown",
    "lost": "has lost its lease",
}


class TimeLimits:
    """A duty: call `tick` from one thread only."""

    name = "time_limits"

    def __init__(
        self, ledger: Ledger, pool: ChildPool, *, judge: Callable[[], None] = lambda: None
    ) -> None:
        self._ledger = ledger
        self._pool = pool
        self._judge = judge
        """The keeper's question whether code may go on, which cannot wait for the keeper."""
        self._memory_at = 0.0

    def tick(self) -> float:
        """Look at everything that runs."""
        self._judge()
        busy = False
        self._pool.fill()
        self._pool.end_late_starts()
        for child in self._ledger.roster.all():
            if child.hand:
                busy = True
                self._look(child)
            if child.state is ChildState.LEAVING and not child.hand:
                self._pool.retire(child)
        self._check_memory()
        return _BUSY_TICK if busy else _IDLE_TICK

    def _look(self, child: ChildHandle) -> None:
        now = monotonic()
        begun = _begun(child, now)
        if child.kind == "async":
            blocked_loop.excuse(child, begun, now)
        for assignment in list(child.hand.values()):
            ran = begun.get(assignment.slot)
            if assignment.told_to_end is not None:
                self._kill_if_late(assignment, now)
            elif ran is not None:
                why = _overdue(assignment, ran - assignment.excused, now)
                if why is not None:
                    end_run(self._ledger, assignment, why)
            elif assignment.wanted_gone and assignment.started:
                child.say(Withdraw([assignment.slot]))
        if (
            child.kind == "process"
            and (not child.slow or len(child.hand) > len(begun))
            and any(_is_slow(child.hand.get(slot), ran) for slot, ran in begun.items())
        ):
            # Its current task is longer than was thought: take back what waits behind it.
            waiting = self._ledger.roster.found_slow(child, begun)
            if waiting:
                child.say(Withdraw(waiting))

    def _kill_if_late(self, assignment: Assignment, now: float) -> None:
        """What was told to end and has not."""
        child = assignment.child
        if assignment.killed or now - assignment.told_to_end_at < self._ledger.options.kill_grace:
            return
        if assignment.slot not in _begun(child, now):
            return
        assignment.killed = True
        log.warning(
            "%s did not end within %g s; %s is killed",
            named(assignment.task),
            self._ledger.options.kill_grace,
            child.name,
        )
        self._pool.kill(child, on_purpose=True)

    def _check_memory(self) -> None:
        """Retire children that have grown too large."""
        limit = self._ledger.options.max_memory_per_child
        if limit is None or monotonic() < self._memory_at:
            return
        self._memory_at = monotonic() + _MEMORY_EVERY
        for child in self._ledger.roster.ready():
            if megabytes(child.pid) > limit:
                log.info("%s has grown over %d MB and is replaced", child.name, limit)
                self._pool.retire(child)


def end_run(ledger: Ledger, assignment: Assignment, why: Why) -> None:
    """Tell a task's code to end (any thread)."""
    if not ledger.tell_to_end(assignment, why):
        return
    log.log(
        # The outcome is logged when it is written; a lost run writes none, so log it here.
        logging.WARNING if why == "lost" else logging.DEBUG,
        "%s %s and is ended",
        named(assignment.task),
        _WORDS[why],
    )


def _begun(child: ChildHandle, now: float) -> dict[int, float]:
    """For how long the tasks of a child have run, by their slots."""
    now_ns = monotonic_ns()
    found: dict[int, float] = {}
    for slot, at_ns in child.page.begun():
        assignment = child.hand.get(slot)
        if assignment is None:
            continue
        if not assignment.begun_at:
            # Not before it was given, and not later than now, whatever is written there.
            since = now - (now_ns - at_ns) / 1e9
            assignment.begun_at = min(max(since, assignment.given_at), now)
        found[slot] = now - assignment.begun_at
    return found


def _is_slow(assignment: Assignment | None, ran: float) -> bool:
    if assignment is None:
        return False
    return ran > max(_SLOW_S, _SLOW_TIMES * assignment.cost_us / 1_000_000)


def _overdue(assignment: Assignment, ran: float, now: float) -> Why | None:
    policy = assignment.policy
    if assignment.wanted_gone:
        return "cancel"
    if policy.timeout is not None and ran > policy.timeout:
        return "timeout"
    interval = policy.max_heartbeat_interval
    if interval is not None and min(ran, now - assignment.beat_at) > interval:
        return "silence"
    return None
