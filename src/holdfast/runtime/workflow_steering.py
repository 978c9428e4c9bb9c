"""Going on with what was begun with whole workflows, a part at a time.

Owns what any worker does for workflows that somebody has cancelled, paused, resumed or resubmitted,
whose deadline has passed, or that stopped at a failure: their steps follow in small transactions.
Whoever said so does the same; this is for the case that nobody did, or that he has gone.

One that cannot be steered keeps no other waiting: all of them are looked at, in pages. A whole that
rests (it waits for a cleanup, or is paused over the weekend) is looked at each time for a while,
and then ever more seldom; what is done to it as a whole wakes it. So ten thousand of them cost
little.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.core.errors import StoreUnavailable
from holdfast.core.identity import as_text
from holdfast.core.pause import growing
from holdfast.core.text import one_line
from holdfast.store.op import Op, at_once
from holdfast.store.protocol import Store
from holdfast.store.verbs import cancel, dependents, resubmits, steering
from holdfast.store.verbs.steering import Tended

__all__ = ["WorkflowSteering"]

log = logging.getLogger("holdfast.worker")

_OFTEN: Final = 10
"""Looks at which there was nothing to do before a workflow is looked at more seldom."""
_FIRST_REST: Final = 2.0
_LONGEST_REST: Final = 30.0
_MOST_NAMED: Final = 50
"""Workflows of which it is said that they cannot go on."""


@dataclass(slots=True)
class _Rest:
    """How often there was nothing to do for a workflow since it was steered, and until when it is
    left alone."""

    steered_at: object
    quiet: int = 0
    until: float = 0.0


class WorkflowSteering:
    """Call `round` from one thread only."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._rests: dict[bytes, _Rest] = {}
        self._named: set[bytes] = set()
        self._done = 0

    def round(self) -> int:
        """Look at all that need somebody; how much was done."""
        self._done = 0
        seen: dict[bytes, _Rest] = {}
        if not self._store.run(steering.is_needed()):
            self._rests = seen
            return 0
        after: bytes | None = bytes(16)
        while after is not None:
            needs = self._store.run(steering.tended(after))
            seen |= self._page(needs)
            after = needs.next
        self._rests = seen
        self._done += self._to_the_end(steering.resolve_later)
        self._done += self._to_the_end(cancel.cancel_added)
        return self._done

    def _page(self, needs: Tended) -> dict[bytes, _Rest]:
        for whole in needs.late:
            self._steer(whole, partial(self._end_late, whole))
        now = self._clock()
        rests = {
            whole: self._rest(whole, needs.steered_at[whole])
            for whole in (*needs.stopping, *needs.paused)
        }
        for whole in dict.fromkeys((*needs.late, *needs.stopping)):
            self._unless_resting(whole, rests.get(whole), now, partial(steering.stop_some, whole))
        for whole in needs.resubmitting:
            self._steer(whole, partial(self._to_the_end, partial(resubmits.go_on, whole)))
        for whole in needs.resumed:
            self._steer(whole, partial(self._to_the_end, partial(steering.release_some, whole)))
        awake = [whole for whole in needs.paused if rests[whole].until <= now]
        unheld = self._store.run(steering.unheld(awake)) if awake else ()
        for whole in awake:
            hold = partial(dependents.hold, whole)
            if whole in unheld:
                self._unless_resting(whole, rests[whole], now, hold)
            else:
                self._looked(rests[whole], 0, now)
        return rests

    def _rest(self, whole: bytes, steered_at: object) -> _Rest:
        known = self._rests.get(whole)
        return known if known and known.steered_at == steered_at else _Rest(steered_at)

    def _unless_resting(
        self, whole: bytes, rest: _Rest | None, now: float, some: Callable[[], Op[int]]
    ) -> None:
        if rest is not None and rest.until > now:
            return
        done = self._steer(whole, partial(self._to_the_end, some))
        if rest is not None:
            self._looked(rest, done, now)

    def _looked(self, rest: _Rest, done: int, now: float) -> None:
        rest.quiet = 0 if done else rest.quiet + 1
        if rest.quiet > _OFTEN:
            rest.until = now + growing(_FIRST_REST, rest.quiet - _OFTEN - 1, _LONGEST_REST)

    def _steer(self, whole: bytes, act: Callable[[], int]) -> int:
        """One that cannot be steered must not keep the others waiting."""
        try:
            done = act()
        except StoreUnavailable as error:
            if not error.locked:
                raise
            return 1
        except Exception as error:  # noqa: BLE001 - somebody may have written its rows by hand
            if len(self._named) < _MOST_NAMED and whole not in self._named:
                self._named.add(whole)
                shown = one_line(str(error), 500)
                log.error("workflow %s cannot go on: %s", as_text(whole), shown)
            return 0
        self._done += done
        return done

    def _end_late(self, whole: bytes) -> int:
        ended = self._store.run(steering.end_late(whole))
        if ended:
            log.warning("the deadline of workflow %s has passed", as_text(whole))
        return int(ended)

    def _to_the_end(self, some: Callable[[], Op[int]]) -> int:
        total = 0
        while done := self._store.run(at_once(some())):
            total += done
        return total
