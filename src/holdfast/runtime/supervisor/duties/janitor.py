"""The janitor: retention and audit, a page at a time.

Owns the walk over all tasks. One walk an hour serves the whole fleet: whoever finds it due takes
the turn, which is noted in the store with how far it has come, so that a walk whose worker has
gone is taken over. It is never in a hurry: one small page per tick. A page is only read, unless
there is something to remove or to mend.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import partial
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.core.identity import as_text
from holdfast.core.statistics import Level
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.op import Key, Op, at_once
from holdfast.store.protocol import Store
from holdfast.store.verbs import (
    audit_entries,
    evidence,
    leases,
    limits,
    retention,
    step_audit,
    ticks,
    timing,
)

log = logging.getLogger("holdfast.worker")

_BETWEEN_WALKS = 3600.0
_BETWEEN_PAGES = 0.05
_FIRST_WALK = 60.0
_LOOK_FOR_A_TURN = 600.0
_NOTE_EVERY = 30.0
_STALE = 300.0
"""Seconds without a note after which a walk is taken over."""
_BATCH = 1000
_MOST_NAMED = 5
_BEHIND_ALL_TASKS = b"\xff" * 16
_DAY_US = 86_400_000_000
_LEAST_KEPT_US: dict[Level, int] = {"minute": 0, "hour": 92 * _DAY_US, "day": 3 * 366 * _DAY_US}


class Janitor:
    """A duty: call `tick` from one thread only."""

    name = "janitor"

    def __init__(self, store: Store, options: WorkerOptions, outage: Outage) -> None:
        self._store = store
        self._keep = options.retention
        self._outage = outage
        self._after: bytes | None = None
        """Where the next page of our walk starts; None while it is not our turn."""
        self._counted: bytes | None = None
        """Behind the last task: up to which scope of a workflow its steps have been recounted."""
        self._note_at = 0.0
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
            return self._page() if self._after is not None or self._take_turn() else _rest()
        except StoreUnavailable as error:
            self._outage.noted(error)
            return 1.0
        except Exception:
            log.exception("retention failed; it is tried again in an hour")
            self._after = self._counted = None
            return _BETWEEN_WALKS

    def _take_turn(self) -> bool:
        self._after = self._store.run(
            retention.take_walk(
                every_us=round(_BETWEEN_WALKS * 1_000_000), stale_us=round(_STALE * 1_000_000)
            )
        )
        self._note_at = monotonic() + _NOTE_EVERY
        return self._after is not None

    def _page(self) -> float:
        assert self._after is not None
        now = self._store.run(timing.next_due()).now

        def before(name: str) -> int | None:
            keep = self._keep.keep_us(name)
            return None if keep is None else now - keep

        if self._counted is None:
            self._audit(self._after)
            after = self._prune(self._after, before("tasks"), before("dead"))
            if after is not None:
                return self._go_on(after)
            self._counted = bytes(16)
        self._counted = self._recount_steps(self._counted)
        if self._counted is not None:
            return self._go_on(_BEHIND_ALL_TASKS)
        self._after = None
        self._mend_counters()
        self._forget_workflows(before("workflows"), before("dead"))
        self._forget_logs(before("logs"))
        for level, least_us in _LEAST_KEPT_US.items():
            kept = before("stats")
            counted = None if kept is None else min(kept, now - least_us)
            self._forget(counted, partial(retention.prune_stats, level=level))
            self._forget(counted, partial(retention.prune_depths, level=level))
        self._forget(before("tasks"), ticks.prune)
        self._forget(before("audit"), audit_entries.prune_entries)
        snapshots = before("worker_states")
        self._forget(snapshots, retention.prune_worker_states)
        if snapshots is not None:
            self._store.run(retention.prune_workers(before=snapshots))
        self._store.run(retention.note_walk(None))
        return _rest()

    def _go_on(self, after: bytes) -> float:
        self._after = after
        if monotonic() >= self._note_at:
            self._store.run(retention.note_walk(after))
            self._note_at = monotonic() + _NOTE_EVERY
        return _BETWEEN_PAGES

    def _audit(self, after: bytes) -> None:
        suspects = self._store.run(leases.suspects(after))
        if not suspects.keys:
            return
        try:
            found = self._store.run(at_once(leases.audit(after)))
        except StoreUnavailable as error:
            # Another transaction holds what one of them waits for: the next walk, then.
            if not error.locked:
                raise
            return
        if found.adopted or found.stuck:
            some = [as_text(id) for id in sorted(suspects.idle.values())[:_MOST_NAMED]]
            log.error(
                "the audit found %d task(s) in flight without a lease and %d that waited for "
                "nothing%s; they are recovered. This should not happen: please report it",
                found.adopted,
                found.stuck,
                f" ({', '.join(some)}{', …' if len(suspects.idle) > len(some) else ''})"
                if some
                else "",
            )

    def _recount_steps(self, after: bytes) -> bytes | None:
        """Workflows whose counts of open steps are not what there is, which would never end."""
        found = self._store.run(step_audit.look(after))
        for scope in found.scopes:
            try:
                wrong = self._store.run(at_once(step_audit.recount(scope)))
            except StoreUnavailable as error:
                # Another transaction holds a row that has to be counted: the next walk, then.
                if not error.locked:
                    raise
                continue
            if wrong:
                log.error(
                    "the open steps of workflow %s were not counted as they are; they are counted "
                    "anew. Somebody may have changed rows by hand",
                    as_text(scope),
                )
        return found.next

    def _mend_counters(self) -> None:
        """Counters of limits that do not agree with what is in flight; those that count nothing."""
        rules = {limits.rule_of(drift.scope) for drift in self._store.run(limits.audit())}
        for rule in sorted(rules):
            log.error(
                "the counters of the limits of %s do not agree with what is in flight; they are "
                "counted anew. Somebody may have changed rows by hand",
                rule,
            )
            try:
                self._store.run(at_once(limits.recount(rule)))
            except StoreUnavailable as error:
                # Another transaction holds a row that has to be counted: the next walk, then.
                if not error.locked:
                    raise
        while self._store.run(limits.fold(_BATCH)) == _BATCH:
            pass
        while self._store.run(limits.prune_counters(_BATCH)) == _BATCH:
            pass

    def _prune(self, after: bytes, before: int | None, dead_before: int | None) -> bytes | None:
        page = self._store.run(retention.look(after, before=before, dead_before=dead_before))
        if page.past:
            prune = retention.prune(after, before=before, dead_before=dead_before)
            try:
                self._store.run(at_once(prune))
            except StoreUnavailable as error:
                # Another transaction holds a row of one of them: the next walk, then.
                if not error.locked:
                    raise
        return page.next

    def _forget(self, before: int | None, prune: Callable[..., Op[int]]) -> None:
        while before is not None:
            if self._store.run(prune(before=before, batch=_BATCH)) < _BATCH:
                return

    def _forget_workflows(self, before: int | None, dead_before: int | None) -> None:
        while before is not None:
            prune = retention.prune_workflow(before=before, dead_before=dead_before)
            if not self._store.run(at_once(prune)):
                return

    def _forget_logs(self, before: int | None) -> None:
        after: Key | None = None
        while before is not None:
            done = self._store.run(evidence.prune_logs(after, before=before))
            if done.next is None:
                return
            after = done.next


def _rest() -> float:
    """Until somebody looks whether the next walk is due."""
    return _LOOK_FOR_A_TURN * random.uniform(0.75, 1.25)
