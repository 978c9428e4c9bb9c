"""The scheduler: fires what is due, in every worker; there is no leader.

Owns the moment. It sleeps until the next tick of any schedule, by the database's clock, and is
woken when a schedule changes, and while a tick waits for its prior run by the end of one that ran
here; ends elsewhere are looked for. Who fires a tick, and whether at all, is decided in the store,
under the lock of the schedule's row: of eight workers that wake at once, one does. A schedule that
cannot be fired, because its row was written by hand or the store refuses it, is left alone for a
while; the others go on.

Owns also what the code of this worker declares, which it brings into force at its start, and looks
after while it lives.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic
from typing import Final

from holdfast.core.errors import StoreUnavailable
from holdfast.core.moment import from_us
from holdfast.core.pause import growing
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.cursor import PATIENCE
from holdfast.runtime.wire.messages import KnownSchedule
from holdfast.store.op import at_once
from holdfast.store.protocol import Store
from holdfast.store.verbs import declarations, ticks
from holdfast.store.verbs.declarations import Declared
from holdfast.store.verbs.ticks import Fired

log = logging.getLogger("holdfast.worker")

_WAITING: Final = 0.25
"""Seconds between looks whether the prior run has ended for which some tick waits: it may end by
another hand than a worker's, or be a workflow."""
_AT_ONCE: Final = 20
"""Schedules that are fired in one transaction."""
_HELD: Final = 0.05
_SETTLE_EVERY: Final = 10.0
_AGAIN: Final = 1.0
_LONGEST_REST: Final = 60.0


def known(schedules: Sequence[KnownSchedule]) -> list[ScheduleDefinition]:
    """The schedules of a manifest."""
    names = KnownSchedule.__struct_fields__
    return [ScheduleDefinition(**{n: getattr(each, n) for n in names}) for each in schedules]


class Scheduler:
    """A duty: call `tick` from one thread only."""

    name = "scheduler"

    def __init__(
        self,
        store: Store,
        outage: Outage,
        *,
        worker_id: str,
        declared: Sequence[ScheduleDefinition],
        poll: float,
        settle_every: float = _SETTLE_EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._outage = outage
        self._worker_id = worker_id
        self._declared: Mapping[str, ScheduleDefinition] = {each.name: each for each in declared}
        self._hashes = {name: each.config_hash for name, each in self._declared.items()}
        self._poll = poll
        self._settle_every = settle_every
        self._clock = clock
        self._settle_at = -inf
        self._aside: dict[str, tuple[float, int, str | None]] = {}
        """Schedules that are left alone: until when, how often in a row, and why."""
        self._said: set[tuple[str, Declared]] = set()
        self.awaits_run = False
        """Whether some tick waits for its prior run, so that the end of one is worth a look."""

    def tick(self) -> float:
        """Fire what is due; how long until something may be due again."""
        if self._outage.is_on:
            return _HELD * 4
        try:
            if self._clock() >= self._settle_at:
                self._settle_at = self._clock() + self._settle_every * random.uniform(0.75, 1.0)
                self._settle()
            return self._fire_due()
        except StoreUnavailable as error:
            if not error.locked:
                self._outage.noted(error)
            return _HELD * 4

    def _fire_due(self) -> float:
        now = self._clock()
        aside = {name for name, (until, *_) in self._aside.items() if until > now}
        due = self._store.run(ticks.due(aside))
        names = list(due.names)
        self.awaits_run = due.is_waiting
        # So that several workers do not queue up for the same rows.
        random.shuffle(names)
        held = False
        for first in range(0, len(names), _AT_ONCE):
            held |= not self._fire_some(names[first : first + _AT_ONCE])
        wait = self._poll * random.uniform(0.75, 1.25)
        if due.next_us is not None:
            wait = min(wait, (due.next_us - due.now) / 1_000_000)
        if due.is_waiting:
            wait = min(wait, max(_WAITING, PATIENCE * (self._clock() - now)))
        if names:
            # What was fired has another next tick now.
            wait = 0.0
        return max(wait, _HELD if held else 0.001)

    def _fire_some(self, names: Sequence[str]) -> bool:
        """Fire several in one transaction, or, if that cannot be, each by itself; False if somebody
        else is at one of them."""
        if len(names) > 1:
            try:
                found = self._store.attempt(
                    lambda: at_once(ticks.fire_some(names, self._declared.keys()))
                )
            except StoreUnavailable as error:
                if not error.locked:
                    raise
            except Exception as error:  # noqa: BLE001 - which of them it is, and why, is said below
                log.debug("schedules are fired one by one: %s", one_line(str(error), 300))
            else:
                return False not in [self._fired(*each) for each in found.items()]
        return False not in [self._fire(name) for name in names]

    def _fire(self, name: str) -> bool:
        """Fire one schedule; False if somebody else is at it."""
        try:
            done = self._store.attempt(
                lambda: at_once(ticks.fire(name, declared_here=name in self._declared))
            )
        except StoreUnavailable as error:
            if not error.locked:
                raise
            # Another transaction holds something that it has to write; the others need not.
            return False
        except Exception as error:  # noqa: BLE001 - one row must not keep the others from firing
            self._leave_alone(name, f"cannot be fired: {error}")
            return True
        return self._fired(name, done)

    def _fired(self, name: str, done: Fired | None) -> bool:
        """Take note of what came of one schedule; False if somebody else is at it."""
        if done is None:
            return False
        if done.is_undeclared:
            self._settle_at = -inf
            self._leave_alone(name, None)
            return True
        self._aside.pop(name, None)
        self._say(name, done)
        return True

    def _leave_alone(self, name: str, why: str | None) -> None:
        _, times, before = self._aside.get(name, (0.0, 0, None))
        rest = growing(_AGAIN, times, _LONGEST_REST)
        self._aside[name] = self._clock() + rest, times + 1, why
        if why is not None and why != before:
            shown = one_line(name, 100)
            log.error("schedule %s %s; it is tried again and again", shown, one_line(why, 500))

    def _say(self, name: str, done: Fired) -> None:
        for run in done.runs:
            log.debug("schedule %s: fired its tick of %s", name, from_us(run.tick).isoformat())
        if done.dropped:
            log.warning(
                "schedule %s: %s tick(s) dropped, because they were missed or the prior run has "
                "not ended (holdfast schedules history %s)",
                name,
                f"{done.dropped:,}",
                name,
            )

    def _settle(self) -> None:
        """Bring into force what our code declares, and stop what nobody's does any more."""
        if self._declared:
            self._store.run(declarations.announce(self._worker_id, self._hashes))
        anew, gone = self._store.run(declarations.unsettled(self._declared))
        for name in anew:
            definition = self._declared[name]
            self._told(name, self._store.attempt(lambda d=definition: declarations.declare(d)))  # type: ignore[misc]
        for name in gone:
            if self._store.attempt(lambda n=name: declarations.stop(n)):  # type: ignore[misc]
                log.warning(
                    "schedule %s has stopped: no live worker declares it any more", one_line(name)
                )

    def _told(self, name: str, came: Declared) -> None:
        if came in (Declared.SAME, Declared.YIELDED):
            return
        if came is not Declared.TAKEN:
            log.info("schedule %s, as our code declares it: %s", name, came.value)
        elif (name, came) not in self._said:
            self._said.add((name, came))
            log.error(
                "schedule %s is declared by our code, and one of that name was added at run time, "
                "which stays in force: delete it (holdfast schedules delete %s), or rename one",
                name,
                name,
            )
