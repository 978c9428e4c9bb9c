"""`/stats`: what was done over time, and how deep queues are and were."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.stats_control import (
    CountedTasks,
    Percentiles,
    QueueDepth,
    SeriesOptions,
    StatsPoint,
)
from holdfast.web.api.operation import operation
from holdfast.web.api.task_filter import Moment, Name
from holdfast.web.context import Context

__all__ = ["ROUTES", "Span", "seconds_or_text"]

Span = Annotated[
    str, Meta(max_length=30, description="Seconds, or text such as `90s`, `12h`, `30d`.")
]


class SeriesQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is shown."""

    last: Span | UnsetType = UNSET
    """How far back it goes; default: an hour."""
    until: Moment | UnsetType = UNSET
    """Where it ends; default: now."""
    step: Span | UnsetType = UNSET
    """Whole minutes. Default: about 120 steps."""
    queue: Name | UnsetType = UNSET
    task: Name | UnsetType = UNSET
    by: Literal["queue", "task"] | UnsetType = UNSET
    """A point for each queue, or for each task of each queue; default: one for all."""

    @property
    def options(self) -> SeriesOptions:
        """The same, for `app.control.stats`."""
        given: Any = {name: getattr(self, name) for name in SeriesQuery.__struct_fields__}
        options: SeriesOptions = {  # type: ignore[assignment]
            name: seconds_or_text(value) if name in ("last", "step") else value
            for name, value in given.items()
            if value is not UNSET
        }
        return options


def seconds_or_text(span: Any) -> Any:
    """A span of time of a query: of digits alone, it is seconds."""
    is_number = isinstance(span, str) and span.isascii() and span.isdigit()
    return int(span) if is_number else span


class PercentilesDocument(msgspec.Struct, kw_only=True):
    """Seconds that half, 95 % and 99 % did not exceed; null if there was nothing to measure."""

    p50: float | None
    p95: float | None
    p99: float | None
    mean: float | None

    @classmethod
    def of(cls, found: Percentiles) -> PercentilesDocument:
        """What was measured."""
        return cls(p50=found.p50, p95=found.p95, p99=found.p99, mean=found.mean)


class CountedDocument(msgspec.Struct, kw_only=True):
    """What was counted."""

    sent: int
    finished: dict[str, int]
    """By the status they ended in."""
    retried: int
    snoozed: int
    interrupted: int
    wait: PercentilesDocument
    run: PercentilesDocument

    @classmethod
    def of(cls, counted: CountedTasks) -> CountedDocument:
        """What was counted."""
        return cls(
            sent=counted.sent,
            finished=dict(counted.finished),
            retried=counted.retried,
            snoozed=counted.snoozed,
            interrupted=counted.interrupted,
            wait=PercentilesDocument.of(counted.wait),
            run=PercentilesDocument.of(counted.run),
        )


class PointDocument(msgspec.Struct, kw_only=True):
    """One step, of one queue or task if that was asked for."""

    at: datetime
    queue: str | None
    task: str | None
    counted: CountedDocument


class DepthDocument(msgspec.Struct, kw_only=True):
    """How many tasks are in a queue, by where they stand; counted up to 100,000."""

    queue: str
    pending: int
    scheduled: int
    claimed: int
    running: int
    dead: int
    oldest: float
    """Seconds for which the oldest has been claimable."""

    @classmethod
    def of(cls, depth: QueueDepth) -> DepthDocument:
        """How deep a queue is."""
        return cls(**{name: getattr(depth, name) for name in cls.__struct_fields__})


class DepthPointDocument(msgspec.Struct, kw_only=True):
    """How deep a queue was: the most of a step."""

    at: datetime
    depth: DepthDocument


class SeriesDocument(msgspec.Struct, kw_only=True):
    """What was counted from `start` to `until`, in steps; one without counts is absent."""

    start: datetime
    until: datetime
    step: float
    points: list[PointDocument]
    depth: list[DepthPointDocument]


class SummaryDocument(msgspec.Struct, kw_only=True):
    """The same in one step."""

    points: list[PointDocument]


class DepthList(msgspec.Struct, kw_only=True):
    """How deep each queue is now."""

    queues: list[DepthDocument]


def _points(found: Sequence[StatsPoint]) -> list[PointDocument]:
    return [
        PointDocument(
            at=point.at,
            queue=point.queue,
            task=point.task,
            counted=CountedDocument.of(point.counted),
        )
        for point in found
    ]


@operation("GET", "/stats/series", tag="stats")
async def show_series(context: Context, query: SeriesQuery) -> SeriesDocument:
    """Show what was sent and ended, how long it waited and ran, and how deep queues were."""
    series = await context.control.stats.aseries(**query.options)
    return SeriesDocument(
        start=series.start,
        until=series.until,
        step=series.step.total_seconds(),
        points=_points(series.points),
        depth=[
            DepthPointDocument(at=point.at, depth=DepthDocument.of(point.depth))
            for point in series.depth
        ],
    )


@operation("GET", "/stats/summary", tag="stats")
async def show_summary(context: Context, query: SeriesQuery) -> SummaryDocument:
    """Show the same in one step: a point for each queue or task."""
    return SummaryDocument(points=_points(await context.control.stats.asummary(**query.options)))


@operation("GET", "/stats/depths", tag="stats")
async def show_depths(context: Context) -> DepthList:
    """Show how deep each queue is now."""
    found = await context.control.stats.adepths()
    return DepthList(queues=[DepthDocument.of(depth) for depth in found])


ROUTES: Final = (show_series, show_summary, show_depths)
