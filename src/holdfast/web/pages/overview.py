"""The first page: what needs attention, then how things go, then queues and workers."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.attention import notices
from holdfast.web.pages.charts import RANGES, charts_of
from holdfast.web.pages.fleet import queue_rows, worker_rows
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.template import render
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_SHOWN_QUEUES: Final = 8
_SHOWN_WORKERS: Final = 12


async def show_overview(context: Context) -> Response:
    """The page."""
    asked = context.request.query_params.get("r", "1h")
    chosen = asked if asked in RANGES else "1h"
    run_time = context.request.query_params.get("chart") == "run"
    last = RANGES[chosen]
    control = context.control
    now = await control.anow()
    series = await control.stats.aseries(last=last)
    by_task = await control.stats.asummary(last=last, by="task")
    by_queue = await control.stats.asummary(last=last, by="queue")
    depths = await control.stats.adepths()
    queues = await control.queues.alist()
    workers = await control.workers.alist()
    rows = queue_rows(queues, depths, series, by_queue, workers)
    fleet = worker_rows(workers)
    newest = await control.tasks.alist(limit=1)
    alive = [row for row in fleet if row.info.state == "alive"]
    return render(
        context,
        "overview.html",
        now=now,
        here="overview",
        title="Overview",
        navigation=await navigation(context),
        store=context.app.config.store.masked,
        ranges=list(RANGES),
        chosen=chosen,
        run_time=run_time,
        notices=await notices(context, series, by_task, queues, workers, now),
        charts=charts_of(series, run_time=run_time),
        rows=rows[:_SHOWN_QUEUES],
        queues=len(rows),
        fleet=fleet[:_SHOWN_WORKERS],
        workers=len(fleet),
        alive=len(alive),
        gone=sum(row.info.state == "silent" for row in fleet),
        busy=sum(row.busy for row in alive),
        slots=sum(row.slots for row in alive),
        is_new=not newest.tasks and not newest.unreadable,
        unreadable=[*queues.unreadable, *workers.unreadable],
    )


ROUTES: Final = (
    WebRoute("/", ("GET",), show_overview, needs=Role.READ, name="overview", kind="page"),
)
