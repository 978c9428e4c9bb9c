"""The janitor: retention and audit, a page at a time.

Owns the walk over all tasks. It is never in a hurry: one small page per tick, an hour
between walks, and any worker's walk is as good as another's.
"""

from __future__ import annotations

import logging
import random

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.op import Key
from holdfast.store.protocol import Store
from holdfast.store.verbs import evidence, leases, retention, timing

log = logging.getLogger("holdfast.worker")

_BETWEEN_WALKS = 3600.0
_BETWEEN_PAGES = 0.05
_FIRST_WALK = 60.0


class Janitor:
    """A duty: call `tick` from one thread only."""

    name = "janitor"

    def __init__(self, store: Store, options: WorkerOptions, outage: Outage) -> None:
        self._store = store
        self._keep = options.retention
        self._outage = outage
        self._after: bytes | None = None
        self._rested = False

    def tick(self) -> float:
        """Do one page of the walk, or rest."""
        if not self._rested:
            self._rested = True
            # Not all workers of a deploy at once.
            return _FIRST_WALK * random.uniform(0.5, 1.5)
        if self._outage.is_on:
            return 1.0
        try:
            return self._page()
        except StoreUnavailable as error:
            self._outage.noted(error)
            return 1.0
        except StoreError:
            log.exception("retention failed; it is tried again in an hour")
            return _BETWEEN_WALKS

    def _page(self) -> float:
        now = self._store.run(timing.next_due()).now

        def before(name: str) -> int | None:
            keep = self._keep.keep_us(name)
            return None if keep is None else now - keep

        after = self._after or retention.START
        self._audit(after)
        page = retention.prune(after, before=before("tasks"), dead_before=before("dead"))
        done = self._store.run(page)
        self._after = done.next
        if done.next is not None:
            return _BETWEEN_PAGES
        self._forget_logs(before("logs"))
        snapshots = before("worker_states")
        if snapshots is not None:
            while self._store.run(retention.prune_worker_states(before=snapshots)) == 1000:
                pass
            self._store.run(retention.prune_workers(before=snapshots))
        return _BETWEEN_WALKS * random.uniform(0.9, 1.1)

    def _audit(self, after: bytes) -> None:
        found = self._store.run(leases.audit(after))
        if found.adopted or found.stuck:
            log.error(
                "the audit found %d task(s) in flight without a lease and %d that waited for "
                "nothing; they are recovered. This should not happen: please report it",
                found.adopted,
                found.stuck,
            )

    def _forget_logs(self, before: int | None) -> None:
        after: Key | None = None
        while before is not None:
            done = self._store.run(evidence.prune_logs(after, before=before))
            if done.next is None:
                return
            after = done.next
