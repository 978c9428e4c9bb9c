"""How a whole fleet stands: what metrics are made of.

Owns one reading of counters, depths and signs. It reads no tasks but those at the head of an index,
and counts up to `DEPTH_CAP`: it may be asked every few seconds, whatever is stored.
"""

from __future__ import annotations

from holdfast.core.metrics import DepthNow, FleetReading
from holdfast.store.op import Statement, Steps, reads
from holdfast.store.verbs.queues import list_queues
from holdfast.store.verbs.statistics import DEPTH_CAP, depths, totals


@reads
def reading() -> Steps[FleetReading]:
    """Counters, depths, workers, leases and schedules, as they are now."""
    counted = yield from totals()
    listed = yield from list_queues(DEPTH_CAP)
    deep = yield from depths(listed=listed)
    paused = {each.queue_name for each in listed if each.paused_at is not None}
    ((now, leases, first_end, alive, silent, schedules, first_due),) = yield Statement(
        "fleet_signs"
    )
    return FleetReading(
        totals=[(each.queue_name or "", each.task_name or "", each.counts) for each in counted],
        depths={
            each.queue_name: DepthNow(*each[1:], paused=each.queue_name in paused) for each in deep
        },
        workers={"alive": alive, "silent": silent},
        leases=leases,
        lease_overdue_us=0 if first_end is None else max(0, now - first_end),
        schedules=schedules,
        schedule_lag_us=0 if first_due is None else max(0, now - first_due),
    )
