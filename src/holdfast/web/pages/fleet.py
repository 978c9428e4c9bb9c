"""What pages say of queues and workers: rows that put together what several questions answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.control import QueueInfo
from holdfast.client.info import Listing, TaskInfo
from holdfast.client.stats_control import QueueDepth, StatsPoint, StatsSeries
from holdfast.client.worker_control import WorkerInfo
from holdfast.core.status import TaskStatus
from holdfast.web.context import Context
from holdfast.web.drawing.chart import Line, spark
from holdfast.web.pages.chart_range import ChartRange
from holdfast.web.pages.charts import depth_of
from holdfast.web.pages.shared_reads import shared
from holdfast.web.pages.words import count_of, percent

__all__ = [
    "QueueCounts",
    "QueueRow",
    "WorkerRow",
    "grows",
    "pending_now",
    "pending_words",
    "queue_rows",
    "read_counts",
    "read_depths",
    "read_queues",
    "read_workers",
    "worker_rows",
]

LATELY_S: Final = 300
_MOST_SLOTS = 64
_COUNTED = 100_000
_GROWS_BY = 1.25
_FEW = 50


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """What was counted of each queue, and in how many minutes."""

    points: Sequence[StatsPoint]
    minutes: float


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue of a list."""

    info: QueueInfo
    depth: QueueDepth | None
    spark: Sequence[Line]
    sent: float
    """In a minute: lately, or over the time that is shown if that has passed."""
    ended: float
    failures: int
    served: bool
    grows: bool
    """Whether more comes than is done, as far as the time that is shown tells."""

    @property
    def pending(self) -> int:
        """How many wait, of which up to 100,000 are counted."""
        return max(self.info.pending, 0 if self.depth is None else self.depth.pending)

    @property
    def limits(self) -> str:
        """In words."""
        return ", ".join(limit_words(limit) for limit in self.info.limits)

    @property
    def running(self) -> int:
        """Claimed or running."""
        return 0 if self.depth is None else self.depth.running + self.depth.claimed


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker of a list."""

    info: WorkerInfo
    slots: int
    busy: int
    runs: str = ""
    """What it runs now, in words; empty if that was not asked for."""

    @property
    def children_busy(self) -> int:
        """How many of its children have something to do; one may run many async tasks."""
        return min(self.busy, self.slots)

    @property
    def load(self) -> str:
        """`3 of 4 busy`; `120 tasks in 4` where children run several at once."""
        if self.busy <= self.slots:
            return f"{self.busy} of {self.slots} busy"
        return f"{self.busy:,} tasks in {self.slots}"

    @property
    def hue(self) -> str:
        """Of its state."""
        if self.info.state == "silent":
            return "failed"
        return "running" if self.info.state == "alive" and not self.info.command else "plain"

    @property
    def word(self) -> str:
        """Its state."""
        if self.info.state == "silent":
            return "Gone"
        if self.info.state == "stopped":
            return "Stopped"
        return "Stopping" if self.info.command else "Working" if self.busy else "Idle"

    @property
    def icon(self) -> str:
        """Of its state."""
        if self.info.state == "silent":
            return "gone"
        return "running" if self.info.state == "alive" and not self.info.command else "pause"

    @property
    def may_stop(self) -> bool:
        """Whether there is somebody to hear an order that it has not been given yet."""
        return self.info.state != "stopped" and self.info.command is None

    @property
    def squares(self) -> list[str]:
        """One for each child: `busy`, `lost`, or nothing."""
        word = "lost" if self.info.state == "silent" else "busy"
        shown = min(self.slots, _MOST_SLOTS)
        return [word if place < self.busy else "" for place in range(shown)]


def grows(queue: QueueInfo, depth: Sequence[float | None]) -> bool:
    """Whether a queue that was this deep grows faster than it drains."""
    known = [value for value in depth if value is not None]
    if len(known) < 4 or queue.paused_at is not None or queue.pending < _FEW:
        return False
    half = len(known) // 2
    before, after = sum(known[:half]) / half, sum(known[half:]) / (len(known) - half)
    return after >= before * _GROWS_BY and known[-1] >= known[0] * _GROWS_BY


def pending_now(depths: Sequence[QueueDepth], shown: ChartRange) -> int | None:
    """How many wait to run now; None if the time that is shown has passed."""
    return sum(depth.pending for depth in depths) if shown.until is None else None


def pending_words(row: QueueRow) -> str:
    """`12,480 tasks pending`."""
    if row.pending >= _COUNTED:
        return f"{_COUNTED:,}+ tasks pending"
    return f"{count_of(row.pending, 'task')} pending"


async def read_depths(context: Context) -> Sequence[QueueDepth]:
    """How deep queues are; shared by all pages."""
    return await shared(context.app, "depths", context.control.stats.adepths)


async def read_queues(context: Context) -> Listing[QueueInfo]:
    """The queues; shared by all pages."""
    return await shared(context.app, "queues", context.control.queues.alist)


async def read_counts(context: Context, shown: ChartRange, now: datetime) -> QueueCounts:
    """What queues did in the last five minutes; if the time that is shown has passed, in all of
    it. Shared by all pages."""
    stats = context.control.stats
    if shown.until is not None:
        points = await shared(
            context.app,
            ("by queue", shown.chosen, shown.until),
            lambda: stats.asummary(**shown.options, by="queue"),
        )
        return QueueCounts(points, shown.last / 60)
    points = await shared(
        context.app, "by queue", lambda: stats.asummary(last=LATELY_S, by="queue")
    )
    start = points[0].at if points else now
    return QueueCounts(points, max(1.0, (now - start).total_seconds() / 60))


async def read_workers(context: Context) -> Listing[WorkerInfo]:
    """The workers that have not stopped; shared by all pages."""
    return await shared(context.app, "workers", context.control.workers.alist)


def queue_rows(
    queues: Sequence[QueueInfo],
    depths: Sequence[QueueDepth],
    series: StatsSeries,
    counts: QueueCounts,
    workers: Sequence[WorkerInfo],
) -> list[QueueRow]:
    """The queues, the deepest first."""
    deep = {depth.queue: depth for depth in depths}
    done: Mapping[str, StatsPoint] = {point.queue: point for point in counts.points if point.queue}
    served = {name for each in workers if each.state == "alive" for name in each.queues}
    known = {queue.name for queue in queues}
    # A queue in which nothing waits is known by its counters only.
    idle = [
        QueueInfo(name, None, None, 0, None) for name in sorted({*deep, *done, *served} - known)
    ]
    rows = []
    for queue in (*queues, *idle):
        counted = done[queue.name].counted if queue.name in done else None
        depth = depth_of(series, queue.name)
        rows.append(
            QueueRow(
                queue,
                deep.get(queue.name),
                spark(depth),
                0.0 if counted is None else counted.sent / counts.minutes,
                0.0 if counted is None else counted.ended / counts.minutes,
                0 if counted is None else counted.failures,
                queue.name in served,
                grows(queue, depth),
            )
        )
    return sorted(rows, key=lambda row: (-row.pending, row.info.name))


def worker_rows(workers: Sequence[WorkerInfo], running: Sequence[TaskInfo] = ()) -> list[WorkerRow]:
    """The workers, those that are gone last; `running` is what they have in hand."""
    runs: defaultdict[str, list[TaskInfo]] = defaultdict(list)
    for task in running:
        runs[task.claimed_by_worker_id or ""].append(task)
    order = {"alive": 0, "silent": 1, "stopped": 2}
    rows = []
    for worker in workers:
        settings: object = worker.settings
        asked = settings.get("concurrency") if isinstance(settings, dict) else None
        latest = worker.latest
        slots = asked if isinstance(asked, int) else latest.processes if latest else 0
        busy = 0 if latest is None or worker.state == "stopped" else latest.tasks_running
        rows.append(WorkerRow(worker, max(slots, 0), busy, _in_hand(runs[worker.id])))
    return sorted(rows, key=lambda row: (order[row.info.state], row.info.hostname, row.info.pid))


def _in_hand(tasks: Sequence[TaskInfo]) -> str:
    """`images.resize ×3, billing.invoice_run 34 %`: what runs, the most frequent first."""
    by_name: defaultdict[str, list[TaskInfo]] = defaultdict(list)
    for task in tasks:
        if task.status is TaskStatus.RUNNING:
            by_name[task.name].append(task)
    words = []
    for name, some in sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0])):
        far = some[0].progress.fraction if some[0].progress is not None else None
        if len(some) > 1:
            words.append(f"{name} ×{len(some)}")
        else:
            words.append(name if far is None else f"{name} {percent(far)}")
    return ", ".join(words)


def limit_words(limit: object) -> str:
    """A limit as its author would write it."""
    text = str(limit)
    return text.removeprefix("Limit(").removesuffix(")") if text.startswith("Limit(") else text
