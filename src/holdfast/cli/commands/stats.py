"""`holdfast stats`: rates, waits and run times of the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Literal

import click

from holdfast.cli import completion
from holdfast.cli.render import times
from holdfast.cli.render.table import Cell, TextColumn, Value
from holdfast.cli.session import CommandSession, operates
from holdfast.client.stats_control import Percentiles, QueueDepth, SeriesOptions, StatsPoint
from holdfast.core import moment

_RATES: Final = ("in/min", "out/min")
_NUMBERS: Final = ("sent", "ended", "failed", "retried")
_DEPTHS: Final = ("pending", "running")
_TIMES: Final = ("wait p50", "wait p95", "run p50", "run p95")
_COUNTS: Final = len(_RATES) + len(_NUMBERS)
_ROOM: Final = {"sent": 120, "ended": 120, "retried": 105, "wait p50": 95, "run p50": 95}
"""At terminals of fewer columns they are left out."""


@click.command("stats")
@click.option(
    "--last",
    default="15m",
    show_default=True,
    metavar="TIME",
    callback=times.span,
    help="How far back: 15m, 6h, 7d.",
)
@click.option("--by", type=click.Choice(["queue", "task"]), default="queue", show_default=True)
@click.option("-q", "--queue", help="Only of this queue.", shell_complete=completion.queues)
@click.option(
    "-n",
    "--name",
    "task",
    help="Only of tasks with this name.",
    shell_complete=completion.task_names,
)
@operates()
def stats(
    session: CommandSession,
    last: timedelta,
    by: Literal["queue", "task"],
    queue: str | None,
    task: str | None,
) -> None:
    """Rates, waits and run times of the last minutes.

    WAIT is from when a task could run until it was given to a process, RUN the time of its code.
    They are read from counters of the workers, never from the tasks; sends are counted a few
    seconds later.
    """
    asked: SeriesOptions = {"last": last, "by": by}
    if queue is not None:
        asked["queue"] = queue
    if task is not None:
        asked["task"] = task
    found = session.control.stats.summary(**asked)
    depths = [
        depth
        for depth in (session.control.stats.depths() if task is None else ())
        if queue in (None, depth.queue)
    ]
    if session.screen.as_json:
        session.screen.document(
            {
                "last": last.total_seconds(),
                "counted": [_document(point) for point in found],
                "depths": [{n: getattr(d, n) for n in QueueDepth.__slots__} for d in depths],
            }
        )
        return
    if by == "task":
        heads = ["queue", "task", *_RATES, *_NUMBERS, *_TIMES]
        rows = [
            [point.queue, point.task, *_counted(point, last), *_lengths(point)] for point in found
        ]
    else:
        heads = ["queue", *_DEPTHS, *_RATES, *_NUMBERS, *_TIMES]
        rows = _by_queue(found, depths, last)
    texts = ("queue", "task")
    columns = [
        TextColumn(name, right=name not in texts, whole=name not in texts, room=_ROOM.get(name, 0))
        for name in heads
    ]
    session.screen.table(columns, rows)
    if not rows:
        session.screen.remark(
            f"nothing was counted in the last {times.length(last)}: is a worker at work? "
            f"({session.place.described})"
        )


def _by_queue(
    found: Sequence[StatsPoint], depths: Sequence[QueueDepth], last: timedelta
) -> list[list[Value]]:
    points = {point.queue or "": point for point in found}
    deep = {depth.queue: depth for depth in depths}
    rows: list[list[Value]] = []
    for name in sorted(points.keys() | deep.keys()):
        point, depth = points.get(name), deep.get(name)
        now = (0, 0) if depth is None else (depth.pending, depth.running)
        rows.append(
            [
                name,
                *map(_number, now),
                *([_number(0)] * _COUNTS if point is None else _counted(point, last)),
                *([None] * len(_TIMES) if point is None else _lengths(point)),
            ]
        )
    return rows


def _counted(point: StatsPoint, last: timedelta) -> list[Value]:
    counted = point.counted
    numbers = (counted.sent, counted.ended, counted.failures, counted.retried)
    return [
        *(_rate(number, last) for number in (counted.sent, counted.ended)),
        *(_number(number) for number in numbers),
    ]


def _rate(number: int, last: timedelta) -> Cell:
    # As many minutes as are counted: whole ones, and at least one.
    rate = number / max(1.0, last / timedelta(minutes=1))
    return Cell(f"{rate:,.0f}" if rate >= 10 or not rate else f"{rate:.1f}", piped=f"{rate:.1f}")


def _lengths(point: StatsPoint) -> list[Value]:
    wait, run = point.counted.wait, point.counted.run
    return [_seconds(each) for each in (wait.p50, wait.p95, run.p50, run.p95)]


def _number(number: int) -> Cell:
    return Cell(f"{number:,}", piped=str(number))


def _seconds(seconds: float | None) -> Cell | None:
    if seconds is None:
        return None
    return Cell(moment.length(seconds, 1), piped=f"{seconds:.3f}s")


def _document(point: StatsPoint) -> dict[str, Any]:
    counted = point.counted
    return {
        "queue": point.queue,
        "task": point.task,
        "sent": counted.sent,
        "finished": dict(counted.finished),
        "retried": counted.retried,
        "snoozed": counted.snoozed,
        "interrupted": counted.interrupted,
        "wait": _percentiles(counted.wait),
        "run": _percentiles(counted.run),
    }


def _percentiles(found: Percentiles) -> dict[str, float | None]:
    return {"p50": found.p50, "p95": found.p95, "p99": found.p99, "mean": found.mean}
