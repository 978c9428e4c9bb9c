"""The lease keeper: claims of ours stay ours.

Invariant: a lease of ours is renewed until everything it covers has ended durably, and no
code of ours runs on under a lease that somebody else may have taken.

It has its own thread, so nothing that happens elsewhere delays a renewal. Every third of a
lease it renews all tokens in one statement; a token that is not returned is lost: its code
is stopped and its outcomes are discarded. A lease row that another transaction holds can be
neither renewed nor taken: it is tried again at every tick, so that it is renewed
as soon as it is free (those who recover leases leave it alone for a while then, see `maintenance`).

When the store cannot be asked, two cases differ (see `outage`). The server answers that it
cannot serve: nobody can take our leases; code goes on until `outage_grace` has passed.
It is silent: code is stopped before its lease ends, by the clock that also runs while the
machine sleeps, counted from before the last renewal was sent.
"""

from __future__ import annotations

import logging
import time

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor.duties.claim_recovery import INTERRUPTED
from holdfast.runtime.supervisor.duties.time_limits import end_run
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.op import Key, at_once
from holdfast.store.protocol import Store
from holdfast.store.verbs import claims, leases

log = logging.getLogger("holdfast.worker")

_TICK = 0.25
_CLEAN_EVERY = 1.0
_REFUSED_PATIENCE = 2.3
"""How long an answer may take when the last one was a refusal: the pause before we ask again
(up to 0.8 s), and a server that has just come up. Whoever recovers leases leaves us a little longer
(`leases.KEEPERS_NEED_US`)."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime() -> float:
    """Seconds on a clock that does not stop when the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class LeaseKeeper:
    """A duty: call `tick` from one thread only."""

    name = "lease_keeper"

    def __init__(self, store: Store, ledger: Ledger, outage: Outage) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._lease = ledger.options.lease
        self._renewed_at = uptime()
        self._renew_at = 0.0
        self._clean_at = 0.0
        self._given_up = False
        self._asking_since: float | None = None
        self._strange: dict[bytes, list[Key]] = {}
        self._held: set[bytes] = set()
        """Leases that could not be renewed because another transaction holds their rows."""

    def tick(self) -> float:
        """Renew, clean, or watch the time that is left."""
        now = uptime()
        tokens = self._ledger.tokens()
        if now >= self._renew_at or self._outage.is_on:
            self._renew(tokens, now)
        elif self._held:
            self._renew_held(set(tokens))
        if now >= self._clean_at and not self._outage.is_on:
            self._clean()
            self._clean_at = now + _CLEAN_EVERY
        if self._outage.is_unsettled:
            self._outage.settle()
        return _TICK

    def _renew(self, tokens: list[bytes], now: float) -> None:
        self._asking_since = now
        try:
            kept, held = self._ask(tokens)
            strangers = self._store.run(claims.covered(list(kept))) if kept else {}
        except StoreUnavailable as error:
            self._outage.noted(error)
            return
        finally:
            self._asking_since = None
        if self._outage.is_unsettled:
            self._outage.over()
        self._renewed_at = now
        self._renew_at = now + self._lease / 3
        self._given_up = False
        self._noted_held(tokens, held)
        self._drop(set(tokens) - kept)
        self._disown(strangers)

    def _ask(self, tokens: list[bytes]) -> claims.Renewed:
        return self._store.run(claims.renew(tokens, lease_us=self._ledger.options.lease_us))

    def _renew_held(self, tokens: set[bytes]) -> None:
        """Try those again that somebody held; the others have time."""
        asked = list(self._held & tokens)
        try:
            kept, held = self._ask(asked)
        except StoreUnavailable as error:
            self._outage.noted(error)
            return
        self._noted_held(asked, held)
        self._drop(set(asked) - kept)

    def _noted_held(self, asked: list[bytes], held: set[bytes]) -> None:
        self._held = held
        if self._ledger.held_rows.has_any:
            self._ledger.held_rows.free("lease", set(asked) - held)
        for token in held:
            self._ledger.held_rows.held("lease", token, f"the lease {token.hex()} of this worker")

    def _disown(self, covered: dict[bytes, list[Key]]) -> None:
        """Give back what carries a token of ours and is not known here.

        There should be none. If an answer was lost in a way nobody thought of, this is what
        keeps the task from being ours, and idle, for as long as this worker lives.
        """
        known = self._ledger.known_keys()
        for token, keys in covered.items():
            unknown = [key for key in keys if key not in known]
            if not unknown or unknown != self._strange.get(token):
                # Twice in a row: between our two looks a task may have come or gone.
                self._strange[token] = unknown
                continue
            log.warning("%d task(s) are ours but unknown here; they are given back", len(unknown))
            try:
                self._store.run(at_once(leases.hand_back(token, INTERRUPTED, keys=unknown)))
            except StoreUnavailable as error:
                self._outage.noted(error)
        self._strange = {t: keys for t, keys in self._strange.items() if t in covered and keys}

    def _drop(self, lost: set[bytes]) -> None:
        if not lost:
            return
        lost, abandoned = self._ledger.lost(lost)
        if abandoned:
            log.error(
                "%d lease(s) were taken from this worker; %d running task(s) are stopped",
                len(lost),
                len(abandoned),
            )
        for assignment in abandoned:
            end_run(self._ledger, assignment, "lost")

    def judge(self) -> None:
        """May our code go on? Asked by `time_limits`: this thread may be waiting for an answer."""
        waiting = self._asking_since
        # Others may have found the store back while we wait for our next try; nobody else can
        # take our leases yet.
        refused = self._outage.over_for < _REFUSED_PATIENCE
        patience = _REFUSED_PATIENCE if refused else self._lease / 6
        unanswered = waiting is not None and uptime() - waiting > patience
        if self._given_up or not (self._outage.is_on or unanswered):
            return
        margin = min(self._ledger.options.kill_grace + 1.0, self._lease / 3)
        left = self._lease - margin - (uptime() - self._renewed_at)
        # A lock on a file that keeps us waiting keeps all workers out; a server may answer others.
        is_silent = self._outage.silent or (unanswered and self._store.settings.is_server)
        if is_silent and left <= 0:
            self._stop_all(
                "the store has been silent for nearly a lease; running tasks are stopped, because "
                "another worker may take them over"
            )
        elif self._outage.lasted > self._ledger.options.outage_grace:
            self._stop_all("the store has been away for longer than outage_grace")
        elif left <= 0:
            # Refused, not silent: only what must never run twice is stopped.
            self._stop_all("", at_most_once_only=True)

    def _stop_all(self, why: str, *, at_most_once_only: bool = False) -> None:
        running = [
            assignment
            for assignment in self._ledger.assignments()
            if assignment.policy.at_most_once or not at_most_once_only
        ]
        if why:
            self._given_up = True
            if running:
                log.error("%s", why)
        for assignment in running:
            end_run(self._ledger, assignment, "lost")

    def _clean(self) -> None:
        spent = self._ledger.take_spent()
        if not spent:
            return
        try:
            self._store.run(claims.clean(list(spent)))
        except StoreUnavailable as error:
            self._outage.noted(error)
            self._ledger.spend(spent)
