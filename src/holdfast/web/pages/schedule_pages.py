"""Schedules: all of them with what became of their last ticks, and one with its next ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from starlette.responses import RedirectResponse, Response

from holdfast.client.schedule_control import ScheduleInfo, TickInfo
from holdfast.core.errors import ConfigError
from holdfast.core.schedules.records import TickCause, TickStatus
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.lateness import is_late
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.template import render
from holdfast.web.pages.value_tree import call_trees
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_TICKS: Final = 40
_WITH_TICKS: Final = 40
"""Of how many schedules the last ticks are drawn."""
_LISTED: Final = 200
"""Schedules of one page: it is asked for anew every two seconds."""
_HISTORY: Final = 100


@dataclass(frozen=True, slots=True)
class TickView:
    """One tick in a strip: where, how high, and what became of it."""

    x: float
    y: float
    height: float
    hue: str
    hollow: bool


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """One schedule of a list."""

    info: ScheduleInfo
    late: bool
    ticks: Sequence[TickView]
    summary: str
    last: TaskStatus | None
    """Where its latest run stands, if that was a task."""
    width: int
    """Of the strip; the newest tick stands at its right end."""
    then: str
    """The next tick, as the clocks of its zone show it."""

    @property
    def words(self) -> str:
        """When it fires, as a sentence."""
        return self.info.words[:1].upper() + self.info.words[1:]

    @property
    def pattern(self) -> str:
        """The same as it is written; nothing where that is for machines."""
        return "" if self.info.when.startswith("@every ") else self.info.when


async def show_schedules(context: Context) -> Response:
    """The list."""
    control = context.control
    now = await control.anow()
    found = await control.schedules.alist()
    first = _behind(found, context.request.query_params.get("after", ""))
    listed = found[first : first + _LISTED]
    ticks: dict[str, Sequence[TickInfo]] = {}
    for info in listed[:_WITH_TICKS]:
        ticks[info.name] = await control.schedules.ahistory(info.name, limit=_TICKS)
    wanted = {tick.task_id for some in ticks.values() for tick in some if tick.task_id is not None}
    wanted |= {info.last_task_id for info in listed if info.last_task_id is not None}
    statuses = await control.tasks.astatuses(*wanted) if wanted else {}
    rows = [_row(info, ticks.get(info.name, ()), statuses, now) for info in listed]
    is_last = first + len(listed) == len(found)
    return render(
        context,
        "schedules.html",
        now=now,
        here="schedules",
        title="Schedules",
        navigation=await navigation(context),
        rows=rows,
        total=len(found),
        late=[info for info in found if is_late(info, now)],
        paused=sum(info.paused_at is not None for info in found),
        beginning=context.url("/schedules") if first else None,
        more=None if is_last else context.url("/schedules", after=listed[-1].name),
        unreadable=found.unreadable,
    )


def _behind(found: Sequence[ScheduleInfo], name: str) -> int:
    """The place behind the schedule of this name; if that is gone, the beginning."""
    return next((place + 1 for place, info in enumerate(found) if info.name == name), 0)


async def show_schedule(context: Context) -> Response:
    """One schedule."""
    name: str = context.request.path_params["name"]
    control = context.control
    now = await control.anow()
    info = await _found(context, name)
    history = await control.schedules.ahistory(name, limit=_HISTORY)
    upcoming = await control.schedules.anext(name, 8) if info.state == "active" else []
    wanted = {tick.task_id for tick in history if tick.task_id is not None}
    statuses = await control.tasks.astatuses(*wanted) if wanted else {}
    return render(
        context,
        "schedule.html",
        now=now,
        here="schedules",
        title=name,
        navigation=await navigation(context),
        info=info,
        row=_row(info, list(history), statuses, now, most=_HISTORY),
        history=[
            (tick, statuses.get(tick.task_id) if tick.task_id else None, *_told(tick))
            for tick in history
        ],
        upcoming=[(at, _in_zone(at, info.tz)) for at in upcoming],
        arguments=call_trees(context.payloads.value(info.args), context.payloads.value(info.kwargs))
        if context.visitor.payloads and (info.args or info.kwargs)
        else None,
        unreadable=history.unreadable,
        said=context.request.query_params.get("done", ""),
        number=context.request.query_params.get("n", ""),
    )


def _row(
    info: ScheduleInfo,
    ticks: Sequence[TickInfo],
    statuses: Mapping[UUID, TaskStatus],
    now: datetime,
    *,
    most: int = _TICKS,
) -> ScheduleRow:
    views = []
    for place, tick in enumerate(reversed(ticks)):
        status = statuses.get(tick.task_id) if tick.task_id is not None else None
        hue, height, hollow = _look(tick, status)
        x = (most - len(ticks) + place) * 7.0
        views.append(TickView(x, 19.0 - height, height, hue, hollow))
    fired = sum(tick.status is TickStatus.FIRED for tick in ticks)
    dropped = sum(tick.status is TickStatus.DROPPED for tick in ticks)
    last = statuses.get(info.last_task_id) if info.last_task_id is not None else None
    then = ""
    if info.next_run_at is not None:
        then = _in_zone(info.next_run_at, info.tz)
    summary = f"{fired} ran, {dropped} did not" if ticks else "no ticks yet"
    return ScheduleRow(info, is_late(info, now), views, summary, last, most * 7, then)


_FATES: Final[Mapping[tuple[TickStatus, TickCause | None], tuple[str, str]]] = {
    (TickStatus.WAITING, None): ("scheduled", "Waits"),
    (TickStatus.DROPPED, TickCause.MISSED): ("stalled", "Missed"),
    (TickStatus.DROPPED, None): ("x", "Skipped"),
}
_BECAUSE: Final = {
    TickCause.TICK: "its time had come",
    TickCause.RUN_NOW: "run now",
    TickCause.BACKFILL: "backfill",
    TickCause.OVERLAP: "the last run had not ended",
    TickCause.MISSED: "no worker was there",
    TickCause.UNIQUE: "its unique key was taken",
    TickCause.CHANGED: "the schedule was changed",
}


def _told(tick: TickInfo) -> tuple[str, str, str]:
    """What became of a tick that has no task any more or never had one: icon, word, reason."""
    fate = _FATES.get((tick.status, tick.cause)) or _FATES.get((tick.status, None))
    symbol, word = fate or ("check", "Fired")
    return symbol, word, _BECAUSE[tick.cause]


def _look(tick: TickInfo, status: TaskStatus | None) -> tuple[str, float, bool]:
    """The colour of a tick, its height, and whether it is hollow."""
    if tick.status is TickStatus.WAITING:
        return "waiting", 10.0, True
    if tick.status is TickStatus.DROPPED:
        missed = tick.cause is TickCause.MISSED
        return ("stalled", 18.0, True) if missed else ("cancelled", 6.0, True)
    if status in (TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED, TaskStatus.EXPIRED):
        return "failed", 18.0, False
    if status is not None and not status.is_terminal:
        return "running", 10.0, False
    if status is TaskStatus.CANCELLED:
        return "cancelled", 10.0, False
    return "completed", 12.0, False


def _in_zone(at: datetime, tz: str) -> str:
    """As the clocks of its zone show it."""
    try:
        local = at.astimezone(ZoneInfo(tz))
    except (KeyError, ValueError, OSError, OverflowError):
        return f"{at:%a %d %b %H:%M:%S} UTC"
    return f"{local:%a %d %b %H:%M:%S}"


async def _found(context: Context, name: str) -> ScheduleInfo:
    try:
        return await context.control.schedules.ashow(name)
    except ConfigError as error:
        raise Refusal(404, "not_found", str(error)) from None


async def pause(context: Context) -> Response:
    """Let it fire nothing more."""
    name: str = context.request.path_params["name"]
    await _found(context, name)
    async with context.acting():
        await context.control.schedules.apause(name)
    return _back(context, name, "pause")


async def resume(context: Context) -> Response:
    """Let it go on with its next tick."""
    name: str = context.request.path_params["name"]
    await _found(context, name)
    async with context.acting():
        await context.control.schedules.aresume(name)
    return _back(context, name, "resume")


async def run_now(context: Context) -> Response:
    """Send what it sends, now, and show that."""
    name: str = context.request.path_params["name"]
    info = await _found(context, name)
    async with context.acting():
        run = await context.control.schedules.arun_now(name)
    kind = "workflows" if info.is_workflow else "tasks"
    done = None if info.is_workflow else "send"
    return RedirectResponse(context.url(f"/{kind}/{run.id}", done=done), status_code=303)


async def backfill(context: Context) -> Response:
    """Fire the ticks of a time that has passed and were not fired."""
    name: str = context.request.path_params["name"]
    await _found(context, name)
    fields = await context.form()
    start, end = (_moment(name, (fields.get(name) or [""])[-1]) for name in ("start", "end"))
    async with context.acting():
        runs = await context.control.schedules.abackfill(name, start, end)
    return RedirectResponse(
        context.url(f"/schedules/{name}", done="backfill", n=len(runs)), status_code=303
    )


async def delete(context: Context) -> Response:
    """Remove it, with the history of its ticks."""
    name: str = context.request.path_params["name"]
    await _found(context, name)
    async with context.acting():
        await context.control.schedules.adelete(name)
    return RedirectResponse(context.url("/schedules"), status_code=303)


def _moment(field: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{field}={text!r:.100} is not a moment: give one such as 2026-11-15T22:00",
            option=field,
        ) from None


def _back(context: Context, name: str, done: str) -> Response:
    return RedirectResponse(context.url(f"/schedules/{name}", done=done), status_code=303)


_page = partial(WebRoute, kind="page")
_P: Final = "/schedules/{name}"

ROUTES: Final = (
    _page("/schedules", ("GET",), show_schedules, needs=Role.READ, name="schedules"),
    _page(_P, ("GET",), show_schedule, needs=Role.READ, name="schedule"),
    _page(f"{_P}/pause", ("POST",), pause, needs=Role.OPERATE, name="schedule-pause"),
    _page(f"{_P}/resume", ("POST",), resume, needs=Role.OPERATE, name="schedule-resume"),
    _page(f"{_P}/run-now", ("POST",), run_now, needs=Role.OPERATE, name="schedule-run-now"),
    _page(f"{_P}/backfill", ("POST",), backfill, needs=Role.OPERATE, name="schedule-backfill"),
    _page(f"{_P}/delete", ("POST",), delete, needs=Role.ADMIN, name="schedule-delete"),
)
