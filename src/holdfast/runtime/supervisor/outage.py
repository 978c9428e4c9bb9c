"""The store is away: noticing it, saying so once, and trying again without haste.

Owns the difference between an outage and a partition. While the server *answers that it
cannot serve*, nobody can take our leases, and code goes on for as long as `outage_grace`.
While it is *silent*, others may be served, and the keeper stops code before its lease ends.
"""

from __future__ import annotations

import logging
import random
import threading
from math import inf
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.core.pause import growing

log = logging.getLogger("holdfast.worker")

_FIRST_PAUSE = 0.05
_SAY_EVERY = 5.0
_BELIEVED_AFTER = 2.0
"""For how long it must be over to be called over. A full disk still takes small writes, or none."""


class Outage:
    """Shared by all threads that use the store."""

    def __init__(self, longest_pause: float) -> None:
        self._longest = longest_pause
        self._lock = threading.Lock()
        self._since: float | None = None
        self.is_on = False
        """Whether the last that was heard of the store was a failure."""
        self.is_unsettled = False
        """Whether there was a failure, and it has not been said that it is over. If not, nobody
        needs to say that the store could be used."""
        self._said_at = -inf
        self._failures = 0
        self._over = threading.Event()
        self._ended_at = -inf
        self._said_since: float | None = None
        """Since when it has been away, in the words of the log."""
        self._returned = False
        self.silent = False

    @property
    def lasted(self) -> float:
        """For how many seconds it has been away."""
        since = self._since
        return 0.0 if since is None else monotonic() - since

    @property
    def over_for(self) -> float:
        """For how many seconds it has been over; 0 while it is on."""
        return 0.0 if self.is_on else monotonic() - self._ended_at

    def noted(self, error: StoreUnavailable) -> None:
        """The store could not be used. (It could if only a lock was in the way.)"""
        if error.locked:
            self.over()
            return
        now = monotonic()
        with self._lock:
            if self._since is None:
                self._since = now
                self.is_on = self.is_unsettled = True
                self._returned = now - self._ended_at < _BELIEVED_AFTER
                self._over.clear()
            if self._said_since is None:
                self._said_since = now
            lasted = now - self._said_since
            self._failures += 1
            self.silent = error.silent
            say = now - self._said_at >= _SAY_EVERY
            if say:
                self._said_at = now
        if say:
            log.warning("the store is away (%.0f s): %s", lasted, error)

    def over(self) -> None:
        """The store could be used."""
        if self._since is None:
            if self._said_since is not None:
                self.settle()
            return
        with self._lock:
            self._since = None
            self.is_on = False
            self._ended_at = monotonic()
            self.silent = False
            self._over.set()

    def settle(self) -> None:
        """Say that it is over, once that has lasted; called now and then."""
        with self._lock:
            since = self._said_since
            if since is None or self._since is not None or self.over_for < _BELIEVED_AFTER:
                return
            lasted = self._ended_at - since
            self._said_since = None
            self._said_at = -inf
            self._failures = 0
            self._returned = False
            self.is_unsettled = False
        log.info("the store is back after %.1f s", lasted)

    def wait(self) -> None:
        """Pause before the next attempt: longer each time, never in step with others."""
        with self._lock:
            pause = growing(_FIRST_PAUSE, self._failures, self._longest)
            # If it comes and goes, that it has come is no reason to hurry.
            until = threading.Event() if self._returned else self._over
        until.wait(random.uniform(pause / 2, pause))
