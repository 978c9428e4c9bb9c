"""`app.control.stats`: what was done over time, and how deep queues are and were.

Everything here is read from counters that workers keep, never from the tasks themselves, so a
chart costs the same whether there are ten tasks or ten million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal, TypedDict, Unpack

from holdfast.client.access import Access
from holdfast.core.errors import ConfigError
from holdfast.core.metrics import families, metrics_text
from holdfast.core.moment import Span, from_us, optional_us, span_us
from holdfast.core.options import checks
from holdfast.core.statistics import ENDINGS, RUN, WAIT, level_for, percentile
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import fleet, statistics, timing

__all__ = [
    "CountedTasks",
    "DepthPoint",
    "Percentiles",
    "QueueDepth",
    "SeriesOptions",
    "StatsControl",
    "StatsPoint",
    "StatsSeries",
]

By = Literal["queue", "task"]

_MINUTE_US: Final = 60_000_000
_MOST_POINTS: Final = 2000
_STEPS_US: Final = tuple(
    minutes * _MINUTE_US for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 10_080)
)
_POINTS: Final = 120
"""About how many points a series has, if nobody says how long its steps are."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds that half, 95 % and 99 % did not exceed; None if there was nothing to measure.

    They are as exact as the buckets of the histogram (`core/statistics.py`).
    """

    p50: float | None
    p95: float | None
    p99: float | None
    mean: float | None


@dataclass(frozen=True, slots=True)
class CountedTasks:
    """What was counted: of a step of time, or of a queue or task."""

    sent: int
    finished: Mapping[str, int]
    """By the status they ended in: `completed`, `failed`, `cancelled`, `stalled`, …"""
    retried: int
    snoozed: int
    interrupted: int
    wait: Percentiles
    """From when a task could have been claimed until it was given to a child."""
    run: Percentiles
    wait_buckets: Sequence[int] = field(repr=False)
    run_buckets: Sequence[int] = field(repr=False)
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    """What `wait_buckets` and `run_buckets` count, added up."""

    @property
    def failures(self) -> int:
        """Tasks that ended as failed, stalled or dropped."""
        return sum(self.finished[name] for name in ("failed", "stalled", "dropped"))

    @property
    def ended(self) -> int:
        """Tasks that ended, however."""
        return sum(self.finished.values())


@dataclass(frozen=True, slots=True)
class StatsPoint:
    """One step of a series, of one queue or task if that was asked for."""

    at: datetime
    queue: str | None
    task: str | None
    counted: CountedTasks


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many tasks are in a queue, by where they stand; counted up to 100,000."""

    queue: str
    pending: int
    scheduled: int
    claimed: int
    running: int
    dead: int
    oldest: float
    """Seconds for which the oldest has been claimable."""


@dataclass(frozen=True, slots=True)
class DepthPoint:
    """How deep a queue was: the most of a step of time."""

    at: datetime
    depth: QueueDepth


@dataclass(frozen=True, slots=True)
class StatsSeries:
    """What was counted from `start` to `until`, in steps; one without counts is absent."""

    start: datetime
    until: datetime
    step: timedelta
    points: Sequence[StatsPoint]
    depth: Sequence[DepthPoint]

    @property
    def times(self) -> Sequence[datetime]:
        """Where each step begins, also of those that are absent."""
        number = (self.until - self.start) // self.step
        return [self.start + self.step * place for place in range(number)]


class SeriesOptions(TypedDict, total=False):
    """What a series shows."""

    last: Span
    """How far back it goes; default: an hour."""
    until: datetime
    """Where it ends; default: now."""
    step: Span
    """Whole minutes; hours and days go back further. Default: about 120 steps."""
    queue: str
    task: str
    by: By
    """A point for each queue, or for each task of each queue; default: one for all."""


class StatsControl:
    """`app.control.stats`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def series(self, **options: Unpack[SeriesOptions]) -> StatsSeries:
        """What was sent, ended, retried, how long it waited and ran, and how deep queues were."""
        return self._access.run(partial(_series, options))

    async def aseries(self, **options: Unpack[SeriesOptions]) -> StatsSeries:
        """What was sent, ended, retried, how long it waited and ran, and how deep queues were."""
        return await self._access.arun(partial(_series, options))

    def summary(self, **options: Unpack[SeriesOptions]) -> Sequence[StatsPoint]:
        """The same in one step: a point for each queue or task."""
        return self._access.run(partial(_summary, options))

    async def asummary(self, **options: Unpack[SeriesOptions]) -> Sequence[StatsPoint]:
        """The same in one step: a point for each queue or task."""
        return await self._access.arun(partial(_summary, options))

    def totals(self) -> Sequence[StatsPoint]:
        """What was ever counted, of each queue and task: such a count never goes down."""
        return _points(self._access.run(partial(statistics.totals)))

    async def atotals(self) -> Sequence[StatsPoint]:
        """What was ever counted, of each queue and task: such a count never goes down."""
        return _points(await self._access.arun(partial(statistics.totals)))

    def prometheus(self) -> str:
        """Metrics of the whole fleet, in the text format of Prometheus."""
        return metrics_text(families(self._access.run(partial(fleet.reading))))

    async def aprometheus(self) -> str:
        """Metrics of the whole fleet, in the text format of Prometheus."""
        return metrics_text(families(await self._access.arun(partial(fleet.reading))))

    def depths(self) -> Sequence[QueueDepth]:
        """How deep each queue is now."""
        return [_depth(each) for each in self._access.run(partial(statistics.depths))]

    async def adepths(self) -> Sequence[QueueDepth]:
        """How deep each queue is now."""
        return [_depth(each) for each in await self._access.arun(partial(statistics.depths))]


@dataclass(frozen=True, slots=True)
class _Range:
    start: int
    until: int
    step_us: int


@reads
def _series(options: SeriesOptions) -> Steps[StatsSeries]:
    asked = _range(options, (yield from timing.next_due()).now)
    by = options.get("by")
    level = level_for(asked.step_us)
    found = yield from statistics.series(
        level,
        start=asked.start,
        until=asked.until,
        step_us=asked.step_us,
        queue=options.get("queue"),
        task=options.get("task"),
        by_queue=by is not None,
        by_task=by == "task",
    )
    depth = yield from statistics.depth_series(
        "minute" if level == "minute" else "hour",
        start=asked.start,
        until=asked.until,
        step_us=asked.step_us,
        queue=options.get("queue"),
    )
    return StatsSeries(
        from_us(asked.start),
        from_us(asked.until),
        timedelta(microseconds=asked.step_us),
        _points(found),
        [DepthPoint(from_us(at), _depth(each)) for at, each in depth],
    )


@reads
def _summary(options: SeriesOptions) -> Steps[Sequence[StatsPoint]]:
    now = (yield from timing.next_due()).now
    asked = _range({**options, "step": 60}, now, bounded=False)
    by = options.get("by")
    found = yield from statistics.series(
        level_for(_step_for(asked.until - asked.start)),
        start=asked.start,
        until=asked.until,
        step_us=9_000_000_000_000_000_000,
        queue=options.get("queue"),
        task=options.get("task"),
        by_queue=by is not None,
        by_task=by == "task",
    )
    return [StatsPoint(from_us(asked.start), p.queue, p.task, p.counted) for p in _points(found)]


def _range(options: SeriesOptions, now: int, *, bounded: bool = True) -> _Range:
    unknown = options.keys() - SeriesOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(SeriesOptions.__annotations__))
        raise ConfigError(f"a series has no option {min(unknown)!r}: use {names}")
    for name in ("queue", "task"):
        if options.get(name) is not None:
            checks.stored_text(options.get(name), name)
    by = options.get("by")
    if by not in (None, "queue", "task"):
        raise ConfigError(f'by={by!r} is not usable: give "queue" or "task"')
    end = optional_us(options.get("until"), option="until")
    end = now + 1 if end is None else min(end, now + 1)
    last = span_us(options.get("last", 3600), option="last")
    given = options.get("step")
    step = _step_for(last) if given is None else span_us(given, option="step")
    if step < _MINUTE_US or step % _MINUTE_US:
        raise ConfigError(f"step={given!r} is not usable: give whole minutes", option="step")
    if bounded and last > _MOST_POINTS * step:
        raise ConfigError(
            f"last={options.get('last')!r} has more than {_MOST_POINTS:,} steps of {given!r}: "
            "give a longer step",
            option="step",
        )
    until = -(-end // step) * step
    return _Range(max(0, until - max(last, step) // step * step), until, step)


def _step_for(last_us: int) -> int:
    return next((step for step in _STEPS_US if last_us <= step * _POINTS), _STEPS_US[-1])


def _points(found: list[statistics.CountedStep]) -> list[StatsPoint]:
    return [
        StatsPoint(from_us(each.at), each.queue_name, each.task_name, _counted(each.counts))
        for each in found
    ]


def _counted(counts: Mapping[str, int]) -> CountedTasks:
    waits, runs = [counts[name] for name in WAIT], [counts[name] for name in RUN]
    finished = {name: counts[name] for name in ENDINGS}
    # What code before these counters counted, which did not say how they ended.
    finished["cancelled"] += counts["other"]
    return CountedTasks(
        sent=counts["sent"],
        finished=finished,
        retried=counts["retried"],
        snoozed=counts["snoozed"],
        interrupted=counts["interrupted"],
        wait=_percentiles(waits, counts["wait_us"]),
        run=_percentiles(runs, counts["run_us"]),
        wait_buckets=waits,
        run_buckets=runs,
        wait_seconds=counts["wait_us"] / 1_000_000,
        run_seconds=counts["run_us"] / 1_000_000,
    )


def _percentiles(buckets: Sequence[int], sum_us: int) -> Percentiles:
    number = sum(buckets)
    return Percentiles(
        percentile(buckets, 0.5),
        percentile(buckets, 0.95),
        percentile(buckets, 0.99),
        sum_us / number / 1_000_000 if number else None,
    )


def _depth(found: statistics.Depth) -> QueueDepth:
    return QueueDepth(
        found.queue_name,
        found.pending,
        found.scheduled,
        found.claimed,
        found.running,
        found.dead,
        found.oldest_us / 1_000_000,
    )
