"""`/workers`: which there are, how each did, and orders to stop."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.worker_control import ChildUsage, WorkerInfo, WorkerSnapshot
from holdfast.client.worker_history import HistoryOptions, WorkerPoint
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.stats import Span, seconds_or_text
from holdfast.web.api.task_documents import UnreadableDocument, unreadable
from holdfast.web.api.task_filter import Moment
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES"]


class SnapshotDocument(msgspec.Struct, kw_only=True):
    """What a worker said of itself, some time ago."""

    at: datetime
    processes: int
    tasks_running: int
    tasks_claimed: int
    memory_usage_mb: float | None
    cpu_percent: float | None

    @classmethod
    def of(cls, said: WorkerSnapshot) -> SnapshotDocument:
        """What it said."""
        return cls(**{name: getattr(said, name) for name in cls.__struct_fields__})


class ChildDocument(msgspec.Struct, kw_only=True):
    """What one child of a worker used when the worker was last seen."""

    name: str
    pid: int
    memory_mb: float
    cpu_percent: float | None
    """Of one core."""

    @classmethod
    def of(cls, used: ChildUsage) -> ChildDocument:
        """What it used."""
        return cls(**{name: getattr(used, name) for name in cls.__struct_fields__})


class WorkerDocument(msgspec.Struct, kw_only=True):
    """One worker."""

    id: str
    state: Literal["alive", "silent", "stopped"]
    hostname: str
    pid: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    lease: float
    queues: list[str]
    tasks: list[str]
    """What it can run: `name@version`."""
    settings: dict[str, Any]
    command: str | None
    """An order it has not obeyed yet."""
    latest: SnapshotDocument | None
    children: list[ChildDocument]

    @classmethod
    def of(cls, info: WorkerInfo) -> WorkerDocument:
        """A worker, as it stands."""
        names = ("id", "state", "hostname", "pid", "version", "started_at", "seen_at", "stopped_at")
        return cls(
            **{name: getattr(info, name) for name in names},
            lease=info.lease,
            queues=list(info.queues),
            tasks=list(info.tasks),
            settings=info.settings,
            command=info.command,
            latest=None if info.latest is None else SnapshotDocument.of(info.latest),
            children=[ChildDocument.of(each) for each in info.children],
        )


class WorkerQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which workers."""

    stopped: bool = False
    """Also those that have stopped."""


class WorkerList(msgspec.Struct, kw_only=True):
    """The workers, the newest first."""

    workers: list[WorkerDocument]
    unreadable: list[UnreadableDocument]


class HistoryQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How much of it."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class HistoryDocument(msgspec.Struct, kw_only=True):
    """What a worker said of itself, the newest first."""

    states: list[SnapshotDocument]


class ChartQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which time."""

    last: Span | UnsetType = UNSET
    """How far back it goes; default: an hour."""
    until: Moment | UnsetType = UNSET
    """Where it ends; default: now."""
    step: Span | UnsetType = UNSET
    """Whole seconds. Default: about 120 steps."""

    @property
    def options(self) -> HistoryOptions:
        """The same, for `app.control.workers`."""
        given: Any = {"last": self.last, "until": self.until, "step": self.step}
        options: HistoryOptions = {  # type: ignore[assignment]
            name: seconds_or_text(value) if name in ("last", "step") else value
            for name, value in given.items()
            if value is not UNSET
        }
        return options


class WorkerPointDocument(msgspec.Struct, kw_only=True):
    """What a worker said of itself in one step of time."""

    at: datetime
    processes: int
    tasks_running: float
    """On average."""
    most_running: int
    most_claimed: int
    memory_usage_mb: float | None
    """The most."""
    cpu_percent: float | None
    """On average."""
    most_cpu_percent: float | None

    @classmethod
    def of(cls, point: WorkerPoint) -> WorkerPointDocument:
        """What it said."""
        return cls(**{name: getattr(point, name) for name in cls.__struct_fields__})


class WorkerHistoryDocument(msgspec.Struct, kw_only=True):
    """How a worker was from `start` to `until`, in steps; one without a snapshot is absent."""

    start: datetime
    until: datetime
    step: float
    points: list[WorkerPointDocument]


class StopBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How."""

    interrupt: bool = False
    """Without the grace that what runs would have."""


class ToldDocument(msgspec.Struct, kw_only=True):
    """What the worker was told; it reads this within some two seconds."""

    worker: str
    order: Literal["stop", "interrupt", "drain"]
    silent: bool
    """It has not been seen for longer than its lease: probably nobody hears this."""


@operation("GET", "/workers", tag="workers")
async def list_workers(context: Context, query: WorkerQuery) -> WorkerList:
    """List the workers, the newest first."""
    found = await context.control.workers.alist(stopped=query.stopped)
    return WorkerList(
        workers=[WorkerDocument.of(info) for info in found],
        unreadable=unreadable(found.unreadable),
    )


@operation("GET", "/workers/{worker}", tag="workers", refusals=[404])
async def show_worker(context: Context, worker: str) -> WorkerDocument:
    """Show one worker, also one that has stopped."""
    return WorkerDocument.of(await _known(context, worker))


@operation("GET", "/workers/{worker}/states", tag="workers", refusals=[404])
async def list_worker_states(context: Context, worker: str, query: HistoryQuery) -> HistoryDocument:
    """List what a worker said of itself: its tasks, memory and CPU, the newest first."""
    states = await context.control.workers.astates(worker, limit=query.limit)
    if not states:
        await _known(context, worker)
    return HistoryDocument(states=[SnapshotDocument.of(each) for each in states])


@operation("GET", "/workers/{worker}/history", tag="workers", refusals=[404])
async def show_worker_history(
    context: Context, worker: str, query: ChartQuery
) -> WorkerHistoryDocument:
    """Show how a worker was over time: its tasks, memory and CPU, in steps for a chart."""
    found = await context.control.workers.ahistory(worker, **query.options)
    if not found.points:
        await _known(context, worker)
    return WorkerHistoryDocument(
        start=found.start,
        until=found.until,
        step=found.step.total_seconds(),
        points=[WorkerPointDocument.of(each) for each in found.points],
    )


@operation("POST", "/workers/{worker}/stop", tag="workers", needs=Role.ADMIN, refusals=[404])
async def stop_worker(context: Context, worker: str, body: StopBody) -> ToldDocument:
    """Have a worker stop, as SIGTERM does: what runs has its `grace` to end."""
    async with context.acting():
        told = await context.control.workers.astop(worker, interrupt=body.interrupt)
    if not told[worker]:
        raise _unknown(worker)
    return await _told(context, worker, "interrupt" if body.interrupt else "stop")


@operation("POST", "/workers/{worker}/drain", tag="workers", needs=Role.ADMIN, refusals=[404])
async def drain_worker(context: Context, worker: str) -> ToldDocument:
    """Have a worker claim nothing more, end what it runs, however long it takes, and stop."""
    async with context.acting():
        told = await context.control.workers.adrain(worker)
    if not told[worker]:
        raise _unknown(worker)
    return await _told(context, worker, "drain")


async def _told(
    context: Context, worker: str, order: Literal["stop", "interrupt", "drain"]
) -> ToldDocument:
    state = (await _known(context, worker)).state
    return ToldDocument(worker=worker, order=order, silent=state == "silent")


async def _known(context: Context, worker: str) -> WorkerInfo:
    for info in await context.control.workers.alist(stopped=True):
        if info.id == worker:
            return info
    raise _unknown(worker)


def _unknown(worker: str) -> Refusal:
    return Refusal(404, "not_found", f"there is no worker {worker!r:.200}, or it has stopped")


ROUTES: Final = (
    list_workers,
    show_worker,
    list_worker_states,
    show_worker_history,
    stop_worker,
    drain_worker,
)
