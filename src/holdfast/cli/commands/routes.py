"""`holdfast routes`: send tasks to queues by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.table import TextColumn
from holdfast.cli.render.task_list import moment_cell, show_rows, unreadable_document
from holdfast.cli.session import CommandSession, NotDone, each_once, operates

_WEIGHT: Final = re.compile("0*[1-9][0-9]{0,9}")
_COLUMNS: Final = (
    TextColumn("pattern"),
    TextColumn("queues"),
    TextColumn("set", whole=True),
    TextColumn("by"),
)


@click.group("routes")
def routes() -> None:
    """Send tasks to queues by their names: list, set, delete."""


@routes.command("list")
@operates()
def list_(session: CommandSession) -> None:
    """List the routes, by their patterns."""
    found = session.control.routes.list()
    if session.screen.as_json:
        listed = [json_document.as_dict(route) for route in found]
        session.screen.document({"routes": listed, **unreadable_document(found.unreadable)})
        return
    now = session.control.now()
    rows = [
        (route.pattern, _queues(route.queues), moment_cell(route.updated_at, now), route.set_by)
        for route in found
    ]
    show_rows(session.screen, _COLUMNS, rows, found.unreadable)
    if not rows:
        session.screen.remark(
            f"there is no route: every task goes to its own queue ({session.place.described})"
        )


@routes.command("set")
@click.argument("pattern", metavar="NAME")
@click.argument("queues", metavar="QUEUE[=WEIGHT]...", nargs=-1, required=True)
@operates()
def set_(session: CommandSession, pattern: str, queues: tuple[str, ...]) -> None:
    """Send the tasks of a NAME, or of names like 'mail.*', to a queue, or to several by weight.

    A queue that is chosen for a single send comes before it. Every sender follows it within a
    second; what was sent before stays where it is.

    \b
    holdfast routes set resize images=3 images-eu=1
    holdfast routes set 'mail.*' mail
    """
    targets = _targets(queues)
    session.control.routes.set(pattern, targets)
    served = {
        queue
        for worker in session.control.workers.list()
        if worker.state == "alive"
        for queue in worker.queues
    }
    unserved = sorted(targets.keys() - served)
    if session.screen.as_json:
        document = {"pattern": pattern, "queues": targets, "unserved": unserved}
        session.screen.document(document)
        return
    session.screen.line(f"{pattern}  goes to {_queues(targets)}")
    for queue in unserved:
        session.screen.remark(f"no worker serves queue {queue!r} now: start one (-q {queue})")


@routes.command()
@click.argument("patterns", metavar="NAME...", nargs=-1, required=True, callback=each_once)
@operates()
def delete(session: CommandSession, patterns: tuple[str, ...]) -> None:
    """Remove routes; their tasks go to their own queues again, or along another route."""
    done = {pattern: session.control.routes.delete(pattern) for pattern in patterns}
    if session.screen.as_json:
        rows = [{"pattern": pattern, "deleted": gone} for pattern, gone in done.items()]
        session.screen.document({"routes": rows})
    else:
        for pattern, gone in done.items():
            text = "deleted" if gone else "not deleted: there is no such route"
            session.screen.line(f"{pattern}  {text}")
    if not all(done.values()):
        click.get_current_context().exit(NotDone.exit_code)


def _targets(given: tuple[str, ...]) -> dict[str, int]:
    """Queues and their weights; 1 where none is said."""
    found: dict[str, int] = {}
    for text in given:
        queue, sign, weight = text.partition("=")
        if queue in found:
            raise click.UsageError(f"queue {queue!r} is named twice")
        if sign and not _WEIGHT.fullmatch(weight):
            raise click.UsageError(
                f"{text!r:.200}: give the weight of a queue as a whole number from 1 on, "
                "as in images=3"
            )
        found[queue] = int(weight or 1)
    return found


def _queues(queues: Mapping[str, int]) -> str:
    total = sum(queues.values())
    if len(queues) == 1:
        return next(iter(queues))
    return ", ".join(f"{queue}={weight} ({weight / total:.0%})" for queue, weight in queues.items())
