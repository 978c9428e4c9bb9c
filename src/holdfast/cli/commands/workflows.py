"""`holdfast workflows`: see where workflows stand; cancel, pause, resume and resubmit them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import click

from holdfast.cli.payload_options import payload_options
from holdfast.cli.render import times
from holdfast.cli.render.workflow_list import show_workflows
from holdfast.cli.render.workflow_tree import show_tree
from holdfast.cli.selection import confirm
from holdfast.cli.session import CommandSession, Misused, NotDone, operates
from holdfast.client.redacted import redacted_step, redacted_why, redacted_workflow
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.workflow import WorkflowOptions
from holdfast.client.workflow_control import WorkflowFilters, WorkflowPage
from holdfast.client.workflow_function import workflow_named
from holdfast.client.workflow_info import WorkflowInfo
from holdfast.core.errors import HoldfastError, IllegalTransition, TaskNotFound, UniqueConflict
from holdfast.core.options.unique import Unique
from holdfast.core.payload.failure import users_own
from holdfast.core.status import WorkflowStatus

_MAX_PAGE: Final = 1000
_OURS: Final = Path(__file__).parents[2]
_LIVE: Final = (WorkflowStatus.RUNNING, WorkflowStatus.PAUSED)
_ENDED: Final = (WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED)


def _statuses(
    ctx: click.Context, param: click.Parameter, given: Sequence[str]
) -> tuple[WorkflowStatus, ...]:
    names = [name.strip().upper() for text in given for name in text.split(",")]
    for name in names:
        if name not in list(WorkflowStatus):
            known = ", ".join(WorkflowStatus)
            raise click.BadParameter(f"{name!r} is no status; there are {known}", ctx, param)
    return tuple(dict.fromkeys(WorkflowStatus(name) for name in names))


_FILTERS: Final = (
    click.option("--name", help="With this name."),
    click.option("--tag", help="With this tag."),
    click.option(
        "--since", metavar="TIME", callback=times.given, help="Sent since: 2h, 2026-11-15."
    ),
    click.option(
        "--until", metavar="TIME", callback=times.given, help="Sent before: 30m, 2026-11-15."
    ),
)


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _where(
    session: CommandSession,
    statuses: Iterable[WorkflowStatus] = (),
    *,
    name: str | None,
    tag: str | None,
    since: times.Given | None,
    until: times.Given | None,
) -> WorkflowFilters:
    now = session.control.now() if since is not None or until is not None else None
    given = {
        "status": tuple(statuses),
        "name": name,
        "tag": tag,
        "submitted_from": None if since is None or now is None else times.before(since, now),
        "submitted_until": None if until is None or now is None else times.before(until, now),
    }
    return cast("WorkflowFilters", {k: v for k, v in given.items() if v not in (None, ())})


@click.group("workflows")
def workflows() -> None:
    """See where workflows stand; cancel, pause, resume and resubmit them."""


@workflows.command("list")
@click.option(
    "--status",
    multiple=True,
    callback=_statuses,
    help="In this status; several times, or with commas, for several.",
)
@_filters
@click.option("--parts", is_flag=True, help="Also those that are parts of others.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most."
)
@click.option("--after", metavar="ID", help="Go on after this workflow: the next page.")
@operates()
def list_(
    session: CommandSession,
    status: tuple[WorkflowStatus, ...],
    parts: bool,
    limit: int,
    after: str | None,
    **where: Any,
) -> None:
    """List workflows, the newest first."""
    start = None if after is None else session.workflow_id(after)
    wanted = _where(session, status, **where)
    wanted["parts"] = parts
    page = session.control.workflows.list(before=start, limit=limit, **wanted)
    shown = [redacted_workflow(info, session.hides) for info in page.workflows]
    page = replace(page, workflows=shown)
    show_workflows(session.screen, page, session.control.now(), place=session.place.described)


@workflows.command()
@click.argument("workflow", metavar="ID")
@operates()
def show(session: CommandSession, workflow: str) -> None:
    """Show where a workflow stands, why, and its steps as a tree."""
    found = session.workflow_id(workflow)
    report = session.control.workflows.show(found, parts=True)
    why = redacted_why(session.control.workflows.why(found))
    report = replace(
        report,
        info=redacted_workflow(report.info, session.hides),
        steps=[*map(redacted_step, report.steps)],
    )
    show_tree(session.screen, report, why, session.control.now())


@workflows.command()
@click.argument("workflow", metavar="ID")
@operates()
def graph(session: CommandSession, workflow: str) -> None:
    """Print the graph with the state of each step, as a Mermaid flowchart."""
    found = session.workflow_id(workflow)
    text = session.control.workflows.to_mermaid(found)
    if session.screen.as_json:
        session.screen.document({"id": found, "mermaid": text})
    else:
        session.screen.text(text)


@workflows.command()
@click.argument("name")
@payload_options
@click.option("--version", type=int, help="Of the workflow; default: the newest.")
@click.option("--unique-key", metavar="KEY", help="Only if no live workflow has this key.")
@click.option("--tag", "tags", multiple=True, help="Several times for several.")
@click.option("--id", "id_", metavar="UUID", help="Under this id: repeating it is harmless.")
@operates(creates=True)
def send(
    session: CommandSession,
    name: str,
    args: list[Any],
    kwargs: dict[str, Any],
    version: int | None,
    unique_key: str | None,
    tags: tuple[str, ...],
    id_: str | None,
) -> None:
    """Start a workflow by its name, and print its id.

    Its graph is built by its code, so this needs --app.
    """
    if session.place.app is None:
        raise Misused(
            "a workflow is built by its code: say which app has it, --app MODULE:APP "
            "(or HOLDFAST_APP)"
        )
    given: dict[str, Any] = {"tags": tags or None, "id": id_}
    given["unique"] = None if unique_key is None else Unique(unique_key)
    options = cast("WorkflowOptions", {k: v for k, v in given.items() if v is not None})
    dispatch = Dispatch(session.access, session.place.tasks)
    workflow = workflow_named(dispatch, name, version).options(**options)
    try:
        handle = workflow.send_plain(args, kwargs)
    except HoldfastError:
        raise
    except Exception as error:
        own = users_own(error.__traceback__, lambda file: Path(file).is_relative_to(_OURS))
        if own is None:
            raise
        trace = "".join(traceback.format_exception(type(error), error, own))
        said = f"the code that builds workflow {name!r} raised:\n{trace}"
        raise NotDone(said, several_lines=True) from None
    if session.screen.as_json:
        session.screen.document({"id": handle.id, "created": handle.created})
        return
    session.screen.line(str(handle.id))
    if not handle.created:
        session.screen.remark("nothing was started: this workflow exists")


def _selects(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.argument("ids", metavar="[ID]...", nargs=-1),
            *_FILTERS,
            click.option("--all", "everything", is_flag=True, help="Every one it applies to."),
            click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        )
    ):
        command = option(command)
    return command


@workflows.command()
@_selects
@click.option("--no-cleanup", is_flag=True, help="Also the steps that clean up.")
@operates()
def cancel(session: CommandSession, no_cleanup: bool, **selection: Any) -> None:
    """Cancel workflows, steps that run included; steps that clean up still run."""
    control = session.control.workflows
    found = _chosen(session, "cancel", _LIVE, **selection)
    _perform(session, found, lambda id: control.cancel(id, cleanup=not no_cleanup), _cancelled)


@workflows.command()
@_selects
@click.option("--by", help="Who pauses it, for others to see; default: you.")
@operates()
def pause(session: CommandSession, by: str | None, **selection: Any) -> None:
    """Hold what has not begun; what runs goes on."""
    control = session.control.workflows
    found = _chosen(session, "pause", (WorkflowStatus.RUNNING,), **selection)
    _perform(session, found, lambda id: control.pause(id, by=by), "paused")


@workflows.command()
@_selects
@operates()
def resume(session: CommandSession, **selection: Any) -> None:
    """Let paused workflows go on; a failure that paused one is accepted."""
    found = _chosen(session, "resume", (WorkflowStatus.PAUSED,), **selection)
    _perform(session, found, session.control.workflows.resume, "resumed")


@workflows.command()
@_selects
@click.option("--fresh", is_flag=True, help="Forget the checkpoints of their steps.")
@operates()
def resubmit(session: CommandSession, fresh: bool, **selection: Any) -> None:
    """Run again what ended badly, and what was skipped for it; what has completed stays."""
    control = session.control.workflows
    bad = (WorkflowStatus.FAILED, WorkflowStatus.CANCELLED)
    found = _chosen(session, "resubmit", bad, **selection)
    _perform(session, found, lambda id: control.resubmit(id, fresh=fresh), "resubmitted")


@workflows.command()
@_selects
@operates()
def delete(session: CommandSession, **selection: Any) -> None:
    """Delete workflows that have ended, with all their steps."""
    found = _chosen(session, "delete", _ENDED, **selection)

    def gone(id: UUID) -> None:
        if not session.control.workflows.delete(id):
            raise TaskNotFound(id, noun="workflow")

    _perform(session, found, gone, "deleted")


def _chosen(
    session: CommandSession,
    verb: str,
    statuses: Sequence[WorkflowStatus],
    *,
    ids: tuple[str, ...],
    everything: bool,
    yes: bool,
    **where: Any,
) -> list[UUID]:
    """The workflows to apply a verb to; asks first if they were not named one by one."""
    is_filtered = any(value is not None for value in where.values())
    if ids:
        if everything or is_filtered:
            raise click.UsageError("give ids, or filters, not both")
        return list(dict.fromkeys(session.workflow_id(typed) for typed in ids))
    if not everything and not is_filtered:
        raise click.UsageError(
            "which workflows? Give ids, or filters such as --name and --tag, "
            f"or --all for every one that {verb} applies to"
        )
    wanted = _where(session, statuses, **where)
    found: list[WorkflowInfo] = []
    page = WorkflowPage([], None)
    while not found or page.next is not None:
        page = session.control.workflows.list(before=page.next, limit=_MAX_PAGE, **wanted)
        found += page.workflows
        if page.next is None:
            break
    if found and not yes:
        confirm(f"{verb} {len(found):,} workflow(s)?")
    return [info.id for info in found]


def _cancelled(status: WorkflowStatus) -> str:
    return (
        "cancelled" if status is WorkflowStatus.CANCELLED else f"winds down; it is {status.value}"
    )


def _perform(
    session: CommandSession,
    ids: Sequence[UUID],
    verb: Callable[[UUID], WorkflowStatus | None],
    past: str | Callable[[WorkflowStatus], str],
) -> None:
    """Apply a verb to each, and say what happened; exit code 1 if any was refused."""
    answers: list[dict[str, Any]] = []
    try:
        for id in ids:
            try:
                status = verb(id)
            except (IllegalTransition, TaskNotFound, UniqueConflict) as error:
                done, status, message = False, None, str(error)
            else:
                done = True
                message = past if isinstance(past, str) else past(status or WorkflowStatus.RUNNING)
                if isinstance(past, str) and status is not None:
                    message = f"{past}; it is {status.value}"
            answers.append({"id": id, "done": done, "status": status, "message": message})
            if not session.screen.as_json:
                session.screen.line(f"{id}  {message}")
    except KeyboardInterrupt:
        number = sum(answer["done"] for answer in answers)
        session.screen.remark(
            f"interrupted: {number:,} of {len(ids):,} done, perhaps the one after them, too; the "
            "same command goes on with the rest"
        )
        raise
    refused = sum(not answer["done"] for answer in answers)
    if session.screen.as_json:
        session.screen.document({"workflows": answers})
    elif not answers:
        session.screen.remark("no workflow fits")
    elif len(answers) > 1:
        session.screen.remark(f"{len(answers) - refused:,} done, {refused:,} not")
    if refused:
        click.get_current_context().exit(NotDone.exit_code)
