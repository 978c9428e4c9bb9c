"""The list of tasks: filters in the URL, pages by key, rows that stay where they are.

A page is the newest that fit. Sorted by something else it is longer, and says so if more fit than
it holds: no index has such an order, so what is not on the page is not part of it.

A page that is open asks again with the id of its first row (`top`): it is given the same rows as
they stand now, and how many newer ones there are, which wait behind a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from holdfast.client.control import TaskCounts, TaskPage
from holdfast.client.info import Attempt, TaskInfo
from holdfast.core.errors import ConfigError, TaskNotFound
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.fleet import read_depths
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.shared_reads import shared, spared
from holdfast.web.pages.task_address import short_id
from holdfast.web.pages.task_filter import SORTS, TaskChoice
from holdfast.web.pages.task_verbs import BULK_VERBS
from holdfast.web.pages.template import render
from holdfast.web.pages.words import duration
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "TaskRow", "rows_of"]

PAGE: Final = 50
_SORTED: Final = 200
"""How many are sorted together."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of a list."""

    info: TaskInfo
    duration: timedelta | None
    """Of the latest start."""
    tries: str
    detail: str
    """Its error, why it ended, or where it is."""

    @property
    def short(self) -> str:
        """Its id, as there is room for it."""
        return short_id(self.info.id)


async def show_tasks(context: Context) -> Response:
    """The page."""
    asked = _asked(context)
    problem = ""
    try:
        choice = TaskChoice.read(asked)
    except ConfigError as error:
        choice, problem = TaskChoice(), str(error)
    if choice.text is not None and asked.keys() <= {"text"}:
        found = await _meant(context, choice.text)
        if found is not None:
            return RedirectResponse(context.url(f"/tasks/{found}"), status_code=303)
    sort = _last(asked, "sort")
    sort = sort if sort.lstrip("-") in SORTS else "age"
    before, top = _id(_last(asked, "before")), _id(_last(asked, "top"))
    size = PAGE if sort == "age" else _SORTED
    now = await context.control.anow()
    page, newer = await spared(
        context.app,
        ("tasks", choice, before, top, size),
        lambda: _page(context, choice, now, before, top, size),
    )
    counts = await shared(
        context.app,
        ("counts", choice.queue),
        lambda: context.control.tasks.acount(queue=choice.queue),
    )
    rows = _sorted(await rows_of(context, page.tasks, now), sort)
    queues = await read_depths(context)
    shown = {**choice.query(), "sort": None if sort == "age" else sort}
    return render(
        context,
        "tasks.html",
        now=now,
        here="dead" if choice.dead else "tasks",
        title="Tasks",
        navigation=await navigation(context),
        choice=choice,
        query=shown,
        asked={name: values[-1] for name, values in asked.items() if values},
        problem=problem,
        rows=rows,
        newer=newer,
        most_newer=size,
        is_part=sort != "age" and (page.next is not None or before is not None),
        unreadable=page.unreadable,
        newest=context.url("/tasks", **shown) if before is not None else None,
        older=context.url("/tasks", **{**shown, "before": page.next}) if page.next else None,
        again=context.url(
            "/tasks",
            **{**shown, "before": before, "top": page.tasks[0].id if page.tasks else None},
        ),
        sort=sort,
        counts=counts,
        counted=_counted(counts, choice, len(rows) if page.next is None and not before else None),
        queues=[depth.queue for depth in queues],
        verbs=[verb for verb in BULK_VERBS if context.visitor.may(verb.needs)],
    )


async def _page(
    context: Context,
    choice: TaskChoice,
    now: datetime,
    before: UUID | None,
    top: UUID | None,
    size: int,
) -> tuple[TaskPage, int]:
    tasks = context.control.tasks
    where = choice.filter(now)
    page = await _filled(context, where, before, size)
    ids = [info.id for info in page.tasks]
    if top is None or before is not None or ids[:1] == [top]:
        return page, 0
    newer = ids.index(top) if top in ids else size
    first = (await tasks.ashow_many(top)).get(top)
    try:
        rest = await tasks.alist(before=top, limit=size - 1, **where)
    except TaskNotFound:
        # It has been deleted since, and its place with it.
        return page, 0
    kept = [*([first] if first is not None else []), *rest.tasks]
    return TaskPage(kept, rest.next, rest.unreadable), newer if ids else 0


async def _filled(context: Context, where: Any, before: UUID | None, limit: int) -> TaskPage:
    """A page, also where the first look at many tasks finds few that fit."""
    page = await context.control.tasks.alist(before=before, limit=limit, **where)
    if page.tasks or page.next is None:
        return page
    return await context.control.tasks.alist(before=page.next, limit=limit, **where)


async def _meant(context: Context, text: str) -> UUID | None:
    """The one task whose id was typed, if it was one."""
    try:
        found = await context.control.tasks.afind(text, limit=2)
    except TaskNotFound:
        return None
    return found[0] if len(found) == 1 else None


async def rows_of(context: Context, tasks: Sequence[TaskInfo], now: datetime) -> list[TaskRow]:
    """What a list says of these tasks."""
    tried = [each.id for each in tasks if each.attempt and not each.status.is_terminal]
    failed = await context.control.tasks.alast_errors(*tried) if tried else {}
    return [_row(context, each, failed.get(each.id), now) for each in tasks]


def _row(context: Context, info: TaskInfo, failed: Attempt | None, now: datetime) -> TaskRow:
    tries = f"{info.attempt:,}/{max(info.max_retries + 1, info.attempt):,}"
    detail = context.payloads.said(_detail(info, failed, now))
    return TaskRow(info, _duration(info, failed, now), tries, detail)


def _duration(info: TaskInfo, failed: Attempt | None, now: datetime) -> timedelta | None:
    if info.status is TaskStatus.RUNNING and info.started_at is not None:
        return max(timedelta(0), now - info.started_at)
    if info.status.is_terminal and info.started_at is not None and info.finished_at is not None:
        return max(timedelta(0), info.finished_at - info.started_at)
    return None if failed is None else failed.duration


def _detail(info: TaskInfo, failed: Attempt | None, now: datetime) -> str:
    match info.status:
        case TaskStatus.COMPLETED:
            return ""
        case TaskStatus.WAITING:
            needs = info.waits_for
            return f"waits for {needs:,} {'step' if needs == 1 else 'steps'}"
        case TaskStatus.RUNNING:
            said = info.progress.message if info.progress is not None else None
            parts = [info.stage, said]
            if info.cancel_requested_at is not None:
                parts.insert(0, "cancel requested")
            return ", ".join(part for part in parts if part)
        case TaskStatus.SCHEDULED | TaskStatus.PENDING | TaskStatus.CLAIMED:
            return _waiting(info, failed, now)
        case _:
            return _ending(info)


def _waiting(info: TaskInfo, failed: Attempt | None, now: datetime) -> str:
    parts = []
    if failed is not None:
        said = failed.error.type_name if failed.error is not None else None
        parts.append(said or failed.error_code or "failed")
    due = info.next_retry_at or info.run_at
    if info.status is TaskStatus.SCHEDULED and due is not None:
        word = "retry" if info.next_retry_at is not None else "due"
        parts.append(f"{word} in {duration(max(timedelta(0), due - now))}")
    return " · ".join(parts)


def _ending(info: TaskInfo) -> str:
    error = info.error
    if error is None:
        return info.failed_reason or info.error_code or info.status.meaning
    head = error.type_name or str(error.error_code)
    return f"{head}: {error.message}" if error.message else head


def _sorted(rows: list[TaskRow], sort: str) -> list[TaskRow]:
    """These rows in another order."""
    key, reverse = sort.lstrip("-"), sort.startswith("-")
    match key:
        case "name":
            return sorted(rows, key=lambda row: row.info.name, reverse=reverse)
        case "queue":
            return sorted(rows, key=lambda row: row.info.queue, reverse=reverse)
        case "duration":
            none = timedelta(-1)
            return sorted(rows, key=lambda row: row.duration or none, reverse=not reverse)
        case "tries":
            return sorted(rows, key=lambda row: row.info.attempt, reverse=not reverse)
        case _:
            return rows[::-1] if reverse else rows


def _counted(counts: TaskCounts, choice: TaskChoice, shown: int | None) -> str:
    """How many fit, as far as that is known without counting them for this page."""
    if choice.without("status").without("queue").is_empty:
        wanted = [status for status in counts if not choice.status or status in choice.status]
        total = sum(counts[status] for status in wanted)
        return f"{total:,}+" if counts.at_least & set(wanted) else f"{total:,}"
    return "" if shown is None else f"{shown:,}"


def _asked(context: Context) -> Mapping[str, list[str]]:
    params = context.request.query_params
    return {name: params.getlist(name) for name in params}


def _last(asked: Mapping[str, list[str]], name: str) -> str:
    return (asked.get(name) or [""])[-1]


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


ROUTES: Final = (
    WebRoute("/tasks", ("GET",), show_tasks, needs=Role.READ, name="tasks", kind="page"),
)
