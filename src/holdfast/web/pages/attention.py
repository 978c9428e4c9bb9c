"""What needs attention first: what somebody would want to be woken for, the worst first.

Owns the rules. Each line says its subject first, then what is wrong with it, then the evidence, and
what can be done about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.dead_letter_control import DeadOverview
from holdfast.client.info import TaskInfo
from holdfast.client.stats_control import StatsPoint, StatsSeries
from holdfast.client.worker_control import WorkerInfo
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.drawing.chart import Line, spark
from holdfast.web.pages.chart_range import ChartRange
from holdfast.web.pages.charts import depth_of
from holdfast.web.pages.dead_letter_page import read_causes
from holdfast.web.pages.fleet import QueueRow, pending_words
from holdfast.web.pages.lateness import is_late
from holdfast.web.pages.shared_reads import shared
from holdfast.web.pages.words import count_of, duration, percent

__all__ = ["Link", "Notice", "notices"]

_MOST: Final = 12
_MOST_TASKS: Final = 4
_LOOKED_AT: Final = 200
_MOST_QUEUES: Final = 50
_MOST_SCHEDULES: Final = 3
_STUCK_S: float = 15.0


@dataclass(frozen=True, slots=True)
class Link:
    """Something to do about it."""

    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One line."""

    hue: str
    icon: str
    subject: str
    what: str
    evidence: str = ""
    code: str = ""
    """Foreign text before the evidence: an error."""
    at: datetime | None = None
    spark: Sequence[Line] = ()
    links: Sequence[Link] = ()
    weight: float = 0.0


async def notices(
    context: Context,
    series: StatsSeries,
    by_task: Sequence[StatsPoint],
    queues: Sequence[QueueRow],
    workers: Sequence[WorkerInfo],
    now: datetime,
    shown: ChartRange,
) -> list[Notice]:
    """All of them, the worst first."""
    found = [
        *await _failing(context, by_task, shown),
        *_gone(context, workers, now),
        *await _stuck(context, workers, now),
        *_unserved(context, queues),
        *_growing(context, series, queues),
        *await _late(context, now),
        *await _unknown(context, queues, workers),
    ]
    return sorted(found, key=lambda each: -each.weight)[:_MOST]


async def _failures(context: Context, name: str, shown: ChartRange) -> Sequence[Line]:
    """How many of this task failed over the time that is shown."""
    series = await shared(
        context.app,
        ("failures", name, shown.chosen),
        lambda: context.control.stats.aseries(**shown.options, task=name),
        times=2.5,
    )
    counted = {point.at: float(point.counted.failures) for point in series.points}
    return spark([counted.get(at, 0.0) for at in series.times])


async def _failing(
    context: Context, by_task: Sequence[StatsPoint], shown: ChartRange
) -> list[Notice]:
    causes = (
        await read_causes(context) if any(point.counted.failures for point in by_task) else None
    )
    failing = sorted(by_task, key=lambda point: -point.counted.failures)
    failing = [point for point in failing if point.counted.failures and point.task][:_MOST_TASKS]
    found = []
    for point in failing:
        name, failures = point.task or "", point.counted.failures
        page = await context.control.dead_letters.alist(name=name, limit=1)
        last = page.tasks[0] if page.tasks else None
        share = failures / max(1, point.counted.ended)
        ways = _ways(causes, name, point.at)
        evidence = f"{percent(share)} of its endings"
        if ways > 1:
            evidence += f" · {ways} causes"
        found.append(
            Notice(
                "failed",
                "failed",
                name,
                f"failed {'once' if failures == 1 else f'{failures:,} times'}",
                evidence,
                code="" if last is None else context.payloads.said(_cause(last)),
                at=None if last is None else last.finished_at,
                spark=await _failures(context, name, shown),
                links=_links(
                    Link("Causes", context.url("/dead-letters"))
                    if ways > 1
                    else Link(
                        "Show", context.url("/tasks", name=name, status="failed,stalled,dropped")
                    ),
                    Link(
                        "Resubmit…",
                        context.url("/tasks/bulk/resubmit", name=name, status="failed,stalled"),
                    )
                    if context.visitor.may(Role.OPERATE)
                    else None,
                ),
                weight=100 + failures * share,
            )
        )
    return found


def _ways(overview: DeadOverview | None, name: str, since: datetime) -> int:
    """Of how many causes tasks of this name have died since then."""
    found = overview.causes if overview is not None else ()
    ways = {(c.error_code, c.exception) for c in found if c.name == name and c.last_at >= since}
    return len(ways)


def _cause(info: TaskInfo) -> str:
    error = info.error
    if error is None:
        return info.failed_reason or info.error_code or ""
    head = error.type_name or str(error.error_code)
    return f"{head}: {error.message}" if error.message else head


def _gone(context: Context, workers: Sequence[WorkerInfo], now: datetime) -> Iterator[Notice]:
    for worker in workers:
        if worker.state != "silent":
            continue
        held = worker.latest.tasks_running if worker.latest is not None else 0
        silent = duration(max(timedelta(0), now - worker.seen_at))
        evidence = f"No heartbeat for {silent}"
        if held:
            evidence += f" · it ran {count_of(held, 'task')}, which others take over"
        yield Notice(
            "failed",
            "gone",
            f"{worker.hostname} · {worker.pid}",
            "is gone",
            evidence,
            at=worker.seen_at,
            links=_links(
                Link("Tasks", context.url("/tasks", worker=worker.id, status="claimed,running")),
                Link("Worker", context.url(f"/workers/{worker.id}")),
            ),
            weight=90,
        )


async def _stuck(context: Context, workers: Sequence[WorkerInfo], now: datetime) -> list[Notice]:
    """Leases that have ended although others should have taken their tasks over."""
    someone = any(worker.state == "alive" for worker in workers)
    names = {worker.id: f"{worker.hostname} · {worker.pid}" for worker in workers}
    remedy = (
        "another transaction may hold the rows: see the workers' logs"
        if someone
        else "start a worker: it takes them over at once"
    )
    return [
        Notice(
            "failed" if someone else "stalled",
            "stalled",
            names.get(lease.worker, lease.worker),
            f"left {count_of(lease.count, 'lease')} that nobody has taken over",
            f"The first ended {duration(max(timedelta(0), now - lease.since))} ago · {remedy}",
            at=lease.since,
            links=_links(
                Link("Tasks", context.url("/tasks", worker=lease.worker, status="claimed,running")),
                Link("Worker", context.url(f"/workers/{lease.worker}"))
                if lease.worker in names
                else None,
            ),
            weight=95 if someone else 65,
        )
        for lease in (await context.control.workers.aoverdue(after=_STUCK_S))[:_MOST_TASKS]
    ]


def _unserved(context: Context, queues: Sequence[QueueRow]) -> Iterator[Notice]:
    for row in queues:
        queue = row.info
        if not row.pending or row.served or queue.paused_at is not None:
            continue
        yield Notice(
            "stalled",
            "queues",
            queue.name,
            "is served by no worker",
            f"{pending_words(row)} · start one with -q {queue.name}",
            at=queue.oldest_enqueued_at,
            links=_links(
                Link("Show", context.url("/tasks", queue=queue.name, status="pending")),
                Link("Queue", context.url(f"/queues/{queue.name}")),
            ),
            weight=80,
        )


def _growing(context: Context, series: StatsSeries, queues: Sequence[QueueRow]) -> Iterator[Notice]:
    for row in queues:
        if not row.grows:
            continue
        queue = row.info
        values = depth_of(series, queue.name)
        began = next(value for value in values if value is not None)
        yield Notice(
            "stalled",
            "grow",
            queue.name,
            "grows faster than it drains",
            f"{pending_words(row)}, {began:,.0f} when this began",
            at=queue.oldest_enqueued_at,
            spark=row.spark,
            links=_links(
                Link("Queue", context.url(f"/queues/{queue.name}")),
                Link("Tasks", context.url("/tasks", queue=queue.name, status="pending")),
            ),
            weight=70,
        )


async def _late(context: Context, now: datetime) -> list[Notice]:
    async def read() -> dict[str, datetime]:
        return {
            schedule.name: schedule.next_run_at
            for schedule in await context.control.schedules.alist()
            if schedule.next_run_at is not None and is_late(schedule, now)
        }

    # Thousands of schedules take most of a second to read.
    due_at = await shared(context.app, ("late schedules",), read)
    latest = sorted(due_at, key=due_at.__getitem__)
    # One cause makes all of them late, and must not hide everything else.
    shown = latest[:_MOST_SCHEDULES]
    evidence = "Workers fire schedules: see that one runs"
    if len(latest) > len(shown):
        evidence += f" · {len(latest):,} are late in all"
    found = []
    for name in shown:
        due = due_at[name]
        found.append(
            Notice(
                "stalled",
                "schedules",
                name,
                f"is {duration(now - due)} late",
                evidence,
                at=due,
                links=[Link("Schedule", context.url(f"/schedules/{name}"))],
                weight=75,
            )
        )
    return found


async def _unknown(
    context: Context, queues: Sequence[QueueRow], workers: Sequence[WorkerInfo]
) -> list[Notice]:
    """Tasks that wait although no worker has their code; the first of each queue are looked at."""
    alive = [worker for worker in workers if worker.state == "alive"]
    if not alive or not any(row.pending for row in queues):
        return []
    known = {name for worker in alive for name in worker.tasks}
    names = tuple(row.info.name for row in queues if row.pending and row.served)
    kinds = await shared(
        context.app,
        ("kinds", names[:_MOST_QUEUES]),
        lambda: context.control.queues.akinds(*names[:_MOST_QUEUES], most=_LOOKED_AT),
    )
    counts: Counter[str] = Counter()
    oldest: dict[str, datetime] = {}
    for kind in kinds:
        if f"{kind.name}@{kind.version}" not in known:
            counts[kind.name] += kind.count
            since = oldest.get(kind.name, kind.oldest_enqueued_at)
            oldest[kind.name] = min(since, kind.oldest_enqueued_at)
    return [
        Notice(
            "dropped",
            "q",
            name,
            "is known to no worker",
            f"{count_of(number, 'task')} pending · deploy its code, or cancel",
            at=oldest[name],
            links=_links(
                Link("Show", context.url("/tasks", name=name, status="pending")),
                Link("Cancel…", context.url("/tasks/bulk/cancel", name=name, status="pending"))
                if context.visitor.may(Role.OPERATE)
                else None,
            ),
            weight=60,
        )
        for name, number in counts.most_common(_MOST_TASKS)
    ]


def _links(*given: Link | None) -> list[Link]:
    return [link for link in given if link is not None]
