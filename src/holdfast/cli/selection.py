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
from difflib import get_close_matches
from functools import wraps
from typing import Any, Final, TypeAlias
from uuid import UUID

import click

from holdfast.cli.render import times
from holdfast.cli.session import Misused, Refused, Session
from holdfast.client.control import MAX_PAGE, Filter, TaskPage
from holdfast.client.info import Attempt, TaskInfo
from holdfast.core.errors import UnreadableRow
from holdfast.core.status import TaskStatus

Command: TypeAlias = Callable[..., None]

limit = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most."
)
after = click.option("--after", metavar="ID", help="Go on after this task: the next page.")

_FRUITLESS: Final = 10
"""Pages of a list that may come out empty before the operator is asked to go on."""


@dataclass(frozen=True, slots=True)
class Where:
    """What the filter options said."""

    status: tuple[TaskStatus, ...] = ()
    queue: str | None = None
    name: str | None = None
    tag: str | None = None
    worker: str | None = None
    error: str | None = None
    since: times.Given | None = None
    until: times.Given | None = None
    dead: bool = False

    @property
    def is_empty(self) -> bool:
        """No filter was given."""
        return self == Where()

    def filter(self, now: datetime) -> Filter:
        """The same for the store."""
        found: Filter = {}
        if self.status:
            found["status"] = self.status
        if self.queue is not None:
            found["queue"] = self.queue
        if self.name is not None:
            found["name"] = self.name
        if self.tag is not None:
            found["tag"] = self.tag
        if self.worker is not None:
            found["worker_id"] = self.worker
        if self.error is not None:
            found["error_code"] = self.error
        if self.since is not None:
            found["submitted_from"] = times.before(self.since, now)
        if self.until is not None:
            found["submitted_until"] = times.before(self.until, now)
        if self.dead:
            found["dead"] = True
        return found


def _statuses(
    ctx: click.Context, param: click.Parameter, given: Sequence[str]
) -> tuple[TaskStatus, ...]:
    names = [name.strip().upper() for text in given for name in text.split(",")]
    try:
        return tuple(dict.fromkeys(TaskStatus(name) for name in names))
    except ValueError as error:
        known = ", ".join(TaskStatus)
        raise click.BadParameter(f"{error}; there are {known}", ctx, param) from None


_OPTIONS: Final = {
    "status": click.option(
        "--status",
        multiple=True,
        callback=_statuses,
        help="In this status; several times, or with commas, for several.",
    ),
    "queue": click.option("--queue", help="In this queue."),
    "name": click.option("--name", help="Of the task with this name."),
    "tag": click.option("--tag", help="With this tag."),
    "worker": click.option("--worker", metavar="ID", help="Claimed last by this worker."),
    "error": click.option("--error", metavar="CODE", help="Ended with this error code."),
    "since": click.option(
        "--since", metavar="TIME", callback=times.given, help="Submitted since: 2h, 2026-11-15."
    ),
    "until": click.option(
        "--until", metavar="TIME", callback=times.given, help="Submitted before: 30m, 2026-11-15."
    ),
    "dead": click.option("--dead", is_flag=True, help="Among the dead letters."),
}


def filters(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add the filter options; the command receives them as `where`."""
    names = [each.name for each in fields(Where) if each.name not in without]

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(*args: Any, **given: Any) -> None:
            where = Where(**{name: given.pop(name) for name in names})
            function(*args, where=where, **given)

        decorated: Command = command
        for name in reversed(names):
            decorated = _OPTIONS[name](decorated)
        return decorated

    return decorate


def selects(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add ids, filters, `--all` and `--yes`; the command receives them as `selection`."""

    def decorate(function: Command) -> Command:
        @click.argument("ids", metavar="[ID]...", nargs=-1)
        @filters(without=without)
        @click.option("--all", "everything", is_flag=True, help="Every task it applies to.")
        @click.option("--yes", "-y", is_flag=True, help="Do not ask.")
        @wraps(function)
        def command(
            *args: Any,
            ids: tuple[str, ...],
            where: Where,
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
    where: Where
    everything: bool
    yes: bool

    def resolve(
        self, session: Session, verb: str, applies_to: Collection[TaskStatus], *, dead: bool = False
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
        wanted = replace(where, dead=where.dead or dead, status=where.status or tuple(applies_to))
        found, counts = _search(session, wanted)
        if found and not self.yes:
            _ask(verb, counts)
        return found


def listed(session: Session, where: Where, *, limit: int, after: UUID | None) -> TaskPage:
    """Tasks that fit, the newest first, and where to go on."""
    wanted = where.filter(session.now())
    found: list[TaskInfo] = []
    unreadable: dict[str, UnreadableRow] = {}
    fruitless, rest = 0, after
    while fruitless < _FRUITLESS:
        page = session.control.tasks.list(before=rest, limit=limit - len(found), **wanted)
        found += page.tasks
        unreadable |= {row.key: row for row in page.unreadable}
        fruitless = 0 if page.tasks else fruitless + 1
        rest = page.next
        if rest is None or len(found) >= limit:
            break
    return TaskPage(found, rest, list(unreadable.values()))


def suggest_name(session: Session, where: Where) -> None:
    """Say which name may have been meant by one that no task has."""
    if where.name is None:
        return
    known = {info.name for info in session.control.tasks.list(limit=MAX_PAGE).tasks}
    known |= {task.name for task in session.place.tasks}
    for worker in session.control.workers.list(stopped=True):
        known |= {name.rpartition("@")[0] for name in worker.tasks}
    if where.name in known:
        return
    near = sorted(name for name in known if name.rpartition(".")[2] == where.name)
    near = near or get_close_matches(where.name, known, n=3)
    if near:
        session.screen.remark(f"did you mean {' or '.join(f'--name {name}' for name in near)}?")
    else:
        session.screen.remark(f"no task and no worker here has the name {where.name!r}")


def last_failures(session: Session, tasks: Sequence[TaskInfo]) -> dict[UUID, Attempt]:
    """What went wrong last in those of these tasks that go on."""
    tried = [info.id for info in tasks if info.attempt and not info.status.is_terminal]
    return session.control.tasks.last_errors(*tried) if tried else {}


def _search(session: Session, where: Where) -> tuple[list[UUID], Counter[TaskStatus]]:
    found: list[UUID] = []
    counts: Counter[TaskStatus] = Counter()
    wanted = where.filter(session.now())
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
    try:
        agreed = click.confirm(f"{verb} {what} ({parts})?", err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise Misused("nobody answered: give --yes to go ahead without asking") from None
    if not agreed:
        raise Refused("nothing was done")
