"""The walk from key to key as one worker remembers it: where its turns go on, and when it rests.

A claim meets a bounded number of keys. As long as none of them has anything to give, claims go on
one behind the other until all keys have been met: a *round*. Then nothing is looked for before the
first of all rates that were met lets something begin, or a slot comes free. A round over very many
keys takes long, so it is not made again at every poll, and after one that took long hints have to
wait as long again: what cannot be claimed costs half of the time at most.
"""

from __future__ import annotations

from typing import Final

from holdfast.runtime.supervisor.state.cursor import PATIENCE
from holdfast.store.verbs.key_walk import KeyPlace
from holdfast.store.verbs.limited_claims import LimitedClaim

_LONG: Final = 0.05
"""Seconds; hints wait after a round that took longer."""


class KeyRounds:
    """Of one source. Times are the caller's monotonic clock."""

    def __init__(self) -> None:
        self.place = KeyPlace()
        """Where the next claim goes on."""
        self.is_held_back = False
        """Whether limits held back some of what this round has met."""
        self.until: float | None = None
        """When the first of its rates lets something begin."""
        self.poll_not_before = 0.0
        """Until then a round that nobody has asked for is not worth its time."""
        self.hint_not_before = 0.0
        """The same of one that a hint asks for; 0: it is."""
        self._took = 0.0

    def met(self, found: LimitedClaim, took: float, now: float, *, is_held_back: bool) -> None:
        """A claim has met some keys, and took so many seconds."""
        if self.place.round_from is None:
            self.is_held_back, self.until, self._took = False, None, 0.0
        self.place = found.place
        self._took += took
        self.is_held_back |= is_held_back
        at = found.next_at(now)
        if at is not None:
            self.until = at if self.until is None else min(self.until, at)

    def anew(self) -> None:
        """Something came meanwhile, and may have a key that this round has met already."""
        self.place = self.place.anew()

    def over(self, now: float) -> None:
        """All keys have been met, and there was not enough to claim."""
        self.poll_not_before = now + PATIENCE * self._took
        self.hint_not_before = now + self._took if self._took > _LONG else 0.0
