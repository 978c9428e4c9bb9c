"""The four charts of the overview, from the counters that workers keep."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.stats_control import CountedTasks, StatsSeries
from holdfast.web.drawing.chart import Plot, bridged, plot, round_span
from holdfast.web.pages.words import compact, count_of, duration, number, percent, round_duration

__all__ = [
    "SHORT",
    "Chart",
    "ChartKey",
    "charts_of",
    "depth_of",
    "said_at",
    "ticks_of",
    "times_of",
]

SHORT: Final = 90_000
"""Seconds up to which a time of day says which moment is meant."""
_LATELY: Final = 5

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ChartKey:
    """What one line means."""

    hue: str
    text: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart, ready to be drawn."""

    id: str
    title: str
    figure: str
    unit: str
    keys: Sequence[ChartKey]
    said: str
    """Beside the key."""
    plot: Plot
    ticks: Sequence[str]
    """Top, middle, bottom."""
    times: Sequence[str]
    label: str
    """In a sentence, for those who do not see it."""
    link: str = ""
    empty: str = ""
    values: Sequence[tuple[str, str]] = ()
    """For each step its time and its value, as they are said under the pointer."""

    @property
    def values_json(self) -> str:
        """The same for the page's script."""
        return json.dumps(self.values) if not self.empty else "[]"


def charts_of(series: StatsSeries, *, run_time: bool, pending: int | None = None) -> list[Chart]:
    """Throughput, wait or run time, failures, depth; all over the same time. `pending`: how many
    there are now, where the charts end now."""
    times = times_of(series.start, series.until)
    counted = {point.at: point.counted for point in series.points}
    steps = [counted.get(at) for at in series.times]
    return [
        _throughput(series, steps, times),
        _latency(series, steps, times, run_time=run_time),
        _failures(series, steps, times),
        _depth(series, times, pending),
    ]


def _throughput(
    series: StatsSeries, steps: Sequence[CountedTasks | None], times: Sequence[str]
) -> Chart:
    minutes = series.step.total_seconds() / 60
    values = [0.0 if each is None else each.finished["completed"] / minutes for each in steps]
    total = sum(each.finished["completed"] for each in steps if each is not None)
    now = _lately(values)
    return Chart(
        "throughput",
        "Throughput",
        number(round(now)) if total else "",
        "/min",
        [ChartKey("completed", "completed")],
        f"{total:,} in all",
        plot(values),
        ticks_of(plot(values).top, compact),
        times,
        f"Tasks completed per minute: {number(now)} lately",
        empty="" if total else "Shows with the first ending",
        values=_said(series, ("", values, compact)),
    )


def _latency(
    series: StatsSeries,
    steps: Sequence[CountedTasks | None],
    times: Sequence[str],
    *,
    run_time: bool,
) -> Chart:
    def of(name: str) -> list[float | None]:
        found = [None if each is None else each.run if run_time else each.wait for each in steps]
        return [None if each is None else getattr(each, name) for each in found]

    high, middle = of("p95"), of("p50")
    known = [value for value in high if value is not None]
    median = next((value for value in reversed(middle) if value is not None), None)
    drawn = plot(bridged(high), bridged(middle), rounded=round_span)
    title = "Run time" if run_time else "Wait"
    return Chart(
        "run" if run_time else "wait",
        title,
        duration(known[-1]) if known else "",
        "p95",
        [
            ChartKey("running" if run_time else "pending", "p95"),
            ChartKey(
                "waiting", f"p50 {duration(median)}" if median is not None else "p50", dashed=True
            ),
        ],
        "",
        drawn,
        ticks_of(drawn.top, round_duration),
        times,
        f"{title} of tasks, 95th percentile: {duration(known[-1]) if known else 'nothing yet'}",
        empty=""
        if known
        else ("Start to end, p50 and p95" if run_time else "Until a worker is free"),
        values=_said(series, ("p95", high, duration), ("p50", middle, duration)),
    )


def _failures(
    series: StatsSeries, steps: Sequence[CountedTasks | None], times: Sequence[str]
) -> Chart:
    values = [0.0 if each is None else float(each.failures) for each in steps]
    total = int(sum(values))
    ended = sum(each.ended for each in steps if each is not None)
    drawn = plot(values, bars=True)
    return Chart(
        "failures",
        "Failures",
        f"{total:,}" if ended else "",
        "in all",
        [ChartKey("failed", f"{percent(total / ended)} of endings" if ended else "")],
        "",
        drawn,
        ticks_of(drawn.top, compact),
        times,
        f"Tasks that ended badly: {count_of(total, 'failure')}",
        link="by cause" if total else "",
        empty="" if ended else "None so far",
        values=_said(series, ("", values, compact)),
    )


def _depth(series: StatsSeries, times: Sequence[str], pending: int | None) -> Chart:
    values = depth_of(series, None)
    if pending is not None and (pending or any(value is not None for value in values)):
        # The last step says what it was some seconds ago.
        values[-1] = float(pending)
    known = [value for value in values if value is not None]
    now = known[-1] if known else 0.0
    drawn = plot(values)
    return Chart(
        "depth",
        "Depth",
        number(now) if known else "",
        "waiting to run",
        [ChartKey("stalled", "pending")],
        f"at most {max(known):,.0f}" if known else "",
        drawn,
        ticks_of(drawn.top, compact),
        times,
        f"Tasks that wait for a worker: {number(now)}",
        empty="" if known else "Nothing pending",
        values=_said(series, ("", values, compact)),
    )


def depth_of(series: StatsSeries, queue: str | None) -> list[float | None]:
    """How many were pending at each step, in one queue or in all; None where nobody looked."""
    found: defaultdict[datetime, float] = defaultdict(float)
    for point in series.depth:
        if queue is None or point.depth.queue == queue:
            found[point.at] += point.depth.pending
    return [found.get(at) for at in series.times]


def said_at(
    times: Sequence[datetime],
    lines: Sequence[tuple[str, Values, Callable[[float], str]]],
    *,
    short: bool,
) -> list[tuple[str, str]]:
    """For each step its time, and in words what each line is there; names are said of several."""
    form = "%H:%M UTC" if short else "%d %b %H:%M UTC"
    found = []
    for place, at in enumerate(times):
        parts = [(name, values[place], say) for name, values, say in lines]
        known = [
            f"{name} {say(value)}" if name else say(value)
            for name, value, say in parts
            if value is not None
        ]
        found.append((f"{at:{form}}", ", ".join(known) or "–"))
    return found


def _lately(values: Sequence[float]) -> float:
    """The mean of the last steps that are whole: the last of all has only begun."""
    some = values[-_LATELY - 1 : -1] or values
    return sum(some) / len(some) if some else 0.0


def ticks_of(top: float, said: Callable[[float], str]) -> list[str]:
    """What the y axis says: top, middle, bottom."""
    return [said(top), said(top / 2), "0"]


def times_of(start: datetime, until: datetime) -> list[str]:
    """What the x axis says: left, middle, right."""
    form = "%H:%M" if (until - start).total_seconds() < SHORT else "%d %b"
    return [f"{at:{form}}" for at in (start, start + (until - start) / 2, until)]


def _said(
    series: StatsSeries, *lines: tuple[str, Values, Callable[[float], str]]
) -> list[tuple[str, str]]:
    return said_at(series.times, lines, short=_is_short(series))


def _is_short(series: StatsSeries) -> bool:
    return (series.until - series.start).total_seconds() < SHORT
