"""What a worker's own port tells Prometheus: of the fleet, and of itself.

Owns the rest between two readings of the store: it lasts fifty times as long as the reading took,
and `_KEPT` seconds at least, however many ask. The reading has a thread of its own, because a store
that hangs does not answer before Prometheus loses patience: then, and while the store is away, the
worker tells of itself alone.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from time import monotonic
from typing import Final

from holdfast.core.errors import HoldfastError
from holdfast.core.metrics import Family, FleetReading, Sample, families, metrics_text
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.process_usage import megabytes
from holdfast.runtime.supervisor.readiness import Readiness
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.protocol import Store
from holdfast.store.verbs import fleet

log = logging.getLogger("holdfast.worker")

_KEPT: Final = 2.0
_REST_FOR_WORK: Final = 50
_WAIT: Final = 5.0
"""Seconds that whoever asks waits for the store: less than the ten that Prometheus waits for us."""
_STATES: Final = ("starting", "ready", "leaving")


class WorkerMetrics:
    """`text` may be called by any thread."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        readiness: Readiness,
        *,
        worker_id: str,
        version: str,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._readiness = readiness
        self._info = (
            ("worker", worker_id),
            ("version", version),
            ("engine", store.engine),
        )
        self._started_at = time.time()
        self._mutex = threading.Lock()
        self._reading: threading.Thread | None = None
        self._found: FleetReading | None = None
        self._stale_at = 0.0

    def text(self) -> str:
        """What Prometheus reads."""
        found = self._fleet()
        return metrics_text([*([] if found is None else families(found)), *self._own(found)])

    def _fleet(self) -> FleetReading | None:
        """The fleet as it is, or was some seconds ago; None if that cannot be told."""
        if self._outage.is_on:
            return None
        reading = self._begin()
        if reading is not None:
            reading.join(_WAIT)
        return self._found if monotonic() < self._stale_at else None

    def _begin(self) -> threading.Thread | None:
        """The reading that goes on, or a new one; None if what is known is new enough."""
        with self._mutex:
            if self._reading is not None and self._reading.is_alive():
                return self._reading
            if monotonic() < self._stale_at:
                return None
            reading = threading.Thread(target=self._read, name="holdfast-metrics", daemon=True)
            try:
                reading.start()
            except RuntimeError:
                # There can be no more threads; the worker's own are more important.
                return None
            self._reading = reading
            return reading

    def _read(self) -> None:
        began = monotonic()
        try:
            self._found = self._store.run(fleet.reading())
        except HoldfastError as error:
            self._found = None
            log.debug("metrics could not be read: %s", one_line(str(error), 300))
        took = monotonic() - began
        self._stale_at = monotonic() + max(_KEPT, took * _REST_FOR_WORK)

    def _own(self, found: FleetReading | None) -> list[Family]:
        running, claimed = self._ledger.counts()
        children = self._ledger.roster.all()
        states = Counter(child.state.value for child in children)
        pids = [os.getpid(), *(child.pid for child in children if child.pid)]
        times = os.times()
        return [
            _family("holdfast_worker_info", "This worker.", Sample("", self._info, 1)),
            _family(
                "holdfast_worker_ready",
                "1 while this worker could run a task, like /health/ready.",
                Sample("", (), int(self._readiness.why_not() is None)),
            ),
            _family(
                "holdfast_worker_store_up",
                "1 if this worker could read the store.",
                Sample("", (), int(found is not None)),
            ),
            _family(
                "holdfast_worker_tasks",
                "Tasks that this worker has claimed, and runs.",
                Sample("", (("state", "claimed"),), claimed),
                Sample("", (("state", "running"),), running),
            ),
            _family(
                "holdfast_worker_children",
                "Processes of this worker that run tasks.",
                *(Sample("", (("state", state),), states[state]) for state in _STATES),
            ),
            _family(
                "holdfast_worker_memory_bytes",
                "Memory of this worker and its children.",
                Sample("", (), round(sum(map(megabytes, pids)) * 1024 * 1024)),
            ),
            _family(
                "holdfast_worker_cpu_seconds",
                "Processor time of this worker itself, without its children.",
                Sample("", (), times.user + times.system),
            ),
            _family(
                "holdfast_worker_start_time_seconds",
                "When this worker started, in seconds since 1970.",
                Sample("", (), self._started_at),
            ),
        ]


def _family(name: str, text: str, *samples: Sample) -> Family:
    return Family(name, "gauge", text, samples)
