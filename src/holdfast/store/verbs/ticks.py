"""Ticks: fired, on time and by hand, and what became of them.

Invariant: a tick is fired once. It is decided under the lock of the schedule's row, by the
database's clock; the row of the tick, the task, and where the schedule goes on are written in one
transaction; and a tick has one row (`schedule_name`, `tick`), which says that it was fired.
Failure: whoever fires may die at any moment. Then all of it is there, or nothing, and the tick is
still due for everybody else.

Lock order: the schedule, then what sending a task locks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.identity import IdSource
from holdfast.core.moment import from_us
from holdfast.core.records import Submission, SubmitAnswer, Submitted
from holdfast.core.schedules.definition import ScheduledWorkflow
from holdfast.core.schedules.firing import MOST_AT_ONCE, MOST_COUNTED, plan
from holdfast.core.schedules.records import (
    ScheduleRecord,
    TickCause,
    TickRecord,
    TickStatus,
)
from holdfast.core.workflows.plan import StepPlan, WorkflowPlan
from holdfast.store import rows, schedule_rows
from holdfast.store.op import At, Column, Row, Statement, Steps, Table, Texts, reads, writes
from holdfast.store.verbs import routes, schedules, workflows
from holdfast.store.verbs.live_declarations import live_declarations
from holdfast.store.verbs.submit import submit

_COLUMNS = {
    "name": Column.TEXT,
    "tick": Column.TIME,
    "status": Column.TEXT,
    "cause": Column.TEXT,
    "task_id": Column.UUID,
}
_SENT = (SubmitAnswer.CREATED, SubmitAnswer.REPLACED, SubmitAnswer.DEBOUNCED)
_MOST_TRIES = 3
BATCH = 200
"""Schedules of one look."""


class DueSchedules(NamedTuple):
    """What a look found."""

    now: int
    names: Sequence[str]
    """Those with ticks to be looked at."""
    is_waiting: bool
    """Whether any waits for its prior run."""
    next_us: int | None
    """When the next tick of any other is."""


class TickRun(NamedTuple):
    """A task, or a workflow, that a tick has sent."""

    tick: int
    id: bytes
    is_workflow: bool


class Fired(NamedTuple):
    """What firing one schedule came to."""

    now: int
    runs: Sequence[TickRun] = ()
    dropped: int = 0
    waiting: int = 0
    next_us: int | None = None
    is_undeclared: bool = False
    """Nobody declares it any more, so it was left alone."""


class Backfilled(NamedTuple):
    """One part of a backfill."""

    runs: Sequence[TickRun]
    next_us: int | None
    """Where the next part begins; None when it is done."""


@reads
def due(aside: Iterable[str] = ()) -> Steps[DueSchedules]:
    """Which schedules are to be looked at; `aside`: these are not."""
    found = yield Statement("due_schedules", {"aside": Texts(sorted(aside)), "limit": BATCH})
    names = list(rows.texts(row[1] for row in found if row[3]))
    is_waiting = any(row[4] for row in found)
    soonest = [row[2] for row in found if not row[3] and row[2] is not None]
    return DueSchedules(int(found[0][0]), names, is_waiting, soonest[0] if soonest else None)


@writes
def fire(name: str, *, declared_here: bool = False) -> Steps[Fired | None]:
    """Do what is due of one schedule; None if somebody else is at it, or it is paused or gone.

    `declared_here`: the worker that asks declares it, so that nobody else need be looked for.
    """
    return (yield from _fired(name, declared_here=declared_here))


@writes
def fire_some(
    names: Iterable[str], declared_here: Collection[str] = ()
) -> Steps[dict[str, Fired | None]]:
    """The same of several in one transaction: if one cannot be fired, none is."""
    done: dict[str, Fired | None] = {}
    for name in names:
        done[name] = yield from _fired(name, declared_here=name in declared_here)
    return done


def _fired(name: str, *, declared_here: bool) -> Steps[Fired | None]:
    found = yield Statement("try_schedule", {"name": name})
    if not found:
        return None
    record = schedule_rows.schedule(found[0])
    now = yield from schedules.clock()
    if record.paused_at is not None or record.stopped_at is not None:
        return None
    if record.declared and not declared_here and name not in (yield from live_declarations()):
        return Fired(now, is_undeclared=True)
    waiting: list[int] = []
    if record.has_waiting:
        waiting = [row[0] for row in (yield Statement("waiting_ticks", {"name": name}))]
    rule = record.definition.rule
    is_live = rule.overlap != "allow" and (yield from prior_is_live(record))
    made = plan(rule, record.next_run_at, waiting, now, is_live=is_live)
    runs, refused = yield from _send(record, made.fire, now, TickCause.TICK)
    noted: list[Row] = [
        (name, tick, TickStatus.WAITING.value, TickCause.TICK.value, None)
        for tick in made.waiting
        if tick not in waiting
    ]
    for cause, ticks in (
        (TickCause.OVERLAP, made.overlapped),
        (TickCause.MISSED, made.missed_ticks),
    ):
        noted += [(name, tick, TickStatus.DROPPED.value, cause.value, None) for tick in ticks]
    if noted:
        yield Statement("note_ticks", table=Table(_COLUMNS, noted))
    dropped = made.dropped + refused
    is_waiting = bool(made.waiting)
    moved = (made.next_us, is_waiting) != (record.next_run_at, record.has_waiting)
    if runs or dropped or moved:
        # Otherwise a tick waits as before: that is looked at often, and must cost no write.
        yield from _note(record, runs, dropped, made.next_us, has_waiting=is_waiting)
    return Fired(now, runs, dropped, len(made.waiting), made.next_us)


def prior_is_live(record: ScheduleRecord) -> Steps[bool]:
    """Whether the latest run has not ended."""
    if record.last_task_id is None:
        return False
    ((live,),) = yield Statement("run_is_live", {"id": record.last_task_id})
    return bool(live)


def _note(
    record: ScheduleRecord,
    runs: Sequence[TickRun],
    dropped: int,
    next_us: int | None,
    *,
    has_waiting: bool,
) -> Steps[None]:
    last = runs[-1] if runs else None
    yield from schedules.note(
        record,
        next_run_at=next_us,
        has_waiting=has_waiting,
        last_tick=None if last is None else last.tick,
        last_task_id=None if last is None else last.id,
        runs=len(runs),
        dropped=dropped,
    )


def _send(
    record: ScheduleRecord, ticks: Sequence[int], now: int, cause: TickCause
) -> Steps[tuple[list[TickRun], int]]:
    """Send what ticks stand for, the oldest first; and how many were refused, because the task is
    unique. Ticks that were fired before are passed over."""
    # Ids that go by the database's clock, one after the other: their order is that of the ticks.
    make_id = IdSource(clock_ns=lambda: now * 1_000)
    taken: list[tuple[int, bytes]] = []
    for tick in ticks:
        id = make_id()
        fresh = yield Statement(
            "take_tick",
            {"name": record.name, "tick": At(tick), "cause": cause.value, "task_id": id},
        )
        if fresh:
            taken.append((tick, id))
    if not taken:
        return [], 0
    call = record.definition.call
    whole = call.workflow
    tasks = [call.submission(id, now, record.name, tick) for tick, id in taken]
    if whole is None:
        answers = yield from _submitted((yield from routes.routed(tasks)))
    else:
        answers = []
        for task in tasks:
            started = yield from workflows.start(_workflow(task, whole, make_id()))
            answers.append(started)
    runs: list[TickRun] = []
    for (tick, _), answer in zip(taken, answers, strict=True):
        if answer.answer in _SENT:
            runs.append(TickRun(tick, answer.id, whole is not None))
        else:
            yield Statement(
                "refuse_tick",
                {
                    "name": record.name,
                    "tick": At(tick),
                    "cause": TickCause.UNIQUE.value,
                    "task_id": answer.id,
                },
            )
    return runs, len(taken) - len(runs)


def _submitted(tasks: Sequence[Submission]) -> Steps[Sequence[Submitted]]:
    answers = yield from submit(tasks)
    for _ in range(_MOST_TRIES):
        again = [n for n, each in enumerate(answers) if each.answer is SubmitAnswer.AGAIN]
        if not again:
            break
        for place, answer in zip(
            again, (yield from submit([tasks[place] for place in again])), strict=True
        ):
            answers[place] = answer
    return answers


def _workflow(task: Submission, whole: ScheduledWorkflow, step_id: bytes) -> WorkflowPlan:
    """A workflow with one step, which builds the graph when it runs."""
    return WorkflowPlan(
        id=task.id,
        name=task.task_name,
        steps=(
            StepPlan(
                whole.step_name,
                task._replace(id=step_id, on_conflict="return"),
                hidden="workflow",
            ),
        ),
        version=task.version,
        on_failure=whole.on_failure,
        deadline_us=whole.deadline_us,
        unique_key=whole.unique_slot,
        on_conflict="raise" if whole.on_conflict == "raise" else "return",
        tags=whole.tags,
        arguments=whole.arguments,
        digest=whole.digest,
        returns=whole.returns,
        sent_at=task.sent_at,
    )


# By hand.


@writes
def run_now(name: str) -> Steps[TickRun | None]:
    """Send what a schedule sends, now, whatever its prior run does, and whether or not it is
    paused. None: the task is unique, and its key is taken."""
    record = yield from schedules.lock(name)
    now = yield from schedules.clock()
    tick = now
    runs: list[TickRun] = []
    refused = 0
    while not runs and not refused:
        runs, refused = yield from _send(record, [tick], now, TickCause.RUN_NOW)
        tick += 1
    yield from _note(record, runs, refused, record.next_run_at, has_waiting=record.has_waiting)
    return runs[0] if runs else None


@writes
def backfill(name: str, start_us: int, end_us: int, begin_us: int) -> Steps[Backfilled]:
    """Fire the ticks from `start_us` on and before `end_us` that have passed and were not fired,
    the oldest first, whatever the prior run does. One part of them, from `begin_us` on."""
    record = yield from schedules.lock(name)
    now = yield from schedules.clock()
    rule = record.definition.rule
    if record.history_from is not None and start_us <= record.history_from:
        raise ConfigError(
            f"schedule {name!r}: what it fired up to {from_us(record.history_from).isoformat()} "
            "is forgotten, so some of it would be fired again: begin later, or add a schedule "
            "with the same call and another name, and backfill that",
            option="start",
        )
    last = min(end_us - 1, now)
    number = rule.count(start_us - 1, last)
    if number >= MOST_COUNTED:
        raise ConfigError(
            f"schedule {name!r} has {number:,} ticks or more in that time: give shorter ones",
            option="end",
        )
    part = list(islice(rule.until(begin_us - 1, last), MOST_AT_ONCE))
    if not part:
        return Backfilled((), None)
    runs, refused = yield from _send(record, part, now, TickCause.BACKFILL)
    waiting = yield Statement("waiting_ticks", {"name": name})
    yield from _note(record, runs, refused, record.next_run_at, has_waiting=bool(waiting))
    return Backfilled(runs, part[-1] + 1 if len(part) == MOST_AT_ONCE else None)


@reads
def history(
    name: str,
    *,
    before: int | None = None,
    limit: int = 50,
    set_aside: list[UnreadableRow] | None = None,
) -> Steps[list[TickRecord]]:
    """What became of the ticks of a schedule, the newest first."""
    yield from schedules.find(name)
    found = yield Statement(
        "read_ticks", {"name": name, "before_tick": schedules.at(before), "limit": limit}
    )
    return list(rows.readable(schedule_rows.tick, found, set_aside))


@reads
def upcoming(name: str, number: int) -> Steps[list[int]]:
    """The next ticks of a schedule that will be."""
    record = yield from schedules.find(name)
    now = yield from schedules.clock()
    return list(islice(record.definition.rule.after(now), number))


@writes
def prune(*, before: int, batch: int = 1000) -> Steps[int]:
    """Forget what became of ticks before `before`; fewer than `batch`: all of them."""
    ((gone,),) = yield Statement("prune_schedule_ticks", {"before": At(before), "batch": batch})
    return int(gone)
