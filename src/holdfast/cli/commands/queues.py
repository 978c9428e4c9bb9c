"""`holdfast queues`: see what waits; pause, resume and limit queues."""

from __future__ import annotations

from typing import Final

import click

from holdfast.cli import completion
from holdfast.cli.limit_options import GivenLimit, limit_options
from holdfast.cli.render import json_document
from holdfast.cli.render.table import Cell, TextColumn
from holdfast.cli.render.task_list import moment_cell, show_rows, unreadable_document
from holdfast.cli.session import CommandSession, NotDone, each_once, operates
from holdfast.client.control import COUNT_CAP, QueueInfo
from holdfast.core.near import near_names
from holdfast.core.options import checks

_COLUMNS: Final = (
    TextColumn("queue"),
    TextColumn("pending", right=True),
    TextColumn("oldest", whole=True),
    TextColumn("scheduled", right=True),
    TextColumn("paused", whole=True),
    TextColumn("by"),
    TextColumn("limits"),
)


_names: Final = click.argument(
    "names",
    metavar="QUEUE...",
    nargs=-1,
    required=True,
    callback=each_once,
    shell_complete=completion.queues,
)


@click.group("queues")
def queues() -> None:
    """See what waits; pause, resume and limit queues."""


@queues.command("list")
@operates()
def list_(session: CommandSession) -> None:
    """List the queues in which something waits or is scheduled, and those that were ever paused or
    have a limit."""
    listing = session.control.queues.list()
    found = sorted(listing, key=lambda queue: queue.name)
    if session.screen.as_json:
        queues = [json_document.as_dict(queue) for queue in found]
        session.screen.document({"queues": queues, **unreadable_document(listing.unreadable)})
        return
    now = session.control.now()
    rows = [
        (
            queue.name,
            _count(queue.pending),
            moment_cell(queue.oldest_enqueued_at, now),
            _count(queue.scheduled),
            moment_cell(queue.paused_at, now),
            queue.paused_by,
            _limits(queue),
        )
        for queue in found
    ]
    show_rows(session.screen, _COLUMNS, rows, listing.unreadable)
    if not rows:
        place = session.place.described
        session.screen.remark(f"nothing waits in any queue, and none is paused ({place})")


@queues.command()
@_names
@click.option("--by", help="Who pauses it, for others to see; default: you.")
@click.option("--force", is_flag=True, help="Also a queue that nobody has seen yet.")
@operates()
def pause(session: CommandSession, names: tuple[str, ...], by: str | None, force: bool) -> None:
    """Let workers take nothing more from queues; what runs goes on."""
    _check_names(names)
    for name in names if not force else ():
        if not session.control.queues.seen(name):
            raise NotDone(_unseen(session, name))
    for name in names:
        session.control.queues.pause(name, by=by)
    _report(session, dict.fromkeys(names, True), "paused")


@queues.command()
@_names
@operates()
def resume(session: CommandSession, names: tuple[str, ...]) -> None:
    """Let paused queues go on."""
    _check_names(names)
    _report(session, {name: session.control.queues.resume(name) for name in names}, "resumed")


@queues.command()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@limit_options
@click.option("--fair/--strict", default=None, help="Keys take turns, or strict order.")
@operates()
def limit(session: CommandSession, name: str, given: GivenLimit, fair: bool | None) -> None:
    """Limit a queue, at once and everywhere; without options, show its limits."""
    checks.queue_name(name)
    control = session.control.queues
    if given.is_given:
        control.limit(name, given.limit)
    if fair is not None:
        control.fair(name, fair)
    queue = next((queue for queue in control.list() if queue.name == name), None)
    if session.screen.as_json:
        found = [] if queue is None else [json_document.as_dict(each) for each in queue.limits]
        is_fair = queue is None or queue.fair
        session.screen.document({"queue": name, "limits": found, "fair": is_fair})
        return
    session.screen.line(f"{name}  {(_limits(queue) if queue else None) or 'no limit'}")


def _limits(queue: QueueInfo) -> str | None:
    words = [str(limit) for limit in queue.limits]
    if not queue.fair:
        words.append("strict order")
    return "; ".join(words) or None


def _check_names(names: tuple[str, ...]) -> None:
    """All of them first: a command does everything it was asked for, or nothing."""
    for name in names:
        checks.queue_name(name)


def _unseen(session: CommandSession, name: str) -> str:
    known = {queue.name for queue in session.control.queues.list()}
    known |= {queue for worker in session.control.workers.list() for queue in worker.queues}
    near = near_names(name, known)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"nothing was paused: no task is in a queue {name!r}, no worker serves it, and it was "
        f"never paused ({session.place.described}); {hint}--force pauses it all the same"
    )


def _report(session: CommandSession, changed: dict[str, bool], past: str) -> None:
    if session.screen.as_json:
        rows = [{"queue": name, past: was_changed} for name, was_changed in changed.items()]
        session.screen.document({"queues": rows})
        return
    for name, was_changed in changed.items():
        session.screen.line(f"{name}  {past if was_changed else 'was not paused'}")


def _count(number: int) -> Cell:
    more = "+" if number >= COUNT_CAP else ""
    return Cell(f"{number:,}{more}", piped=f"{number}{more}")
