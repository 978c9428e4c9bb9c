"""`holdfast dead-letters`: the tasks that failed for good, until somebody decides.

By id, the verbs are those of `holdfast tasks`, applied to dead letters only: an id of another task
is refused. By a filter, they go page by page through all that fit, and say how far they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Final, Literal, cast

import click

from holdfast.cli import bulk_action
from holdfast.cli.render import json_document, times
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.table import TextColumn
from holdfast.cli.render.task_list import moment_cell, show_tasks
from holdfast.cli.selection import confirm, suggest_name
from holdfast.cli.session import CommandSession, NotDone, operates
from holdfast.client.control import MAX_PAGE
from holdfast.client.dead_letter_control import DeadFilter, Treated
from holdfast.client.info import TaskInfo
from holdfast.client.redacted import redacted_task
from holdfast.client.task_search import TaskPage

_CAUSES: Final = (
    TextColumn("code"),
    TextColumn("name", most=40),
    TextColumn("version", right=True, room=100),
    TextColumn("queue", room=80),
    TextColumn("count", right=True),
    TextColumn("first", whole=True),
    TextColumn("last", whole=True),
)
_OVER_TIME: Final = (
    TextColumn("from", whole=True),
    TextColumn("count", right=True),
    TextColumn("codes"),
)
_OPTIONS: Final = (
    click.option("--queue", help="In this queue."),
    click.option("--name", help="Of the task with this name."),
    click.option("--version", type=click.IntRange(1), help="Of this version of the task."),
    click.option("--error", "error_code", metavar="CODE", help="With this error code."),
    click.option("--exception", metavar="CLASS", help="Failed so: httpx.ReadTimeout."),
    click.option("--text", help="With this in the reason, the id, the name or a key."),
    click.option("--tag", help="With this tag."),
    click.option("--worker", "worker_id", metavar="ID", help="Claimed last by this worker."),
    click.option(
        "--ended-since", "ended_from", metavar="TIME", callback=times.given,
        help="Died since: 2h, 2026-11-15.",
    ),
    click.option(
        "--ended-until", "ended_until", metavar="TIME", callback=times.given,
        help="Died before: 30m, 2026-11-15.",
    ),
    click.option(
        "--since", "submitted_from", metavar="TIME", callback=times.given,
        help="Submitted since: 2h, 2026-11-15.",
    ),
    click.option(
        "--until", "submitted_until", metavar="TIME", callback=times.given,
        help="Submitted before: 30m, 2026-11-15.",
    ),
)  # fmt: skip
_FILTERS: Final = (
    "queue", "name", "version", "error_code", "exception", "text", "tag", "worker_id", "ended_from",
    "ended_until", "submitted_from", "submitted_until",
)  # fmt: skip


def _filters(function: Callable[..., None]) -> Callable[..., None]:
    """Add the filter options, which the command receives as `where`, as they were typed."""

    @wraps(function)
    def command(*args: Any, **given: Any) -> None:
        where = {name: given.pop(name) for name in _FILTERS}
        kept = {name: value for name, value in where.items() if value is not None}
        function(*args, where=kept, **given)

    decorated: Callable[..., None] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _selects(function: Callable[..., None]) -> Callable[..., None]:
    """Add ids, filters, `--all` and `--yes`."""
    command: Callable[..., None] = _filters(function)
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--all", "everything", is_flag=True, help="All dead letters."),
        click.argument("ids", metavar="[ID]...", nargs=-1),
    ):
        command = option(command)
    return command


@click.group("dead-letters")
def dead_letters() -> None:
    """Tasks that failed for good: list, causes, resubmit, delete."""


@dead_letters.command("list")
@_filters
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most."
)
@click.option("--after", metavar="ID", help="Go on after this task: the next page.")
@operates()
def list_(session: CommandSession, where: dict[str, Any], limit: int, after: str | None) -> None:
    """List dead letters, the newest first."""
    chosen = _moments(session, where)
    letters = session.control.dead_letters
    rest = None if after is None else session.task_id(after)
    page = letters.list(before=rest, limit=min(limit, MAX_PAGE), **chosen)
    tasks: list[TaskInfo] = [*page.tasks]
    unreadable = {row.key: row for row in page.unreadable}
    while page.next is not None and len(tasks) < limit:
        page = letters.list(before=page.next, limit=min(limit - len(tasks), MAX_PAGE), **chosen)
        tasks += page.tasks
        unreadable |= {row.key: row for row in page.unreadable}
    shown = [redacted_task(info, session.hides) for info in tasks]
    page = TaskPage(shown, page.next, list(unreadable.values()))
    place = session.place.described
    show_tasks(session.screen, page, session.control.now(), place=place, failed={}, dead=True)
    if not tasks and page.next is None and "name" in chosen:
        suggest_name(session, chosen["name"])


@dead_letters.command()
@_filters
@click.option(
    "--by", type=click.Choice(["hour", "day"]), help="How many in each hour or day, instead."
)
@operates()
def causes(
    session: CommandSession, where: dict[str, Any], by: Literal["hour", "day"] | None
) -> None:
    """Count dead letters by what they died of, the most frequent first."""
    chosen = _moments(session, where)
    letters, screen, now = session.control.dead_letters, session.screen, session.control.now()
    if by is not None:
        counts = letters.over_time(by, **chosen)
        if screen.as_json:
            screen.document({"counts": [json_document.as_dict(each) for each in counts]})
            return
        screen.table(
            _OVER_TIME,
            [
                (moment_cell(each.at, now), f"{each.count:,}", _codes(each.by_code))
                for each in counts
            ],
        )
        return
    found = letters.causes(**chosen)
    if screen.as_json:
        screen.document({"causes": [json_document.as_dict(each) for each in found]})
        return
    rows = [
        (
            each.exception or each.error_code,
            each.name,
            str(each.version),
            each.queue,
            f"{each.count:,}",
            moment_cell(each.first_at, now),
            moment_cell(each.last_at, now),
        )
        for each in found
    ]
    screen.table(_CAUSES, rows)


@dead_letters.command()
@_selects
@bulk_action.resubmit_options
@click.option(
    "--rate", help="So many in a time, one after the other: 10/s, 100/minute. With filters."
)
@operates()
def resubmit(
    session: CommandSession,
    ids: tuple[str, ...],
    where: dict[str, Any],
    everything: bool,
    yes: bool,
    rate: str | None,
    **given: Any,
) -> None:
    """Let dead letters run again, with retries anew."""
    if _are_named(ids, where, everything, "resubmit"):
        if rate is not None:
            raise click.UsageError("--rate is for filters: ids are resubmitted at once")
        again = bulk_action.resubmission(session, **given)
        _perform(session, ids, again)
        return
    chosen = _moments(session, where)
    delay = given["delay"]
    at = None if delay is None else times.after(delay, session.control.now())
    _confirm(session, "resubmit", chosen, yes)
    letters = session.control.dead_letters
    options = {"keep_retries": given["keep_retries"], "fresh": given["fresh"], "run_at": at}
    treat = partial(letters.resubmit_all, **chosen, **options, rate=rate)
    _report(session, "resubmitted", treat)


@dead_letters.command()
@_selects
@operates()
def delete(
    session: CommandSession,
    ids: tuple[str, ...],
    where: dict[str, Any],
    everything: bool,
    yes: bool,
) -> None:
    """Delete dead letters, with their attempts and logs."""
    if _are_named(ids, where, everything, "delete"):
        _perform(session, ids, bulk_action.delete_dead)
        return
    chosen = _moments(session, where)
    _confirm(session, "delete", chosen, yes)
    _report(session, "deleted", partial(session.control.dead_letters.delete_all, **chosen))


def _are_named(ids: Sequence[str], where: Mapping[str, Any], everything: bool, verb: str) -> bool:
    if ids and (everything or where):
        raise click.UsageError("give ids, or filters, not both")
    if not (ids or everything or where):
        raise click.UsageError(
            "which dead letters? Give ids, or filters such as --queue and --name, "
            f"or --all to {verb} every one"
        )
    return bool(ids)


def _perform(session: CommandSession, ids: Sequence[str], apply: bulk_action.Apply) -> None:
    found = list(dict.fromkeys(session.task_id(typed) for typed in ids))
    bulk_action.perform(session, bulk_action.of_dead_letters(apply), found)


def _moments(session: CommandSession, where: Mapping[str, Any]) -> DeadFilter:
    """The filter, with the lengths of time in it counted back from now."""
    now = session.control.now()
    chosen = {
        name: times.before(value, now) if name.endswith(("_from", "_until")) else value
        for name, value in where.items()
    }
    return cast("DeadFilter", chosen)


def _confirm(session: CommandSession, verb: str, chosen: DeadFilter, yes: bool) -> None:
    if yes:
        return
    found = session.control.dead_letters.causes(**chosen)
    number = sum(cause.count for cause in found)
    if not number:
        return
    codes: Counter[str] = Counter()
    for cause in found:
        codes[cause.exception or cause.error_code or "-"] += cause.count
    confirm(f"{verb} {_letters(number)} ({_codes(codes)})?")


def _report(session: CommandSession, past: str, treat: Callable[..., Treated]) -> None:
    """Do it, say how far it is, and what became of it; exit code 1 if any was refused."""
    screen = session.screen
    told, outcome = 0, Treated()

    def progress(so_far: Treated) -> None:
        nonlocal told, outcome
        outcome = so_far
        tenth = 10 * (so_far.done + so_far.refused) // max(so_far.total, 1)
        if tenth > told and so_far.total > _SAID_FROM and not screen.as_json:
            told = tenth
            screen.remark(f"{so_far.done + so_far.refused:,} of {so_far.total:,}")

    try:
        outcome = treat(progress=progress)
    except KeyboardInterrupt:
        _interrupted(screen, past, outcome)
        raise
    if screen.as_json:
        reasons = {str(task): reason for task, reason in outcome.reasons.items()}
        screen.document(json_document.as_dict(outcome, reasons=reasons))
    elif not outcome.total:
        screen.remark(f"no dead letter fits ({session.place.described})")
    else:
        last = "" if outcome.until is None else f"; the last runs at {times.stamp(outcome.until)}"
        screen.line(f"{_letters(outcome.done)} {past}{last}")
        for task, reason in outcome.reasons.items():
            screen.line(f"{task}  not {past}: {reason}")
        if outcome.refused > len(outcome.reasons):
            screen.line(f"and {outcome.refused - len(outcome.reasons):,} more were not {past}")
    if outcome.refused:
        click.get_current_context().exit(NotDone.exit_code)


def _interrupted(screen: Screen, past: str, so_far: Treated) -> None:
    """What was done before Ctrl-C, and how to go on."""
    rest = "the same command goes on with the rest"
    if so_far.until is not None:
        rest += (
            f", and with --delay {times.stamp(so_far.until)} it follows them at the same rate: "
            "the last of them runs then"
        )
    screen.remark(f"interrupted: {so_far.done:,} of {_letters(so_far.total)} were {past}; {rest}")


_SAID_FROM: Final = 1000
"""With fewer, it is done before anybody asks."""


def _letters(number: int) -> str:
    return "1 dead letter" if number == 1 else f"{number:,} dead letters"


def _codes(codes: Mapping[str | None, int] | Mapping[str, int]) -> str:
    shown = sorted(codes.items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {code or '-'}" for code, count in shown)
