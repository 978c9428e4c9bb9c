"""The reporter: says that the worker is there, what it runs, and how it is doing.

Owns registration and snapshots. They are for people, and for the dropper, which asks what the
fleet knows; whether a task is ours is between the keeper and the lease rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic
from typing import Any

from holdfast.core.errors import StoreUnavailable
from holdfast.core.payload.codec import to_json
from holdfast.core.records import WorkerState
from holdfast.core.status import TaskStatus
from holdfast.runtime.options import MAX_BATCH
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.process_usage import ProcessUsage, UsageMeter
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.task_log import TaskLog
from holdfast.runtime.wire.messages import KnownTask
from holdfast.store.protocol import Store
from holdfast.store.verbs import inspect, workers
from holdfast.store.verbs.claims import known_name

_COUNTED = 1_000
_SHOWN = (
    "concurrency",
    "threads",
    "coroutines",
    "lease",
    "grace",
    "kill_grace",
    "outage_grace",
    "max_tasks_per_child",
    "max_memory_per_child",
    "drop_unknown_after",
)
"""The settings that are shown of a worker."""


class Reporter:
    """A duty: call `tick` from one thread only."""

    name = "reporter"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        *,
        worker_id: str,
        hostname: str,
        version: str,
        tasks: Sequence[KnownTask],
        task_log: TaskLog | None = None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._task_log = task_log or TaskLog()
        self._worker_id = worker_id
        self._hostname = hostname
        self._version = version
        self._known = to_json([known_name(task.name, task.version) for task in tasks])
        self._queues = ledger.sources.queues
        choices = ledger.sources.choices()
        self._weights = {q: c.weight for q, c in choices.items() if c.weight is not None}
        self._caps = {q: c.cap for q, c in choices.items() if c.cap is not None}
        self._started_at = 0
        self._seen = UsageMeter()
        self._snapped = UsageMeter()
        """Apart: a worker is seen more often than it makes a snapshot."""
        self._snapshot_at = 0.0

    def register(self) -> None:
        """Say that the worker is there; raises if the store is away.

        One that is about to stop serves no queue any more.
        """
        options = self._ledger.options
        queues = self._queues if self._ledger.is_accepting else ()
        found = self._store.run(
            workers.register(
                self._worker_id,
                hostname=self._hostname,
                pid=os.getpid(),
                version=self._version,
                lease_us=options.lease_us,
                queues=to_json(queues),
                known=self._known,
                settings=to_json({name: getattr(options, name) for name in _SHOWN}),
                children=to_json([_shown(each) for each in self._seen.look(self._children())]),
            )
        )
        self._started_at = found.started_at

    def tick(self) -> float:
        """Register again (it is the sign of life), and add a snapshot when one is due."""
        options = self._ledger.options
        # Whoever has not been seen for a lease is taken for dead.
        interval = min(options.snapshot_interval, options.lease / 3)
        if self._outage.is_on:
            return min(interval, 1.0)
        try:
            self.register()
            if monotonic() >= self._snapshot_at:
                self._store.run(workers.snapshot(self._snapshot()))
                self._snapshot_at = monotonic() + options.snapshot_interval - interval / 2
            running, _ = self._ledger.counts()
            self._task_log.sum_up(self._ledger.outcomes.totals(), self._waiting, running)
        except StoreUnavailable as error:
            self._outage.noted(error)
        return interval

    def say_leaving(self) -> None:
        """Say that the worker takes nothing more; best effort."""
        try:
            self.register()
        except StoreUnavailable:
            pass

    def say_stopped(self) -> None:
        """Say that the worker has stopped; best effort."""
        try:
            self._store.run(workers.stop(self._worker_id))
        except StoreUnavailable:
            pass

    def _waiting(self) -> str:
        """How many tasks are claimable; counting them must not cost a busy store anything."""
        found = self._store.run(inspect.counts(cap=_COUNTED))
        number = found.by_status.get(TaskStatus.PENDING, 0)
        return f"{number:,}+" if TaskStatus.PENDING in found.at_least else f"{number:,}"

    def _children(self) -> list[tuple[str, int]]:
        """By name and pid."""
        return [(child.name, child.pid) for child in self._ledger.roster.all() if child.pid]

    def _snapshot(self) -> WorkerState:
        running, claimed = self._ledger.counts()
        children = self._children()
        used = self._snapped.look([("supervisor", os.getpid()), *children])
        memory = sum(each.memory_mb for each in used)
        percents = [each.cpu_percent for each in used if each.cpu_percent is not None]
        total = _total_memory_mb()
        options = self._ledger.options
        return WorkerState(
            worker_id=self._worker_id,
            hostname=self._hostname,
            pid=os.getpid(),
            processes=len(children),
            queues=to_json(self._queues),
            tasks_running=running,
            tasks_claimed=claimed,
            worker_started_at=self._started_at,
            memory_usage_mb=memory,
            memory_percent=100 * memory / total if total else None,
            cpu_percent=sum(percents) if percents else None,
            max_claim_batch=MAX_BATCH,
            max_claim_per_worker=options.concurrency + options.threads + options.coroutines,
            queue_priorities=to_json(self._weights) if self._weights else None,
            queue_max_concurrency=to_json(self._caps) if self._caps else None,
            recovery_config=to_json(
                {"lease": options.lease, "gap": options.gap, "outage_grace": options.outage_grace}
            ),
        )


def _shown(used: ProcessUsage) -> dict[str, Any]:
    percent = None if used.cpu_percent is None else round(used.cpu_percent, 1)
    return {**used._asdict(), "memory_mb": round(used.memory_mb, 1), "cpu_percent": percent}


def _total_memory_mb() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
    except (ValueError, OSError):
        return 0.0
