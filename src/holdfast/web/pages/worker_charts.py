"""The charts of one worker, from the snapshots that it makes of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.client.worker_history import WorkerHistory, WorkerPoint
from holdfast.web.drawing.chart import bridged, plot
from holdfast.web.pages.charts import SHORT, Chart, ChartKey, said_at, ticks_of, times_of
from holdfast.web.pages.words import compact, memory, number

__all__ = ["LEAST_STEP", "worker_charts"]

LEAST_STEP: Final = 60.0
"""Seconds: by default a worker makes a snapshot every 30, so none of these steps is empty."""
_GAP: Final = 3
"""Steps without a snapshot over which a line goes on; a longer gap is one."""

Values = Sequence[float | None]


def worker_charts(history: WorkerHistory, slots: int) -> list[Chart]:
    """How many of its children were busy, and what it needed of processor and memory."""
    found = {point.at: point for point in history.points}
    steps = [found.get(at) for at in history.times]
    return [_busy(history, steps, slots), _cpu(history, steps), _memory(history, steps)]


def _busy(history: WorkerHistory, steps: Sequence[WorkerPoint | None], slots: int) -> Chart:
    most = _values([None if each is None else float(each.most_running) for each in steps])
    mean = _values([None if each is None else each.tasks_running for each in steps])
    known = [value for value in mean if value is not None]
    drawn = plot(most, mean, least=float(slots))
    return Chart(
        "busy",
        "Tasks at once",
        number(known[-1]) if known else "",
        f"of {slots:,}" if slots else "",
        [ChartKey("running", "at most"), ChartKey("waiting", "on average", dashed=True)],
        "",
        drawn,
        ticks_of(drawn.top, compact),
        times_of(history.start, history.until),
        "Tasks that ran at once over time",
        empty="" if known else "Shows with its first snapshot",
        values=said_at(
            history.times,
            [("at most", most, number), ("on average", mean, number)],
            short=_is_short(history),
        ),
    )


def _cpu(history: WorkerHistory, steps: Sequence[WorkerPoint | None]) -> Chart:
    most = _values([None if each is None else each.most_cpu_percent for each in steps])
    mean = _values([None if each is None else each.cpu_percent for each in steps])
    known = [value for value in mean if value is not None]
    drawn = plot(most, mean)
    return Chart(
        "cpu",
        "Processor",
        _percent(known[-1]) if known else "",
        "of one core",
        [ChartKey("claimed", "at most"), ChartKey("waiting", "on average", dashed=True)],
        "",
        drawn,
        ticks_of(drawn.top, _percent),
        times_of(history.start, history.until),
        "Processor time over time, in percent of one core",
        empty="" if known else "Not measured",
        values=said_at(
            history.times,
            [("at most", most, _percent), ("on average", mean, _percent)],
            short=_is_short(history),
        ),
    )


def _memory(history: WorkerHistory, steps: Sequence[WorkerPoint | None]) -> Chart:
    values = _values([None if each is None else each.memory_usage_mb for each in steps])
    known = [value for value in values if value is not None]
    drawn = plot(values)
    return Chart(
        "memory",
        "Memory",
        memory(known[-1]) if known else "",
        "",
        [ChartKey("scheduled", "supervisor and children")],
        f"at most {memory(max(known))}" if known else "",
        drawn,
        ticks_of(drawn.top, memory),
        times_of(history.start, history.until),
        "Memory in use over time",
        empty="" if known else "Not measured",
        values=said_at(history.times, [("", values, memory)], short=_is_short(history)),
    )


def _values(values: Values) -> Values:
    return bridged(values, _GAP)


def _percent(value: float) -> str:
    return f"{value:,.0f} %"


def _is_short(history: WorkerHistory) -> bool:
    return (history.until - history.start).total_seconds() < SHORT
