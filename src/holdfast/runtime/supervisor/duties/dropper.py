"""The dropper: ends tasks that no worker of the fleet can run any more.

Owns the judgement behind `drop_unknown_after` (decision 0007): a task is dropped when it has
been claimable for that long, and no worker that lived within that time knew its name and
version. Off by default. It is in no hurry: a walk about once a minute, a page at a time.

Workers say that they live by registering, and nobody can while the store is away, or before
they have started. So a worker judges only after it has watched the store without a gap for a
while: those that return with it, or are started after it, have registered by then.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import inf

from holdfast.core.errors import StoreUnavailable
from holdfast.core.payload.codec import from_json
from holdfast.core.records import HEAD, Position
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.lease_keeper import uptime
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.protocol import Store
from holdfast.store.verbs import claims, queues, timing, workers

log = logging.getLogger("holdfast.worker")

_BETWEEN_WALKS = 60.0
_BETWEEN_PAGES = 0.05
_HEADS = 1_000_000
"""Among how many keys and priorities the oldest task is looked for: it must be known."""
_LOOK_OUT = 1.0
"""Seconds between two looks at whether the store is away; they do not ask the store."""
_WATCH_AT_MOST = 300.0
"""Seconds after a start or an outage within which the rest of the fleet has registered."""


class Dropper:
    """A duty: call `tick` from one thread only."""

    name = "dropper"

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        outage: Outage,
        *,
        known: Iterable[str],
        clock: Callable[[], float] = uptime,
    ) -> None:
        after = options.drop_unknown_after
        assert after is not None, "without the option there is nothing to do"
        self._store = store
        self._outage = outage
        self._known = frozenset(known)
        self._clock = clock
        self._after_us = round(after * 1_000_000)
        self._watch = max(options.lease, min(after, _WATCH_AT_MOST))
        self._gap = max(options.lease, 5 * _LOOK_OUT)
        self._watched_since = self._looked_at = self._walk_at = -inf
        self._walk: Iterator[None] | None = None
        self._dropped: Counter[str] = Counter()

    def tick(self) -> float:
        """Do one page of a walk, or watch."""
        now = self._clock()
        if self._outage.is_on or now - self._looked_at > self._gap:
            # At the start; or the store was away; or this process has slept for so long that its
            # own sign of life is old.
            self._watched_since = now
            self._walk = None
        self._looked_at = now
        begins_at = max(self._walk_at, self._watched_since + self._watch)
        if self._walk is None and now < begins_at:
            return min(begins_at - now, _LOOK_OUT)
        try:
            if self._walk is None:
                self._walk = self._pages()
            for _ in self._walk:
                return _BETWEEN_PAGES
        except StoreUnavailable as error:
            self._outage.noted(error)
        except Exception:
            log.exception("dropping unknown tasks failed; it is tried again in a minute")
        self._rest(now)
        return _LOOK_OUT

    def _rest(self, now: float) -> None:
        self._walk = None
        # Not all workers at once.
        self._walk_at = now + _BETWEEN_WALKS * random.uniform(0.75, 1.25)
        if self._dropped:
            log.warning(
                "dropped %d task(s) that no worker has known for %g s: %s",
                self._dropped.total(),
                self._after_us / 1_000_000,
                ", ".join(f"{n} of {name}" for name, n in sorted(self._dropped.items())),
            )
            self._dropped.clear()

    def _pages(self) -> Iterator[None]:
        """Walk through all queues; a step is a page."""
        before = self._store.run(timing.next_due()).now - self._after_us
        for queue in self._store.run(queues.list_queues(1, heads=_HEADS)):
            oldest = queue.oldest_enqueued_at
            if oldest is None or oldest >= before:
                continue
            key: str | None = ""
            while key is not None:
                after: Position | None = HEAD
                while after is not None:
                    # Asked before anything is dropped: what follows moves up.
                    further = self._store.run(claims.horizon(queue.queue_name, after, key=key))
                    self._drop(queue.queue_name, before, after, key)
                    after = further
                    yield
                key = self._store.run(claims.next_key(queue.queue_name, key))

    def _drop(self, queue: str, before: int, after: Position, key: str) -> None:
        # Asked for each page: a worker that has just started may know what nobody knew.
        known = self._known | self._known_since(before)
        while True:
            found = self._store.attempt(
                lambda: timing.drop(queue, known=known, before=before, after=after, key=key)
            )
            self._dropped.update(found.values())
            if len(found) < timing.BATCH:
                return

    def _known_since(self, since: int) -> set[str]:
        """What the workers know, or knew, that were alive then or later."""
        known: set[str] = set()
        for worker in self._store.run(workers.list_workers()):
            # Whoever has not said goodbye is taken for dead a lease after it was seen.
            patience = worker.lease_us if worker.stopped_at is None else 0
            if worker.seen_at + patience >= since:
                known.update(from_json(worker.known))
        return known
