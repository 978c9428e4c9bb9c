"""`holdfast tasks`: look at tasks, send them, and steer them.

Owns the arguments of these commands; what they do is the store's and the client's, what they
show is in the modules beside this one.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import Any, cast

import click

from holdfast.cli import bulk_action, completion
from holdfast.cli.limit_options import GivenLimit, limit_options
from holdfast.cli.payload_options import payload_options
from holdfast.cli.render import json_document, times
from holdfast.cli.render.ending_list import follow_endings
from holdfast.cli.render.task_detail import TaskReport, show_task
from holdfast.cli.render.task_log import show_log
from holdfast.cli.selection import Selection, TaskFilters, filters, selects, show_page, unknown_task
from holdfast.cli.session import CommandSession, NotDone, operates
from holdfast.client.ending_tail import EndingFilter
from holdfast.client.redacted import redacted_attempt, redacted_task, redacted_why
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.sending.send_options import PLAIN, CallOptions, choose
from holdfast.client.task_questions import PATIENCE
from holdfast.core.errors import IllegalTransition, WaitTimeout
from holdfast.core.options.unique import Unique

the_task = click.argument("task", metavar="ID", shell_complete=completion.tasks)


@click.group("tasks")
def tasks() -> None:
    """Look at tasks, send them, and steer them."""


@tasks.command("list")
@filters(pages=True)
@operates()
def list_(session: CommandSession, where: TaskFilters, limit: int, after: str | None) -> None:
    """List tasks, the newest first."""
    show_page(session, where, limit=limit, after=after)


@tasks.command()
@filters(without=("since", "until"))
@click.option("--limit", type=click.IntRange(1), help="End after so many.")
@operates()
def follow(session: CommandSession, where: TaskFilters, limit: int | None) -> None:
    """Print each task that ends, as they end: with --json a document a line.

    Goes on until it is interrupted, also while the database is away.
    """
    wanted = cast("EndingFilter", where.filter(session.control.now()))
    follow_endings(session, session.control.tasks.tail(**wanted), limit=limit)


@tasks.command()
@the_task
@click.option("--full", is_flag=True, help="Cut nothing.")
@operates()
def show(session: CommandSession, task: str, full: bool) -> None:
    """Show everything about a task: where it stands, why, what happens next."""
    found = session.task_id(task)
    info = redacted_task(session.control.tasks.show(found), session.hides)
    attempts = session.control.tasks.attempts(found)
    made = [redacted_attempt(each, session.hides) for each in attempts]
    edges = session.control.tasks.dependencies(found)
    why = redacted_why(session.control.tasks.why(found))
    show_task(session.screen, TaskReport(info, made, edges, why, session.control.now()), full=full)


@tasks.command()
@click.argument("name", shell_complete=completion.task_names)
@limit_options
@operates()
def limit(session: CommandSession, name: str, given: GivenLimit) -> None:
    """Limit the task of this NAME, at once and everywhere; without options, show its limits.

    It holds instead of what its code says, until --none.
    """
    control = session.control.tasks
    if given.is_given:
        control.limit(name, given.limit)
        if session.place.tasks and session.place.tasks.find(name) is None:
            so = "the limit is kept for a task of this very name"
            session.screen.remark(unknown_task(session, name, None, so))
    found = control.limits(name)
    if session.screen.as_json:
        document = {"task": name, "limits": [json_document.as_dict(each) for each in found]}
        session.screen.document(document)
        return
    session.screen.line(f"{name}  {'; '.join(map(str, found)) or 'no limit'}")


@tasks.command()
@click.argument("name", shell_complete=completion.task_names)
@payload_options
@click.option("--version", type=int, help="Of the task; default 1.")
@click.option("--queue", help="Default: default.", shell_complete=completion.queues)
@click.option("--priority", type=int, help="1 (first) to 100 (last); default 50.")
@times.delay
@click.option("--good-until", metavar="TIME", callback=times.given, help="Expire it then.")
@click.option("--unique-key", metavar="KEY", help="Only if no live task has this key.")
@click.option("--tag", "tags", multiple=True, help="Several times for several.")
@click.option("--id", "id_", metavar="UUID", help="Under this id: repeating it is harmless.")
@operates(creates=True)
def send(
    session: CommandSession,
    name: str,
    args: list[Any],
    kwargs: dict[str, Any],
    version: int | None,
    **given: Any,
) -> None:
    """Send a task by its name, and print its id.

    With --app it goes by the definition: queue, retries, arguments. Otherwise its code is not here,
    and it is sent with the defaults.
    """
    choice = choose(PLAIN, **_call_options(session, **given))
    dispatch = Dispatch(session.access, session.place.tasks)
    handle = dispatch.send(dispatch.form_of(name, version, choice), args, kwargs)
    if session.screen.as_json:
        session.screen.document({"id": handle.id, "created": handle.created})
        return
    session.screen.line(str(handle.id))
    if not handle.created:
        session.screen.remark("nothing was sent: this task exists and has that id or unique key")
    elif session.place.tasks and session.place.tasks.find(name, version) is None:
        session.screen.remark(
            unknown_task(
                session,
                name,
                version,
                "it was sent with the defaults, and waits for a worker that knows it",
            )
        )


def _call_options(
    session: CommandSession,
    *,
    delay: times.Given | None,
    good_until: times.Given | None,
    unique_key: str | None,
    id_: str | None,
    **same: Any,
) -> CallOptions:
    given = {
        **same,
        "run_at" if isinstance(delay, datetime) else "delay": delay,
        "good_until": None
        if good_until is None
        else times.after(good_until, session.control.now()),
        "unique": None if unique_key is None else Unique(unique_key),
        "id": id_,
    }
    return cast("CallOptions", {k: v for k, v in given.items() if v is not None})


@tasks.command()
@selects()
@operates()
def cancel(session: CommandSession, selection: Selection) -> None:
    """Cancel tasks: those that wait end at once, those that run are asked to."""
    found = selection.resolve(session, "cancel", bulk_action.CANCELLABLE)
    bulk_action.perform(session, bulk_action.cancel, found)


@tasks.command()
@selects()
@bulk_action.resubmit_options
@operates()
def resubmit(session: CommandSession, selection: Selection, **given: Any) -> None:
    """Let tasks that ended without a value run again."""
    found = selection.resolve(session, "resubmit", bulk_action.RESUBMITTABLE)
    bulk_action.perform(session, bulk_action.resubmission(session, **given), found)


@tasks.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=completion.tasks)
@times.delay
@click.option("--now", "at_once", is_flag=True, help="Do not wait any longer.")
@click.option("--queue", help="Move it there.", shell_complete=completion.queues)
@click.option("--priority", type=int, help="1 (first) to 100 (last).")
@operates()
def reschedule(
    session: CommandSession,
    ids: tuple[str, ...],
    delay: times.Given | None,
    at_once: bool,
    queue: str | None,
    priority: int | None,
) -> None:
    """Change the time, queue or priority of tasks that wait."""
    if at_once and delay is not None:
        raise click.UsageError("give --delay or --now, not both")
    if not at_once and delay is None and queue is None and priority is None:
        raise click.UsageError("nothing to change: give --delay, --now, --queue or --priority")
    found = [session.task_id(typed) for typed in ids]
    apply = partial(
        bulk_action.reschedule, when=0 if at_once else delay, queue=queue, priority=priority
    )
    bulk_action.perform(session, apply, found)


@tasks.command()
@selects()
@click.option(
    "--unreadable",
    "keys",
    metavar="KEY",
    multiple=True,
    help="Instead: the row with this key, as lists name it, whatever its status.",
)
@operates()
def delete(session: CommandSession, selection: Selection, keys: tuple[str, ...]) -> None:
    """Delete tasks that have ended, with their attempts and logs."""
    if keys:
        if selection.ids or selection.everything or not selection.where.is_empty:
            raise click.UsageError("give ids or filters, or --unreadable, not both")
        bulk_action.delete_unreadable(session, keys)
        return
    found = selection.resolve(session, "delete", bulk_action.DELETABLE)
    bulk_action.perform(session, bulk_action.delete, found)


@tasks.command()
@the_task
@click.option("--attempt", type=click.IntRange(1), help="Of this attempt only.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the task has ended.")
@click.option("--raw", is_flag=True, help="The bytes as they are; a terminal obeys them.")
@operates()
def log(session: CommandSession, task: str, attempt: int | None, follow: bool, raw: bool) -> None:
    """Print what a task printed."""
    show_log(session, session.task_id(task), attempt=attempt, follow=follow, raw=raw)


def _seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        # A range lets it pass: it is not below, and not above.
        raise click.BadParameter("nan is not in the range 0<=x<=3600.", ctx, param)
    return value


@tasks.command()
@the_task
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600),
    callback=_seconds,
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long its worker may take to answer.",
)
@operates()
def stack(session: CommandSession, task: str, timeout: float) -> None:
    """Print where the code of a running task is."""
    found = session.task_id(task)
    try:
        text = session.control.tasks.stack(found, timeout=timeout)
    except IllegalTransition as error:
        status = error.status.value
        raise NotDone(f"task {found} is {status}: only running code has a stack") from None
    except WaitTimeout as error:
        info = session.control.tasks.show(found)
        raise NotDone(
            f"worker {info.claimed_by_worker_id} on {info.worker_hostname} did not answer within "
            f"{error.timeout:g} s: it may be gone (holdfast workers list), or busy"
        ) from None
    if session.screen.as_json:
        session.screen.document({"id": found, "stack": text})
    else:
        session.screen.text(text)


@tasks.command()
@the_task
@operates()
def why(session: CommandSession, task: str) -> None:
    """Say why a task is where it is."""
    found = redacted_why(session.control.tasks.why(session.task_id(task)))
    if session.screen.as_json:
        document = {"id": found.task_id, "status": found.status, "reasons": found.reasons}
        session.screen.document(document)
        return
    session.screen.line(f"task {found.task_id} is {found.status.value}:")
    for reason in found.reasons:
        session.screen.line(f"  {reason}")
