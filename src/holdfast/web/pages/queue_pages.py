"""Queues: all of them, and one with its depth, its limits and who serves it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from starlette.responses import RedirectResponse, Response

from holdfast.core.errors import ConfigError
from holdfast.core.options.limit import Limit
from holdfast.web.access import Role
from holdfast.web.context import Context
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
from holdfast.web.pages.task_list import rows_of
from holdfast.web.pages.template import render
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_SHOWN_TASKS: Final = 20


async def show_queues(context: Context) -> Response:
    """The list."""
    control = context.control
    now = await control.anow()
    shown = ChartRange.read(context.request, now)
    series = await shared(
        context.app,
        ("series", shown.chosen, shown.until),
        lambda: control.stats.aseries(**shown.options),
    )
    counts = await read_counts(context, shown, now)
    depths = await read_depths(context)
    queues = await read_queues(context)
    workers = await read_workers(context)
    rows = queue_rows(queues, depths, series, counts, workers)
    return render(
        context,
        "queues.html",
        now=now,
        here="queues",
        title="Queues",
        navigation=await navigation(context),
        rows=rows,
        range=shown,
        pending=sum(row.pending for row in rows),
        paused=sum(row.info.paused_at is not None for row in rows),
        unreadable=queues.unreadable,
    )


async def show_queue(context: Context) -> Response:
    """One queue."""
    name: str = context.request.path_params["name"]
    control = context.control
    now = await control.anow()
    shown = ChartRange.read(context.request, now)
    series = await control.stats.aseries(**shown.options, queue=name)
    counts = await read_counts(context, shown, now)
    by_task = await control.stats.asummary(**shown.options, queue=name, by="task")
    depths = [depth for depth in await read_depths(context) if depth.queue == name]
    queues = [queue for queue in await read_queues(context) if queue.name == name]
    workers = [worker for worker in await read_workers(context) if name in worker.queues]
    counts = replace(counts, points=[point for point in counts.points if point.queue == name])
    rows = queue_rows(queues, depths, series, counts, workers)
    tasks = await control.tasks.alist(queue=name, limit=_SHOWN_TASKS)
    row = next((row for row in rows if row.info.name == name), None)
    if row is None and not tasks.tasks and not tasks.unreadable:
        raise Refusal(404, "not_found", f"there is no sign of a queue {name!r:.200}")
    look = ChartLook.read(context.request)
    return render(
        context,
        "queue.html",
        now=now,
        here="queues",
        title=name,
        navigation=await navigation(context),
        name=name,
        row=row,
        range=shown,
        span=(series.start, series.until),
        look=look,
        charts=charts_of(series, run_time=look.run_time, pending=pending_now(depths, shown)),
        by_task=sorted(by_task, key=lambda point: -point.counted.ended)[:20],
        fleet=worker_rows(workers),
        tasks=await rows_of(context, tasks.tasks, now),
        said=context.request.query_params.get("done", "") == "limit",
    )


async def pause(context: Context) -> Response:
    """Let nothing more be claimed from it."""
    async with context.acting():
        await context.control.queues.apause(context.request.path_params["name"])
    return _back(context)


async def resume(context: Context) -> Response:
    """Let it go on."""
    async with context.acting():
        await context.control.queues.aresume(context.request.path_params["name"])
    return _back(context)


async def limit(context: Context) -> Response:
    """How many at once and how fast, in the whole fleet; nothing: no limit."""
    name: str = context.request.path_params["name"]
    fields = await context.form()
    concurrency = (fields.get("concurrency") or [""])[-1].strip()
    rate = (fields.get("rate") or [""])[-1].strip()
    if concurrency and not (
        concurrency.isascii() and concurrency.isdigit() and len(concurrency) < 10
    ):
        raise ConfigError(
            f"concurrency={concurrency!r:.50} is not a whole number", option="concurrency"
        )
    wanted = None
    if concurrency or rate:
        wanted = Limit(concurrency=int(concurrency) if concurrency else None, rate=rate or None)
    async with context.acting():
        await context.control.queues.alimit(name, wanted)
    return RedirectResponse(context.url(f"/queues/{name}", done="limit"), status_code=303)


def _back(context: Context) -> Response:
    """To where the button was: the overview, the list, or the queue itself."""
    name = context.request.path_params["name"]
    fields = context.request.query_params.get("from", "")
    path = {"overview": "/", "queues": "/queues"}.get(fields, f"/queues/{name}")
    return RedirectResponse(context.url(path), status_code=303)


_page = partial(WebRoute, kind="page")

ROUTES: Final = (
    _page("/queues", ("GET",), show_queues, needs=Role.READ, name="queues"),
    _page("/queues/{name}", ("GET",), show_queue, needs=Role.READ, name="queue"),
    _page("/queues/{name}/pause", ("POST",), pause, needs=Role.OPERATE, name="queue-pause"),
    _page("/queues/{name}/resume", ("POST",), resume, needs=Role.OPERATE, name="queue-resume"),
    _page("/queues/{name}/limit", ("POST",), limit, needs=Role.ADMIN, name="queue-limit"),
)
