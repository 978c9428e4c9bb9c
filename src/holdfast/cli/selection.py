"""Which tasks a command is about: those named by id, or those that filters find.

Owns the filter options, their pages, and the question before a verb is applied to whatever
a filter found. Filters are looked up first and applied then, by id: a task that arrives in
between is not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import wraps
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import click

from holdfast.cli import completion
from holdfast.cli.render import times
from holdfast.cli.render.task_list import show_tasks
from holdfast.cli.session import CommandSession, Misused, NotDone
from holdfast.client.control import MAX_PAGE
from holdfast.client.info import TaskInfo
from holdfast.client.redacted import redacted_attempt, redacted_task
from holdfast.client.task_search import Filter, TaskPage
from holdfast.core.errors import UnreadableRow
from holdfast.core.near import near_names
from holdfast.core.status import TaskStatus

Command: TypeAlias = Callable[..., None]

_PAGE: Final = (
    click.option(
        "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most."
    ),
    click.option("--after", metavar="ID", help="Go on after this task: the next page."),
)
_MAX_EMPTY_PAGES: Final = 10
"""Pages of a list that may come out empty before the operator is asked to go on."""


@dataclass(frozen=True, slots=True)
class TaskFilters:
    """What the filter options said."""

    status: tuple[TaskStatus, ...] = ()
    queue: str | None = None
    name: str | None = None
    tag: str | None = None
    worker: str | None = None
    error: str | None = None
    exception: str | None = None
    since: times.Given | None = None
    until: times.Given | None = None
    dead: bool = False

    @property
    def is_empty(self) -> bool:
        """No filter was given."""
        return self == TaskFilters()

    def filter(self, now: datetime) -> Filter:
        """The same for the store."""
        since, until = self.since, self.until
        given = {
            "status": self.status,
            "queue": self.queue,
            "name": self.name,
            "tag": self.tag,
            "worker_id": self.worker,
            "error_code": self.error,
            "exception": self.exception,
            "submitted_from": None if since is None else times.before(since, now),
            "submitted_until": None if until is None else times.before(until, now),
            "dead": self.dead,
        }
        return cast("Filter", {k: v for k, v in given.items() if v not in (None, (), False)})


def _statuses(
    ctx: click.Context, param: click.Parameter, given: Sequence[str]
) -> tuple[TaskStatus, ...]:
    names = [name.strip().upper() for text in given for name in text.split(",")]
    for name in names:
        if name not in list(TaskStatus):
            known = ", ".join(TaskStatus)
            raise click.BadParameter(f"{name!r} is no status; there are {known}", ctx, param)
    return tuple(dict.fromkeys(TaskStatus(name) for name in names))


_OPTIONS: Final = {
    "status": click.option(
        "--status",
        shell_complete=completion.statuses,
        multiple=True,
        callback=_statuses,
        help="In this status; several times, or with commas, for several.",
    ),
    "queue": click.option("--queue", help="In this queue.", shell_complete=completion.queues),
    "name": click.option(
        "--name", help="Of the task with this name.", shell_complete=completion.task_names
    ),
    "tag": click.option("--tag", help="With this tag."),
    "worker": click.option(
        "--worker",
        metavar="ID",
        help="Claimed last by this worker.",
        shell_complete=completion.workers,
    ),
    "error": click.option("--error", metavar="CODE", help="Ended with this error code."),
    "exception": click.option(
        "--exception", metavar="CLASS", help="Failed with this exception: httpx.ReadTimeout."
    ),
    "since": click.option(
        "--since", metavar="TIME", callback=times.given, help="Submitted since: 2h, 2026-11-15."
    ),
    "until": click.option(
        "--until", metavar="TIME", callback=times.given, help="Submitted before: 30m, 2026-11-15."
    ),
    "dead": click.option("--dead", is_flag=True, help="Among the dead letters."),
}


def filters(*, without: Collection[str] = (), pages: bool = False) -> Callable[[Command], Command]:
    """Add the filter options, which the command receives as `where`.

    `pages`: and those of a list, `limit` and `after`.
    """
    names = [each.name for each in fields(TaskFilters) if each.name not in without]
    options = [*(_OPTIONS[name] for name in names), *(_PAGE if pages else ())]

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(*args: Any, **given: Any) -> None:
            where = TaskFilters(**{name: given.pop(name) for name in names})
            function(*args, where=where, **given)

        decorated: Command = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def selects(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add ids, filters, `--all` and `--yes`; the command receives them as `selection`."""

    def decorate(function: Command) -> Command:
        @click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion.tasks)
        @filters(without=without)
        @click.option("--all", "everything", is_flag=True, help="Every task it applies to.")
        @click.option("--yes", "-y", is_flag=True, help="Do not ask.")
        @wraps(function)
        def command(
            *args: Any,
            ids: tuple[str, ...],
            where: TaskFilters,
            everything: bool,
            yes: bool,
            **given: Any,
        ) -> None:
            function(*args, selection=Selection(ids, where, everything, yes), **given)

        return command

    return decorate


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks to apply a verb to, as the operator said it."""

    ids: tuple[str, ...]
    where: TaskFilters
    everything: bool
    yes: bool

    def resolve(
        self,
        session: CommandSession,
        verb: str,
        applies_to: Collection[TaskStatus],
    ) -> list[UUID]:
        """Their ids; asks first if they were not named one by one."""
        where = self.where
        if self.ids:
            if self.everything or not where.is_empty:
                raise click.UsageError("give ids, or filters, not both")
            return list(dict.fromkeys(session.task_id(typed) for typed in self.ids))
        if where.is_empty and not self.everything:
            raise click.UsageError(
                "which tasks? Give ids, or filters such as --queue and --name, "
                f"or --all for every task that {verb} applies to"
            )
        for status in where.status:
            if status not in applies_to:
                raise click.UsageError(f"{verb} does not apply to a task that is {status.value}")
        wanted = replace(where, status=where.status or tuple(applies_to))
        found, counts = _search(session, wanted)
        if found and not self.yes:
            _ask(verb, counts)
        return found


def show_page(
    session: CommandSession,
    where: TaskFilters,
    *,
    limit: int,
    after: str | None,
) -> None:
    """List the tasks that fit, the newest first."""
    start = None if after is None else session.task_id(after)
    page = _page(session, where, limit, start)
    shown = [redacted_task(info, session.hides) for info in page.tasks]
    page = replace(page, tasks=shown)
    # What went wrong last in those that go on.
    tried = [info.id for info in page.tasks if info.attempt and not info.status.is_terminal]
    errors = session.control.tasks.last_errors(*tried) if tried else {}
    failed = {task: redacted_attempt(made, session.hides) for task, made in errors.items()}
    place = session.place.described
    show_tasks(session.screen, page, session.control.now(), place=place, failed=failed, dead=False)
    if not page.tasks and page.next is None and where.name is not None:
        suggest_name(session, where.name)


def _page(session: CommandSession, where: TaskFilters, limit: int, after: UUID | None) -> TaskPage:
    wanted = where.filter(session.control.now())
    found: list[TaskInfo] = []
    unreadable: dict[str, UnreadableRow] = {}
    empty_pages, rest = 0, after
    while empty_pages < _MAX_EMPTY_PAGES:
        page = session.control.tasks.list(before=rest, limit=limit - len(found), **wanted)
        found += page.tasks
        unreadable |= {row.key: row for row in page.unreadable}
        empty_pages = 0 if page.tasks else empty_pages + 1
        rest = page.next
        if rest is None or len(found) >= limit:
            break
    return TaskPage(found, rest, list(unreadable.values()))


def suggest_name(session: CommandSession, name: str) -> None:
    """Say which name may have been meant by one that no task has."""
    known = {info.name for info in session.control.tasks.list(limit=MAX_PAGE).tasks}
    known |= {task.name for task in session.place.tasks}
    for worker in session.control.workers.list(stopped=True):
        known |= {task.rpartition("@")[0] for task in worker.tasks}
    if name in known:
        return
    if near := near_names(name, known):
        session.screen.remark(f"did you mean {' or '.join(f'--name {each}' for each in near)}?")
    else:
        session.screen.remark(f"no task and no worker here has the name {name!r}")


def unknown_task(session: CommandSession, name: str, version: int | None, so: str) -> str:
    """What is remarked of a task that the app does not have: `so` says what follows from it."""
    known = {task.name for task in session.place.tasks}
    near = [] if name in known else near_names(name, known)
    hint = f"; did you mean {near[0]}?" if near else ""
    which = f"{name!r}" if version is None else f"{name!r} version {version}"
    return f"the app has no task {which} ({session.place.origin}): {so}{hint}"


def _search(session: CommandSession, where: TaskFilters) -> tuple[list[UUID], Counter[TaskStatus]]:
    found: list[UUID] = []
    counts: Counter[TaskStatus] = Counter()
    wanted = where.filter(session.control.now())
    start: UUID | None = None
    while True:
        page = session.control.tasks.list(before=start, limit=MAX_PAGE, **wanted)
        found += [info.id for info in page.tasks]
        counts.update(info.status for info in page.tasks)
        start = page.next
        if start is None:
            return found, counts


def _ask(verb: str, counts: Counter[TaskStatus]) -> None:
    number = counts.total()
    what = "1 task" if number == 1 else f"{number:,} tasks"
    parts = ", ".join(f"{count:,} {status.value}" for status, count in counts.most_common())
    confirm(f"{verb} {what} ({parts})?")


def confirm(question: str) -> None:
    """Go on if somebody says yes; anything else ends the command."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise Misused("nobody answered: give --yes to go ahead without asking") from None
    if not agreed:
        raise NotDone("nothing was done")
