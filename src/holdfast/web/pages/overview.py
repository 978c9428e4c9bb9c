"""The first page: what needs attention, then how things go, then queues and workers."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.attention import notices
from holdfast.web.pages.chart_look import ChartLook
from holdfast.web.pages.chart_range import ChartRange
from holdfast.web.pages.charts import charts_of
from holdfast.web.pages.fleet import (
    pending_now,
    queue_rows,
    read_counts,
    read_depths,
    read_queues,
    read_workers,
    worker_rows,
)
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.shared_reads import shared
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_SHOWN_QUEUES: Final = 8
_SHOWN_WORKERS: Final = 12


async def show_overview(context: Context) -> Response:
    """The page."""
    look = ChartLook.read(context.request)
    control = context.control
    now = await control.anow()
    shown = ChartRange.read(context.request, now)
    key = (shown.chosen, shown.until)
    series = await shared(
        context.app, ("series", *key), lambda: control.stats.aseries(**shown.options)
    )
    by_task = await shared(
        context.app, ("by task", *key), lambda: control.stats.asummary(**shown.options, by="task")
    )
    counts = await read_counts(context, shown, now)
    depths = await read_depths(context)
    queues = await read_queues(context)
    workers = await read_workers(context)
    rows = queue_rows(queues, depths, series, counts, workers)
    fleet = worker_rows(workers)
    newest = await control.tasks.alist(limit=1)
    alive = [row for row in fleet if row.info.state == "alive"]
    found = []
    if shown.until is None:
        found = await notices(context, series, by_task, rows, workers, now, shown)
    return render(
        context,
        "overview.html",
        now=now,
        here="overview",
        title="Overview",
        navigation=await navigation(context),
        store=context.app.config.store.masked,
        range=shown,
        span=(series.start, series.until),
        look=look,
        notices=found,
        charts=charts_of(series, run_time=look.run_time, pending=pending_now(depths, shown)),
        rows=rows[:_SHOWN_QUEUES],
        queues=len(rows),
        fleet=fleet[:_SHOWN_WORKERS],
        workers=len(fleet),
        alive=len(alive),
        gone=sum(row.info.state == "silent" for row in fleet),
        busy=sum(row.children_busy for row in alive),
        slots=sum(row.slots for row in alive),
        is_new=not newest.tasks and not newest.unreadable,
        unreadable=[*queues.unreadable, *workers.unreadable],
    )


ROUTES: Final = (
    WebRoute("/", ("GET",), show_overview, needs=Role.READ, name="overview", kind="page"),
)
