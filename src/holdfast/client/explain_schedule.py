"""What a schedule has to do with a task: which one sent it, for which moment, where that stands.

Owns the sentences.
"""

from __future__ import annotations

from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.moment import from_us
from holdfast.core.records import TaskRecord
from holdfast.store.op import Steps

__all__ = ["reasons"]


def reasons(task: TaskRecord) -> Steps[list[str]]:
    """Of a task that a schedule has sent; of any other there is nothing to say."""
    name = task.schedule_name
    if name is None:
        return []
    # It brings cron, and most tasks have no schedule.
    from holdfast.store.verbs import schedules

    tick = "" if task.schedule_tick is None else f" for its tick of {_time(task.schedule_tick)}"
    found = [f"schedule {name!r} sent it{tick}"]
    try:
        record = yield from schedules.find(name)
    except ConfigError:
        return [*found, f"schedule {name!r} has been deleted since"]
    except UnreadableRow:
        return found
    if record.paused_at is not None:
        by = f" by {record.paused_by}" if record.paused_by else ""
        found.append(
            f"schedule {name!r} was paused{by} at {_time(record.paused_at)}, and sends no more"
        )
    elif record.stopped_at is not None:
        found.append(f"schedule {name!r} has stopped: no live worker declares it any more")
    is_prior = record.last_task_id in (task.id, task.workflow_id)
    if is_prior and record.has_waiting:
        found.append(f"a tick of schedule {name!r} waits for it to end")
    elif is_prior and not task.status.is_terminal and record.definition.overlap == "skip":
        found.append(f"ticks of schedule {name!r} are dropped until it has ended")
    return found


def _time(us: int) -> str:
    return from_us(us).isoformat(timespec="seconds")
