"""`/schedules`: what fires when, what became of it, and pauses, runs and backfills."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.call import Call
from holdfast.client.registry import is_builder
from holdfast.client.schedule_control import ScheduleInfo, ScheduleRun
from holdfast.client.workflow_handle import WorkflowHandle
from holdfast.core.errors import ConfigError
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.queues import ChangedDocument
from holdfast.web.api.request_values import placed
from holdfast.web.api.sending import OF_UNIQUE, OptionsBody, named_task
from holdfast.web.api.task_documents import UnreadableDocument, unreadable
from holdfast.web.api.task_filter import Moment, Name
from holdfast.web.context import Context
from holdfast.web.payload_view import PayloadView
from holdfast.web.problem import Refusal

__all__ = ["ROUTES"]

_MOST_RUNS: Final = 1_000
Number = Annotated[int, Meta(ge=1, le=1_000)]
Zone = Annotated[str, Meta(min_length=1, max_length=100, description="Such as Europe/Berlin.")]


class ScheduleDocument(msgspec.Struct, kw_only=True):
    """A schedule."""

    name: str
    state: Literal["active", "paused", "stopped", "ended"]
    why: str | None
    """Why it does not fire, if it does not."""
    when: str
    words: str
    """The same for people."""
    tz: str
    overlap: str
    missed: str
    max_missed: int
    start: datetime | None
    end: datetime | None
    task: str
    version: int
    is_workflow: bool
    queue: str
    args: Any
    """Payload."""
    kwargs: Any
    """Payload."""
    declared: bool
    """By the code of workers; otherwise it was added at run time."""
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_tick: datetime | None
    last_task_id: UUID | None
    run_count: int
    dropped_count: int
    waiting: bool
    paused_at: datetime | None
    paused_by: str | None
    stopped_at: datetime | None
    created_at: datetime
    created_by: str | None
    updated_at: datetime

    @classmethod
    def of(cls, info: ScheduleInfo, view: PayloadView) -> ScheduleDocument:
        """A schedule, as this visitor sees it."""
        fields = {name: getattr(info, name) for name in cls.__struct_fields__}
        fields |= {"args": view.value(info.args), "kwargs": view.value(info.kwargs)}
        return cls(**fields)


class ScheduleList(msgspec.Struct, kw_only=True):
    """Every schedule, by name."""

    schedules: list[ScheduleDocument]
    unreadable: list[UnreadableDocument]


class TimesQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How many."""

    n: Number = 5


class PreviewQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of which pattern."""

    when: Annotated[str, Meta(min_length=1, max_length=200)]
    """A cron pattern of 5 or 6 fields, or `@daily` and the like."""
    tz: Zone = "UTC"
    n: Number = 5


class TimesDocument(msgspec.Struct, kw_only=True):
    """The next ticks."""

    times: list[datetime]


class HistoryOfTicksQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which ticks."""

    before: Moment | None = None
    limit: Number = 50


class TickDocument(msgspec.Struct, kw_only=True):
    """What became of one tick."""

    tick: datetime
    status: str
    cause: str
    task_id: UUID | None
    noted_at: datetime


class TickList(msgspec.Struct, kw_only=True):
    """What became of the ticks of a schedule, the newest first."""

    ticks: list[TickDocument]
    unreadable: list[UnreadableDocument]


class AddScheduleBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """When it fires (`cron`, `every` or `at`), and what it sends."""

    cron: Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType = UNSET
    every: Annotated[float, Meta(ge=1, le=3_153_600_000)] | UnsetType = UNSET
    """Seconds."""
    at: Moment | UnsetType = UNSET
    task: Name
    """Or a workflow of this server's app; then `options` may hold `tags` and `unique`."""
    version: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    options: OptionsBody = msgspec.field(default_factory=OptionsBody)
    """Of each send."""
    tz: Zone = "UTC"
    overlap: Literal["skip", "wait", "allow"] | UnsetType = UNSET
    """What a tick does while the prior run is live; `skip` if absent, with `missed: all` `wait`."""
    missed: Literal["latest", "skip", "all"] = "latest"
    max_missed: Annotated[int, Meta(ge=1, le=10_000)] = 100
    start: Moment | UnsetType = UNSET
    end: Moment | UnsetType = UNSET

    @property
    def when(self) -> str | timedelta | datetime:
        """When it fires, for `app.control.schedules`."""
        given = self._whens
        if len(given) != 1:
            raise Refusal(422, "invalid", "give one of cron, every and at", path="cron")
        return next(iter(given.values()))

    @property
    def place_of_when(self) -> str:
        """Where it stands."""
        return next(iter(self._whens), "cron")

    @property
    def _whens(self) -> dict[str, str | timedelta | datetime]:
        found: dict[str, str | timedelta | datetime] = {}
        if self.cron is not UNSET:
            found["cron"] = self.cron
        if self.every is not UNSET:
            found["every"] = timedelta(seconds=self.every)
        if self.at is not UNSET:
            found["at"] = self.at
        return found


class RunDocument(msgspec.Struct, kw_only=True):
    """What a schedule has sent."""

    id: UUID
    is_workflow: bool

    @classmethod
    def of(cls, run: ScheduleRun) -> RunDocument:
        """A task or a workflow."""
        return cls(id=run.id, is_workflow=isinstance(run, WorkflowHandle))


class BackfillBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From when on, and before when."""

    start: Moment
    end: Moment


class BackfillDocument(msgspec.Struct, kw_only=True):
    """What was sent for the ticks that had not been fired."""

    count: int
    runs: list[RunDocument]
    """The first 1,000 of them."""


async def _known(context: Context, name: str) -> ScheduleInfo:
    try:
        return await context.control.schedules.ashow(name)
    except ConfigError as error:
        raise Refusal(404, "not_found", str(error)) from None


def _called(context: Context, body: AddScheduleBody) -> Call[Any]:
    """What each tick sends: a task, or a workflow of this server's app."""
    known = context.app.tasks.find(body.task, body.version)
    if known is not None and is_builder(known):
        workflow = context.app.named_workflow(body.task, version=body.version)
        given: Any = body.options.given
        return workflow.options(**given).call_plain(body.args, body.kwargs)
    with placed(OptionsBody, {"name": "task"}):
        task = named_task(context, body.task, body.version)
    return task.options(**body.options.given).call(*body.args, **body.kwargs)


@operation("GET", "/schedules", tag="schedules")
async def list_schedules(context: Context) -> ScheduleList:
    """List every schedule, by name."""
    found = await context.control.schedules.alist()
    return ScheduleList(
        schedules=[ScheduleDocument.of(info, context.payloads) for info in found],
        unreadable=unreadable(found.unreadable),
    )


@operation("GET", "/schedules/preview", tag="schedules")
async def preview_schedule(context: Context, query: PreviewQuery) -> TimesDocument:
    """Show the next ticks that a pattern would have, without adding anything."""
    found = await context.control.schedules.apreview(query.when, query.n, tz=query.tz)
    return TimesDocument(times=list(found))


@operation("GET", "/schedules/{schedule}", tag="schedules", refusals=[409])
async def show_schedule(context: Context, schedule: str) -> ScheduleDocument:
    """Show one schedule."""
    return ScheduleDocument.of(await _known(context, schedule), context.payloads)


@operation("GET", "/schedules/{schedule}/next", tag="schedules", refusals=[409])
async def next_ticks(context: Context, schedule: str, query: TimesQuery) -> TimesDocument:
    """Show the next ticks of a schedule."""
    await _known(context, schedule)
    return TimesDocument(times=list(await context.control.schedules.anext(schedule, query.n)))


@operation("GET", "/schedules/{schedule}/ticks", tag="schedules", refusals=[409])
async def list_ticks(context: Context, schedule: str, query: HistoryOfTicksQuery) -> TickList:
    """List what became of the ticks of a schedule, the newest first."""
    await _known(context, schedule)
    found = await context.control.schedules.ahistory(
        schedule, before=query.before, limit=query.limit
    )
    return TickList(
        ticks=[
            TickDocument(
                tick=each.tick,
                status=each.status.value,
                cause=each.cause.value,
                task_id=each.task_id,
                noted_at=each.noted_at,
            )
            for each in found
        ],
        unreadable=unreadable(found.unreadable),
    )


@operation("PUT", "/schedules/{schedule}", tag="schedules", needs=Role.ADMIN)
async def add_schedule(context: Context, schedule: str, body: AddScheduleBody) -> ScheduleDocument:
    """Add a schedule, or change one that was added before. It stays until it is deleted."""
    options: Any = {"tz": body.tz, "missed": body.missed, "max_missed": body.max_missed}
    options |= {
        name: given
        for name in ("overlap", "start", "end")
        if (given := getattr(body, name)) is not UNSET
    }
    with placed(OptionsBody, {**OF_UNIQUE, "when": body.place_of_when}):
        call = _called(context, body)
        async with context.acting():
            info = await context.control.schedules.aadd(schedule, body.when, call, **options)
    return ScheduleDocument.of(info, context.payloads)


@operation("DELETE", "/schedules/{schedule}", tag="schedules", needs=Role.ADMIN, refusals=[409])
async def delete_schedule(context: Context, schedule: str) -> ChangedDocument:
    """Delete a schedule and the history of its ticks; its tasks stay.

    One that the code of a live worker declares is refused: it would come back.
    """
    await _known(context, schedule)
    async with context.acting():
        try:
            gone = await context.control.schedules.adelete(schedule)
        except ConfigError as error:
            raise Refusal(409, "refused", str(error)) from None
    return ChangedDocument(changed=gone)


@operation("POST", "/schedules/{schedule}/pause", tag="schedules", needs=Role.OPERATE)
async def pause_schedule(context: Context, schedule: str) -> ChangedDocument:
    """Let a schedule fire nothing more. What runs goes on."""
    await _known(context, schedule)
    async with context.acting():
        return ChangedDocument(changed=await context.control.schedules.apause(schedule))


@operation("POST", "/schedules/{schedule}/resume", tag="schedules", needs=Role.OPERATE)
async def resume_schedule(context: Context, schedule: str) -> ChangedDocument:
    """Let a paused schedule go on with its next tick after now."""
    await _known(context, schedule)
    async with context.acting():
        return ChangedDocument(changed=await context.control.schedules.aresume(schedule))


@operation("POST", "/schedules/{schedule}/run", tag="schedules", needs=Role.OPERATE, refusals=[409])
async def run_schedule(context: Context, schedule: str) -> RunDocument:
    """Send what the schedule sends, now, also if it is paused."""
    await _known(context, schedule)
    async with context.acting():
        try:
            run = await context.control.schedules.arun_now(schedule)
        except ConfigError as error:
            raise Refusal(409, "refused", str(error)) from None
    return RunDocument.of(run)


@operation("POST", "/schedules/{schedule}/backfill", tag="schedules", needs=Role.OPERATE)
async def backfill_schedule(
    context: Context, schedule: str, body: BackfillBody
) -> BackfillDocument:
    """Fire the ticks of a stretch of time that have passed and were not fired, oldest first."""
    await _known(context, schedule)
    async with context.acting():
        runs: Sequence[ScheduleRun] = await context.control.schedules.abackfill(
            schedule, body.start, body.end
        )
    shown = [RunDocument.of(run) for run in runs[:_MOST_RUNS]]
    return BackfillDocument(count=len(runs), runs=shown)


ROUTES: Final = (
    list_schedules,
    preview_schedule,
    show_schedule,
    next_ticks,
    list_ticks,
    add_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
    run_schedule,
    backfill_schedule,
)
