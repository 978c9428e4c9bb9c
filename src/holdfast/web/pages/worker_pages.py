"""Workers: all of them, and one with what it runs, its settings and what it can run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.responses import RedirectResponse, Response

from holdfast.client.info import TaskInfo
from holdfast.client.worker_control import ChildUsage, WorkerInfo
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.chart_look import ChartLook
from holdfast.web.pages.chart_range import ChartRange
from holdfast.web.pages.fleet import worker_rows
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_list import rows_of
from holdfast.web.pages.template import render
from holdfast.web.pages.value_tree import value_tree
from holdfast.web.pages.worker_charts import LEAST_STEP, worker_charts
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_SHOWS: Final = ("all", "live", "gone", "stopped")
_MOST: Final = 500
_IN_HAND: Final = 100
"""Of how many running tasks the list says which they are."""
_LAST: Final = 20
_NAMED: Final = 3
"""How many tasks of one child are named."""


async def show_workers(context: Context) -> Response:
    """The list."""
    asked = context.request.query_params.get("show", "all")
    chosen = asked if asked in _SHOWS else "all"
    now = await context.control.anow()
    control = context.control
    found = await control.workers.alist(stopped=chosen == "stopped")
    running = await control.tasks.alist(status=("CLAIMED", "RUNNING"), limit=_IN_HAND)
    rows = worker_rows(found, running.tasks)
    wanted = {"live": ("alive",), "gone": ("silent",), "stopped": ("stopped",)}
    shown = [row for row in rows if row.info.state in wanted.get(chosen, ("alive", "silent"))]
    alive = [row for row in rows if row.info.state == "alive"]
    return render(
        context,
        "workers.html",
        now=now,
        here="workers",
        title="Workers",
        navigation=await navigation(context),
        rows=shown[:_MOST],
        left_out=max(0, len(shown) - _MOST),
        chosen=chosen,
        shows=_SHOWS,
        alive=len(alive),
        gone=[row for row in rows if row.info.state == "silent"],
        busy=sum(row.children_busy for row in alive),
        slots=sum(row.slots for row in alive),
        unreadable=found.unreadable,
    )


@dataclass(frozen=True, slots=True)
class ChildRow:
    """One child of a worker, and what it runs."""

    used: ChildUsage
    tasks: Sequence[TaskInfo]

    @property
    def shown(self) -> Sequence[TaskInfo]:
        """As many as there is room for."""
        return self.tasks[:_NAMED]


def _children(info: WorkerInfo, running: Sequence[TaskInfo]) -> list[ChildRow]:
    """Those of a worker that is there; what they used is as of when it was seen."""
    if info.state != "alive":
        return []
    by_pid: defaultdict[int | None, list[TaskInfo]] = defaultdict(list)
    for task in running:
        if task.status is TaskStatus.RUNNING:
            by_pid[task.worker_pid].append(task)
    return [ChildRow(used, by_pid[used.pid]) for used in info.children]


async def show_worker(context: Context) -> Response:
    """One worker."""
    id: str = context.request.path_params["id"]
    control = context.control
    now = await control.anow()
    found = [each for each in await control.workers.alist(stopped=True) if each.id == id]
    if not found:
        raise Refusal(404, "not_found", f"there is no worker {id!r:.100}, or no more")
    shown = ChartRange.read(context.request, now)
    running = await control.tasks.alist(worker_id=id, status=("CLAIMED", "RUNNING"), limit=_IN_HAND)
    last = await control.tasks.alist(worker_id=id, limit=_LAST)
    row = worker_rows(found, running.tasks)[0]
    step = max(LEAST_STEP, shown.last / 120)
    history = await control.workers.ahistory(id, **shown.options, step=step)
    return render(
        context,
        "worker.html",
        now=now,
        here="workers",
        title=f"{found[0].hostname} · {found[0].pid}",
        navigation=await navigation(context),
        row=row,
        range=shown,
        span=(history.start, history.until),
        look=ChartLook.read(context.request),
        charts=worker_charts(history, row.slots),
        info=found[0],
        children=_children(found[0], running.tasks),
        settings=value_tree(found[0].settings),
        running=await rows_of(context, running.tasks, now),
        more_running=running.next is not None,
        last=await rows_of(context, last.tasks, now),
        said=context.request.query_params.get("done", ""),
    )


async def stop(context: Context) -> Response:
    """Order it to stop: it starts nothing more, and each task's policy says what becomes of it."""
    return await _order(context, drain=False)


async def drain(context: Context) -> Response:
    """Order it to finish what it runs, and to stop then."""
    return await _order(context, drain=True)


async def _order(context: Context, *, drain: bool) -> Response:
    id: str = context.request.path_params["id"]
    workers = context.control.workers
    async with context.acting():
        done = await (workers.adrain(id) if drain else workers.astop(id))
    if not done.get(id):
        raise Refusal(409, "refused", f"worker {id:.100} has stopped already, or is not known")
    word = "drain" if drain else "stop"
    return RedirectResponse(context.url(f"/workers/{id}", done=word), status_code=303)


_page = partial(WebRoute, kind="page")

ROUTES: Final = (
    _page("/workers", ("GET",), show_workers, needs=Role.READ, name="workers"),
    _page("/workers/{id}", ("GET",), show_worker, needs=Role.READ, name="worker"),
    _page("/workers/{id}/stop", ("POST",), stop, needs=Role.ADMIN, name="worker-stop"),
    _page("/workers/{id}/drain", ("POST",), drain, needs=Role.ADMIN, name="worker-drain"),
)
