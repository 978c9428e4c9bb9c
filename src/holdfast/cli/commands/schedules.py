"""`holdfast schedules`: see what fires when; add, pause, run, backfill, delete.

Owns the arguments of these commands, and how schedules are printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

import click

from holdfast.cli.payload_options import payload_options
from holdfast.cli.render import json_document, times
from holdfast.cli.render.table import Cell, TextColumn
from holdfast.cli.render.task_list import id_cell, moment_cell, show_rows, unreadable_document
from holdfast.cli.selection import unknown_task
from holdfast.cli.session import CommandSession, NotDone, each_once, operates
from holdfast.client.call import Call
from holdfast.client.named_task import NamedTask
from holdfast.client.redacted import redacted_schedule
from holdfast.client.registry import is_builder
from holdfast.client.schedule_control import ScheduleInfo, ScheduleRun, TickInfo
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.task import Task
from holdfast.client.workflow_function import workflow_named
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.near import near_names
from holdfast.core.options import checks
from holdfast.core.schedules.definition import ScheduleOptions
from holdfast.core.schedules.timing import When

_COLUMNS: Final = (
    TextColumn("schedule"),
    TextColumn("state"),
    TextColumn("task"),
    TextColumn("next", whole=True),
    TextColumn("last", whole=True),
    TextColumn("runs", right=True),
    TextColumn("dropped", right=True),
    TextColumn("when"),
)
_HISTORY: Final = (
    TextColumn("tick", whole=True),
    TextColumn("status"),
    TextColumn("cause"),
    TextColumn("task", whole=True),
    TextColumn("noted", whole=True),
)
_STYLES: Final = {"active": "green", "paused": "yellow", "stopped": "yellow", "ended": "dim"}
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d.*")
_NEXT_SHOWN: Final = 3

the_name = click.argument("name", metavar="NAME")
some_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=each_once)


@click.group("schedules")
def schedules() -> None:
    """See what fires when; add, pause, run, backfill, delete."""


@schedules.command("list")
@operates()
def list_(session: CommandSession) -> None:
    """List the schedules, by name."""
    found = session.control.schedules.list()
    if session.screen.as_json:
        listed = [_document(redacted_schedule(each, session.hides)) for each in found]
        session.screen.document({"schedules": listed, **unreadable_document(found.unreadable)})
        return
    now = session.control.now()
    rows = [
        (
            each.name,
            Cell(each.state, _STYLES[each.state]),
            each.task,
            moment_cell(each.next_run_at if each.state == "active" else None, now),
            moment_cell(each.last_run_at, now),
            each.run_count,
            each.dropped_count,
            each.words,
        )
        for each in found
    ]
    show_rows(session.screen, _COLUMNS, rows, found.unreadable)
    if found.unreadable:
        session.screen.remark("to be rid of such a schedule: holdfast schedules delete KEY")
    elif not rows:
        session.screen.remark(
            "there is no schedule: those of the code appear when a worker runs "
            f"({session.place.described})"
        )


@schedules.command()
@the_name
@operates()
def show(session: CommandSession, name: str) -> None:
    """Show everything about a schedule, and why it does not fire."""
    found = _find(session, name)
    coming = session.control.schedules.next(name, _NEXT_SHOWN)
    if session.screen.as_json:
        session.screen.document(_document(found))
        return
    now = session.control.now()

    def moment(at: datetime | None) -> str | None:
        return None if at is None else times.both(at, now)

    session.screen.facts(
        [
            ("schedule", found.name),
            ("state", Cell(found.state, _STYLES[found.state])),
            ("why", found.why),
            # Of an interval or a moment the stored form says nothing more.
            ("when", found.words + ("" if _is_length(found.when) else f": {found.when}")),
            ("sends", _call(found)),
            ("queue", found.queue),
            ("overlap", found.overlap),
            ("missed", _missed(found)),
            ("from", moment(found.start)),
            ("until", moment(found.end)),
            ("next", ", ".join(map(times.stamp, coming)) if found.state == "active" else None),
            ("waiting", "a tick waits for the prior run" if found.waiting else None),
            ("last run", moment(found.last_run_at)),
            ("last tick", None if found.last_tick is None else times.stamp(found.last_tick)),
            ("last task", None if found.last_task_id is None else str(found.last_task_id)),
            ("runs", f"{found.run_count:,}"),
            ("dropped", f"{found.dropped_count:,}" if found.dropped_count else None),
            ("origin", "declared by code" if found.declared else _origin(found)),
            ("created", moment(found.created_at)),
            ("updated", moment(found.updated_at)),
            ("hash", found.config_hash),
        ]
    )


@schedules.command()
@the_name
@click.argument("when", metavar="WHEN")
@click.argument("task", metavar="TASK")
@payload_options
@click.option("--version", type=int, help="Of the task; default 1, or the newest of the app.")
@click.option("--queue", help="Another queue than the task's.")
@click.option("--priority", type=int, help="1 (first) to 100 (last).")
@click.option("--tag", "tags", multiple=True, help="Several times for several.")
@click.option("--tz", help="Time zone of a cron pattern, by name; default UTC.")
@click.option("--overlap", help="While the prior run is live: skip (default), wait, allow.")
@click.option("--missed", help="Ticks nobody fired in time: latest (default), skip, all.")
@click.option("--max-missed", type=int, help="How many of those 'all' fires; default 100.")
@click.option("--start", metavar="TIME", callback=times.given, help="No tick before.")
@click.option("--end", metavar="TIME", callback=times.given, help="No tick from then on.")
@operates()
def add(
    session: CommandSession,
    name: str,
    when: str,
    task: str,
    args: list[Any],
    kwargs: dict[str, Any],
    version: int | None,
    **given: Any,
) -> None:
    """Add a schedule, or change one that was added before under this NAME.

    WHEN is a cron pattern of five fields, or six with seconds first, or @daily and the like; a
    length such as 5m; or a moment such as 2026-11-15T22:00Z. With --app it goes by the definition
    of the task: its queue, retries, arguments; and TASK may be a workflow.

    \b
    holdfast schedules add report "30 2 * * *" reports.nightly --tz Europe/Berlin
    """
    now = session.control.now()
    for bound in ("start", "end"):
        if given[bound] is not None:
            given[bound] = times.after(given[bound], now)
    chosen = {k: v for k in ("queue", "priority", "tags") if (v := given.pop(k)) not in (None, ())}
    options = cast("ScheduleOptions", {k: v for k, v in given.items() if v is not None})
    call = _called(session, task, version, chosen, args, kwargs)
    if session.place.tasks and session.place.tasks.find(task, version) is None:
        session.screen.remark(
            unknown_task(session, task, version, "what is sent waits for a worker that knows it")
        )
    added = session.control.schedules.add(name, _when(when, now), call, **options)
    if session.screen.as_json:
        session.screen.document(_document(redacted_schedule(added, session.hides)))
        return
    coming = "never" if added.next_run_at is None else times.both(added.next_run_at, now)
    session.screen.line(f"{added.name}  {added.words}; next: {coming}")


def _called(
    session: CommandSession,
    name: str,
    version: int | None,
    chosen: Any,
    args: list[Any],
    kwargs: dict[str, Any],
) -> Call[Any]:
    """What each tick sends: a task, or a workflow, which only the app knows."""
    dispatch = Dispatch(session.access, session.place.tasks)
    known = session.place.tasks.find(name, version)
    if known is None:
        task = NamedTask(name, 1 if version is None else version, dispatch)
        return task.options(**chosen).call(*args, **kwargs)
    if is_builder(known):
        workflow = workflow_named(dispatch, name, version).options(**chosen)
        return workflow.call_plain(args, kwargs)
    return Task(known, dispatch).options(**chosen).call(*args, **kwargs)


def _when(text: str, now: datetime) -> When:
    """A cron pattern, the length of an interval, or a moment."""
    typed = text.strip()
    if _MOMENT.fullmatch(typed) or not (" " in typed or typed.startswith("@")):
        try:
            moment = times.read(typed)
        except (ValueError, OverflowError):
            raise _unusable(text) from None
        return moment if isinstance(moment, timedelta) else times.after(moment, now)
    if not typed.startswith("@") and len(typed.split()) not in (5, 6):
        raise _unusable(text)
    return typed


def _unusable(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r:.200} is not usable: give a cron pattern such as '30 2 * * *' (minute hour day "
        "month weekday, or six fields with seconds first), @daily and the like, a length such as "
        "5m, or a moment such as 2026-11-15T22:00Z",
        option="when",
    )


def _is_length(when: str) -> bool:
    """Whether a schedule is of an interval or a moment, whose stored form says nothing more."""
    return when.startswith(("@every", "@once"))


@schedules.command()
@some_names
@click.option("--by", help="Who pauses it, for others to see; default: you.")
@operates()
def pause(session: CommandSession, names: tuple[str, ...], by: str | None) -> None:
    """Let schedules fire nothing more; what runs goes on."""
    _find_all(session, names)
    done = {name: session.control.schedules.pause(name, by=by) for name in names}
    _report(session, done, "paused", "was paused already")


@schedules.command()
@some_names
@operates()
def resume(session: CommandSession, names: tuple[str, ...]) -> None:
    """Let paused schedules go on with their next tick after now."""
    _find_all(session, names)
    done = {name: session.control.schedules.resume(name) for name in names}
    _report(session, done, "resumed", "was not paused")


@schedules.command()
@some_names
@operates()
def delete(session: CommandSession, names: tuple[str, ...]) -> None:
    """Remove schedules and the history of their ticks; their tasks stay."""
    done = {name: session.control.schedules.delete(name) for name in names}
    _report(session, done, "deleted", "not deleted: there is no such schedule")
    if not all(done.values()):
        click.get_current_context().exit(NotDone.exit_code)


@schedules.command()
@the_name
@operates()
def run(session: CommandSession, name: str) -> None:
    """Send what a schedule sends, now, and print the id."""
    _find(session, name)
    sent = session.control.schedules.run_now(name)
    if session.screen.as_json:
        session.screen.document({"schedule": name, "id": sent.id})
        return
    session.screen.line(str(sent.id))


@schedules.command("next")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("-n", "number", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option("--when", help="Instead of a NAME: a cron pattern, or a length such as 5m.")
@click.option("--tz", default="UTC", help="The time zone of that; default UTC.")
@operates()
def next_(
    session: CommandSession, name: str | None, number: int, when: str | None, tz: str
) -> None:
    """Print the next ticks of a schedule, or of a pattern that is no schedule yet."""
    if (name is None) == (when is None):
        raise click.UsageError("give the NAME of a schedule, or --when")
    now = session.control.now()
    if name is not None:
        _find(session, name)
        ticks = session.control.schedules.next(name, number)
    else:
        ticks = session.control.schedules.preview(_when(when or "", now), number, tz=tz)
    if session.screen.as_json:
        session.screen.document({"schedule": name, "when": when, "ticks": ticks})
        return
    for tick in ticks:
        session.screen.line(f"{times.stamp(tick)}  {times.relative(tick, now)}")
    if not ticks:
        session.screen.remark("it has no more ticks")


@schedules.command()
@the_name
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--before", metavar="TIME", callback=times.given, help="Only ticks before.")
@operates()
def history(session: CommandSession, name: str, limit: int, before: times.Given | None) -> None:
    """List what became of the ticks of a schedule, the newest first."""
    _find(session, name)
    now = session.control.now()
    first = None if before is None else times.before(before, now)
    found = session.control.schedules.history(name, before=first, limit=limit)
    if session.screen.as_json:
        listed = [json_document.as_dict(each) for each in found]
        session.screen.document({"ticks": listed, **unreadable_document(found.unreadable)})
        return
    show_rows(session.screen, _HISTORY, [_tick(each, now) for each in found], found.unreadable)
    if len(found) == limit:
        session.screen.remark(f"there may be more: --before {times.exact(found[-1].tick)}")
    elif not found:
        session.screen.remark("no tick has come yet")


@schedules.command()
@the_name
@click.argument("start", metavar="START", callback=times.given)
@click.argument("end", metavar="[END]", required=False, callback=times.given)
@operates()
def backfill(
    session: CommandSession, name: str, start: times.Given, end: times.Given | None
) -> None:
    """Fire the ticks from START on and before END that were not fired, the oldest first.

    Both are moments, or lengths of time ago: `backfill report 7d` fires what is missing of the
    last week. Without END: until now.
    """
    _find(session, name)
    now = session.control.now()
    first = times.before(start, now)
    last = now if end is None else times.before(end, now)
    sent = session.control.schedules.backfill(name, first, last)
    _print_ids(session, name, sent)


def _print_ids(session: CommandSession, name: str, sent: Sequence[ScheduleRun]) -> None:
    if session.screen.as_json:
        session.screen.document({"schedule": name, "ids": [run.id for run in sent]})
        return
    for run in sent:
        session.screen.line(str(run.id))
    if not sent:
        session.screen.remark("nothing was sent: every tick of that time has been fired")


def _find(session: CommandSession, name: str) -> ScheduleInfo:
    checks.schedule_name(name)
    try:
        return redacted_schedule(session.control.schedules.show(name), session.hides)
    except UnreadableRow as error:
        raise NotDone(f"{error}; to be rid of it: holdfast schedules delete {name}") from None
    except ConfigError as error:
        names = [each.name for each in session.control.schedules.list()]
        near = near_names(name, names)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise NotDone(f"{error} ({session.place.described}){hint}") from None


def _find_all(session: CommandSession, names: tuple[str, ...]) -> None:
    """All of them first: a command does everything it was asked for, or nothing."""
    for name in names:
        _find(session, name)


def _report(session: CommandSession, done: dict[str, bool], past: str, otherwise: str) -> None:
    if session.screen.as_json:
        rows = [{"schedule": name, past: changed} for name, changed in done.items()]
        session.screen.document({"schedules": rows})
        return
    for name, changed in done.items():
        session.screen.line(f"{name}  {past if changed else otherwise}")


def _document(found: ScheduleInfo) -> dict[str, Any]:
    return json_document.as_dict(found, why=found.why)


def _tick(found: TickInfo, now: datetime) -> tuple[Any, ...]:
    return (
        times.stamp(found.tick),
        found.status.value,
        found.cause.value,
        None if found.task_id is None else id_cell(found.task_id),
        moment_cell(found.noted_at, now),
    )


def _call(found: ScheduleInfo) -> str:
    parts: list[str] = [repr(each) for each in found.args] if isinstance(found.args, list) else []
    if isinstance(found.kwargs, dict):
        parts += [f"{key}={value!r}" for key, value in found.kwargs.items()]
    version = "" if found.version == 1 else f" v{found.version}"
    kind = "workflow " if found.is_workflow else ""
    return f"{kind}{found.task}{version}({', '.join(parts)})"


def _missed(found: ScheduleInfo) -> str:
    return f"all, the newest {found.max_missed:,}" if found.missed == "all" else found.missed


def _origin(found: ScheduleInfo) -> str:
    return f"added by {found.created_by}" if found.created_by else "added at run time"
