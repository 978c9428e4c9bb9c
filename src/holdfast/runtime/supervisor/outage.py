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

log = logging.getLogger("holdfast.worker")

_FIRST_PAUSE = 0.05
_SAY_EVERY = 5.0


class Outage:
    """Shared by all threads that use the store."""

    def __init__(self, longest_pause: float) -> None:
        self._longest = longest_pause
        self._lock = threading.Lock()
        self._since: float | None = None
        self._said_at = 0.0
        self._failures = 0
        self._over = threading.Event()
        self._ended_at = -inf
        self.silent = False

    @property
    def is_on(self) -> bool:
        """Whether the last that was heard of the store was a failure."""
        return self._since is not None

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
        """The store could not be used. (It could if only somebody's lock was in the way.)"""
        if error.locked:
            self.over()
            return
        now = monotonic()
        with self._lock:
            if self._since is None:
                self._since = now
                self._over.clear()
            self._failures += 1
            self.silent = error.silent
            say = now - self._said_at >= _SAY_EVERY
            if say:
                self._said_at = now
        if say:
            log.warning("the store is away (%.0f s): %s", self.lasted, error)

    def over(self) -> None:
        """The store could be used."""
        if self._since is None:
            return
        with self._lock:
            lasted, self._since = self.lasted, None
            self._ended_at = monotonic()
            self._failures = 0
            self._said_at = 0.0
            self.silent = False
            self._over.set()
        log.info("the store is back after %.1f s", lasted)

    def wait(self) -> None:
        """Pause before the next attempt: longer each time, never in step with others."""
        with self._lock:
            pause = min(_FIRST_PAUSE * 2 ** min(self._failures, 10), self._longest)
        self._over.wait(random.uniform(pause / 2, pause))
