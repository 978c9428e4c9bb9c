"""`app.control.schedules`: schedules, from Python.

Owns their public view, and the arguments of what is done to them. What a schedule is and when it
fires is `core.schedules`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, Protocol, TypeAlias, Unpack
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.acting import Effect, actor_here, recorded, who_acts
from holdfast.client.handle import TaskHandle
from holdfast.client.info import Listing
from holdfast.client.workflow_handle import WorkflowHandle
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.moment import from_us, instant_us, optional_us
from holdfast.core.options import checks
from holdfast.core.payload.codec import from_json
from holdfast.core.schedules.definition import (
    ScheduledCall,
    ScheduleDefinition,
    ScheduleOptions,
    define,
)
from holdfast.core.schedules.firing import Missed, Overlap
from holdfast.core.schedules.records import ScheduleRecord, TickCause, TickRecord, TickStatus
from holdfast.core.schedules.timing import DEFAULT_ZONE, When, read, zone_of
from holdfast.core.schedules.words import in_words
from holdfast.core.secret import hide_secrets
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs import schedules, ticks
from holdfast.store.verbs.live_declarations import live_declarations
from holdfast.store.verbs.ticks import Backfilled, TickRun

__all__ = ["ScheduleControl", "ScheduleInfo", "ScheduleRun", "TickInfo"]

ScheduleRun: TypeAlias = "TaskHandle[Any] | WorkflowHandle[Any]"
"""What a schedule has sent."""
ScheduleState: TypeAlias = Literal["active", "paused", "stopped", "ended"]

_MOST_TICKS: Final = 1_000


class Schedulable(Protocol):
    """A call: what `task.call(…)` and `workflow.call(…)` make."""

    def __scheduled__(self) -> ScheduledCall: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """A schedule, as it was when it was read."""

    name: str
    state: ScheduleState
    """`stopped`: no live worker declares it any more. `ended`: it has no more ticks."""
    when: str
    """The cron pattern, or `@every …us`, or `@once …`."""
    words: str
    """The same for people."""
    tz: str
    overlap: Overlap
    missed: Missed
    max_missed: int
    start: datetime | None
    end: datetime | None
    task: str
    """What it sends."""
    version: int
    is_workflow: bool
    queue: str
    args: Any
    """As they are stored; what a `Secret` holds is hidden."""
    kwargs: Any
    declared: bool
    """By the code of workers; otherwise it was added at run time."""
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_tick: datetime | None
    """The moment that its latest run stands for."""
    last_task_id: UUID | None
    run_count: int
    dropped_count: int
    """Ticks that were not fired: missed, or because the prior run had not ended."""
    waiting: bool
    """Whether a tick waits for the prior run."""
    paused_at: datetime | None
    paused_by: str | None
    stopped_at: datetime | None
    config_hash: str
    created_at: datetime
    created_by: str | None
    updated_at: datetime
    live_run: UUID | None = None
    """The latest task that it has sent, if that has not ended; `show` asks for it, `list` does
    not."""

    @property
    def next_tick(self) -> datetime | None:
        """The same as `next_run_at`."""
        return self.next_run_at

    @property
    def why(self) -> str | None:
        """Why it does not fire, if it does not."""
        if self.paused_at is not None:
            by = f" by {self.paused_by}" if self.paused_by else ""
            return f"it was paused{by} at {_shown(self.paused_at)}"
        if self.state == "stopped":
            return "no live worker declares it any more: its code has gone, or no worker runs"
        if self.state == "ended":
            return "it has no more ticks"
        if self.live_run is not None and self.overlap != "allow":
            meanwhile = "are dropped" if self.overlap == "skip" else "wait"
            what = "workflow" if self.is_workflow else "task"
            return f"{what} {self.live_run}, which it sent, has not ended: its ticks {meanwhile}"
        return None


@dataclass(frozen=True, slots=True)
class TickInfo:
    """What became of one tick."""

    tick: datetime
    status: TickStatus
    cause: TickCause
    task_id: UUID | None
    """The task or workflow that it sent, or that held the unique key."""
    noted_at: datetime


class ScheduleControl:
    """`app.control.schedules`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def add(
        self, name: str, when: When, call: Schedulable, /, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo:
        """Add a schedule, or change one that was added before under this name."""
        return _info(self._access.run(_adding(name, when, call, options)))

    async def aadd(
        self, name: str, when: When, call: Schedulable, /, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo:
        """Add a schedule, or change one that was added before under this name."""
        return _info(await self._access.arun(_adding(name, when, call, options)))

    def list(self) -> Listing[ScheduleInfo]:
        """Every schedule, by name."""
        return self._access.run(_list)

    async def alist(self) -> Listing[ScheduleInfo]:
        """Every schedule, by name."""
        return await self._access.arun(_list)

    def show(self, name: str) -> ScheduleInfo:
        """One schedule; `ConfigError` if there is none of this name."""
        return self._access.run(partial(_show, checks.schedule_name(name)))

    async def ashow(self, name: str) -> ScheduleInfo:
        """One schedule; `ConfigError` if there is none of this name."""
        return await self._access.arun(partial(_show, checks.schedule_name(name)))

    def pause(self, name: str, *, by: str | None = None) -> bool:
        """Let a schedule fire nothing more; False if it was paused already. What runs goes on."""
        return self._access.run(_pausing(name, by))

    async def apause(self, name: str, *, by: str | None = None) -> bool:
        """Let a schedule fire nothing more; False if it was paused already. What runs goes on."""
        return await self._access.arun(_pausing(name, by))

    def resume(self, name: str) -> bool:
        """Let a paused schedule go on with its next tick after now; False if it was not paused."""
        return self._access.run(_resuming(name))

    async def aresume(self, name: str) -> bool:
        """Let a paused schedule go on with its next tick after now; False if it was not paused."""
        return await self._access.arun(_resuming(name))

    def delete(self, name: str) -> bool:
        """Remove a schedule and the history of its ticks; False if there is none. Its tasks stay.

        One that the code of a live worker declares is refused: it would come back.
        """
        return self._access.run(_deleting(name))

    async def adelete(self, name: str) -> bool:
        """Remove a schedule and the history of its ticks; False if there is none."""
        return await self._access.arun(_deleting(name))

    def run_now(self, name: str) -> ScheduleRun:
        """Send what the schedule sends, now, whatever its prior run does, and also if it is
        paused."""
        return self._handle(self._access.run(_running(name)), name)

    async def arun_now(self, name: str) -> ScheduleRun:
        """Send what the schedule sends, now, whatever its prior run does, and also if it is
        paused."""
        return self._handle(await self._access.arun(_running(name)), name)

    def next(self, name: str, n: int = 5) -> Sequence[datetime]:
        """The next ticks of a schedule."""
        return self._access.run(_upcoming(name, n))

    async def anext(self, name: str, n: int = 5) -> Sequence[datetime]:
        """The next ticks of a schedule."""
        return await self._access.arun(_upcoming(name, n))

    def preview(self, when: When, n: int = 5, *, tz: str = "UTC") -> Sequence[datetime]:
        """The next ticks that a schedule would have."""
        return self._access.run(_preview(when, n, tz))

    async def apreview(self, when: When, n: int = 5, *, tz: str = "UTC") -> Sequence[datetime]:
        """The next ticks that a schedule would have."""
        return await self._access.arun(_preview(when, n, tz))

    def backfill(self, name: str, start: datetime, end: datetime) -> Sequence[ScheduleRun]:
        """Fire the ticks from `start` on and before `end` that have passed and were not fired, the
        oldest first."""
        walk = _Backfill(name, start, end)
        while not walk.is_done:
            walk.note(self._access.run(walk.part()))
        return [self._handle(run, name) for run in walk.runs]

    async def abackfill(self, name: str, start: datetime, end: datetime) -> Sequence[ScheduleRun]:
        """Fire the ticks from `start` on and before `end` that have passed and were not fired, the
        oldest first."""
        walk = _Backfill(name, start, end)
        while not walk.is_done:
            walk.note(await self._access.arun(walk.part()))
        return [self._handle(run, name) for run in walk.runs]

    def history(
        self, name: str, *, before: datetime | None = None, limit: int = 50
    ) -> Listing[TickInfo]:
        """What became of the ticks of a schedule, the newest first; for the next page give the
        last tick as `before`."""
        return self._access.run(_history(name, before, limit))

    async def ahistory(
        self, name: str, *, before: datetime | None = None, limit: int = 50
    ) -> Listing[TickInfo]:
        """What became of the ticks of a schedule, the newest first."""
        return await self._access.arun(_history(name, before, limit))

    def _handle(self, run: TickRun | None, name: str) -> ScheduleRun:
        if run is None:
            raise ConfigError(
                f"schedule {name!r} sent nothing: its task is unique, and its key is taken by a "
                "task that has not ended",
                option="name",
            )
        if run.is_workflow:
            return WorkflowHandle(
                self._access, run.id, created=True, decode=None, decoder_of=lambda _: None
            )
        return TaskHandle(self._access, run.id, created=True, decode=None)


def definition_of(
    name: str, when: When, call: Schedulable, options: ScheduleOptions
) -> ScheduleDefinition:
    """A schedule of a call, checked."""
    scheduled = getattr(call, "__scheduled__", None)
    if scheduled is None:
        raise ConfigError(
            f"schedule {name!r:.300}: {call!r:.100} is not a call: give task.call(…), which sends "
            "nothing by itself",
            option="call",
        )
    return define(name, when, scheduled(), options)


def _recorded(
    verb: str,
    name: str,
    make: Callable[[], Op[Any]],
    count: Callable[[Any], int],
    *,
    by: str | None = None,
) -> Callable[[], Op[Any]]:
    subject = f"schedule {name}"
    return recorded(verb, make, lambda answer: Effect(count(answer), subject), by=by)


def _adding(
    name: str, when: When, call: Schedulable, options: ScheduleOptions
) -> Callable[[], Op[ScheduleRecord]]:
    definition = definition_of(name, when, call, options)
    make = partial(schedules.add, definition, by=actor_here())
    return _recorded("schedule", definition.name, make, lambda _: 1)


def _pausing(name: str, by: str | None) -> Callable[[], Op[bool]]:
    known = checks.schedule_name(name)
    who = who_acts(by)
    return _recorded("pause", known, partial(schedules.pause, known, by=who), int, by=who)


def _resuming(name: str) -> Callable[[], Op[bool]]:
    known = checks.schedule_name(name)
    return _recorded("resume", known, partial(schedules.resume, known), int)


def _deleting(name: str) -> Callable[[], Op[bool]]:
    # Any name that can be written: a row that somebody made by hand must be removable.
    if not str(name).isprintable():
        checks.schedule_name(name)
    return _recorded("delete", name, partial(schedules.delete, name), int)


def _running(name: str) -> Callable[[], Op[TickRun | None]]:
    known = checks.schedule_name(name)
    return _recorded("run", known, partial(ticks.run_now, known), lambda run: int(run is not None))


def _upcoming(name: str, n: int) -> Callable[[], Op[Sequence[datetime]]]:
    known, number = checks.schedule_name(name), _number(n)

    @reads
    def upcoming() -> Steps[Sequence[datetime]]:
        return [from_us(tick) for tick in (yield from ticks.upcoming(known, number))]

    return upcoming


def _preview(when: When, n: int, tz: str) -> Callable[[], Op[Sequence[datetime]]]:
    if tz != DEFAULT_ZONE:
        zone_of(tz)
    timing, number = read(when, tz), _number(n)

    @reads
    def preview() -> Steps[Sequence[datetime]]:
        now = yield from schedules.clock()
        return [from_us(tick) for tick in islice(timing.after(now), number)]

    return preview


def _number(n: int) -> int:
    return checks.at_least(1, n, "n", most=_MOST_TICKS)


class _Backfill:
    """A walk over the ticks of a stretch of time, a transaction at a time."""

    def __init__(self, name: str, start: datetime, end: datetime) -> None:
        self._name = checks.schedule_name(name)
        self._start = instant_us(start, option="start")
        self._end = instant_us(end, option="end")
        if self._end <= self._start:
            raise ConfigError(
                f"the end, {end.isoformat()}, is not after the start, {start.isoformat()}: "
                "there is nothing between",
                option="end",
            )
        self._begin: int | None = self._start
        self.runs: list[TickRun] = []

    @property
    def is_done(self) -> bool:
        return self._begin is None

    def part(self) -> Callable[[], Op[Backfilled]]:
        verb = partial(ticks.backfill, self._name, self._start, self._end, self._begin or 0)
        return _recorded("backfill", self._name, verb, lambda part: len(part.runs))

    def note(self, part: Backfilled) -> None:
        self.runs += part.runs
        self._begin = part.next_us


def _history(name: str, before: datetime | None, limit: int) -> Callable[[], Op[Listing[TickInfo]]]:
    known, size = checks.schedule_name(name), checks.at_least(1, limit, "limit", most=_MOST_TICKS)
    first = optional_us(before, option="before")

    @reads
    def history() -> Steps[Listing[TickInfo]]:
        unreadable: list[UnreadableRow] = []
        found = yield from ticks.history(known, before=first, limit=size, set_aside=unreadable)
        return Listing([_tick(each) for each in found], unreadable)

    return history


def _tick(record: TickRecord) -> TickInfo:
    return TickInfo(
        from_us(record.tick),
        record.status,
        record.cause,
        None if record.task_id is None else UUID(bytes=record.task_id),
        from_us(record.noted_at),
    )


@reads
def _list() -> Steps[Listing[ScheduleInfo]]:
    unreadable: list[UnreadableRow] = []
    found = yield from schedules.list_schedules(unreadable)
    live = yield from live_declarations()
    return Listing([_info(record, live) for record in found], unreadable)


@reads
def _show(name: str) -> Steps[ScheduleInfo]:
    record = yield from schedules.find(name)
    is_live = yield from ticks.prior_is_live(record)
    return _info(record, (yield from live_declarations()), is_live=is_live)


def _info(
    record: ScheduleRecord, live: dict[str, set[str]] | None = None, *, is_live: bool = False
) -> ScheduleInfo:
    definition = record.definition
    call = definition.call
    last = None if record.last_task_id is None else UUID(bytes=record.last_task_id)
    return ScheduleInfo(
        name=record.name,
        state=_state(record, live),
        when=definition.pattern,
        words=in_words(definition.timing),
        tz=definition.timezone,
        overlap=definition.overlap,
        missed=definition.missed,
        max_missed=definition.max_missed,
        start=_moment(definition.start_at),
        end=_moment(definition.end_at),
        task=definition.task_name,
        version=definition.version,
        is_workflow=call.workflow is not None,
        queue=call.queue_name,
        args=_plain(call.args),
        kwargs=_plain(call.kwargs),
        declared=record.declared,
        next_run_at=_moment(record.next_run_at),
        last_run_at=_moment(record.last_run_at),
        last_tick=_moment(record.last_tick),
        last_task_id=last,
        run_count=record.run_count,
        dropped_count=record.dropped_count,
        waiting=record.has_waiting,
        paused_at=_moment(record.paused_at),
        paused_by=record.paused_by,
        stopped_at=_moment(record.stopped_at),
        config_hash=record.config_hash,
        created_at=from_us(record.created_at),
        created_by=record.created_by,
        updated_at=from_us(record.updated_at),
        live_run=last if is_live else None,
    )


def _state(record: ScheduleRecord, live: dict[str, set[str]] | None) -> ScheduleState:
    if record.paused_at is not None:
        return "paused"
    if record.declared and (
        record.stopped_at is not None or (live is not None and record.name not in live)
    ):
        return "stopped"
    is_over = record.next_run_at is None and not record.has_waiting
    return "ended" if is_over else "active"


def _plain(text: str) -> Any:
    try:
        return hide_secrets(from_json(text))
    except ValueError:
        return text


def _moment(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _shown(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
