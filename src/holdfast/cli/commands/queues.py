"""`holdfast queues`: see what waits; pause and resume queues."""

from __future__ import annotations

import getpass
import socket
from typing import Final

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.table import Cell, Column, Table
from holdfast.cli.render.task_list import moment_cell
from holdfast.cli.session import Session, operates
from holdfast.client.control import COUNT_CAP

_COLUMNS: Final = (
    Column("queue"),
    Column("pending", right=True),
    Column("oldest", whole=True),
    Column("paused", whole=True),
    Column("by"),
)


@click.group("queues")
def queues() -> None:
    """See what waits; pause and resume queues."""


@queues.command("list")
@operates()
def list_(session: Session) -> None:
    """List the queues in which something waits, and those that were ever paused."""
    found = sorted(session.control.queues.list(), key=lambda queue: queue.name)
    if session.screen.as_json:
        session.screen.document({"queues": [json_document.as_dict(queue) for queue in found]})
        return
    now = session.now()
    rows = [
        (
            queue.name,
            _count(queue.pending),
            moment_cell(queue.oldest_enqueued_at, now),
            moment_cell(queue.paused_at, now),
            queue.paused_by,
        )
        for queue in found
    ]
    if rows or not session.screen.is_terminal:
        session.screen.table(Table(_COLUMNS, rows))
    if not rows:
        session.screen.remark("nothing waits in any queue, and none is paused")


@queues.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@click.option("--by", help="Who pauses it, for others to see; default: you, on this machine.")
@operates()
def pause(session: Session, names: tuple[str, ...], by: str | None) -> None:
    """Let workers take nothing more from queues; what runs goes on."""
    for name in names:
        session.control.queues.pause(name, by=by or _operator())
    _report(session, dict.fromkeys(names, True), "paused")


@queues.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@operates()
def resume(session: Session, names: tuple[str, ...]) -> None:
    """Let paused queues go on."""
    _report(session, {name: session.control.queues.resume(name) for name in names}, "resumed")


def _report(session: Session, changed: dict[str, bool], past: str) -> None:
    if session.screen.as_json:
        rows = [{"queue": name, past: was_changed} for name, was_changed in changed.items()]
        session.screen.document({"queues": rows})
        return
    for name, was_changed in changed.items():
        session.screen.line(f"{name}  {past if was_changed else 'was not paused'}")


def _count(number: int) -> Cell:
    more = "+" if number >= COUNT_CAP else ""
    return Cell(f"{number:,}{more}", piped=f"{number}{more}")


def _operator() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = "?"
    return f"{name}@{socket.gethostname()}"
