"""`holdfast top`: queues, workers, running tasks and failures, live in the terminal."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.screen import console
from holdfast.cli.session import CommandSession, Misused, operates

if TYPE_CHECKING:
    from holdfast.cli.top.snapshot import Snapshot


@click.command("top")
@click.option(
    "--every",
    type=click.FloatRange(0.5, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the database is read.",
)
@click.option("--once", is_flag=True, help="Print one picture, also into a pipe.")
@operates()
def top(session: CommandSession, every: float, once: bool) -> None:
    """Watch queues, workers, running tasks and failures; steer them.

    Press ? for its keys. It reads counters and short lists, so it does not hurt the queue. With
    --json it answers once.
    """
    from holdfast.cli.top.monitor import Monitor
    from holdfast.cli.top.snapshot import SnapshotReader

    reader = SnapshotReader(session.control, every, session.hides)
    paper = console(markup=False)
    monitor = Monitor(session, reader, paper)
    if session.screen.as_json:
        session.screen.document(_document(session, reader.read()))
        return
    if once:
        monitor.show(reader.read(), paper.width)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misused("this needs a terminal; --once prints one picture anywhere")
    from holdfast.cli.top.keyboard import Ended, Keyboard

    reader.start()
    keyboard = Keyboard()
    code = 0
    try:
        with keyboard.lent():
            monitor.run(keyboard)
    except Ended as ended:
        code = 128 + ended.number
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    asked = monitor.is_asking
    if not reader.stop() or asked:
        # Nobody who quits waits for a database that is away.
        if asked:
            session.screen.remark("the database has not answered: it may still be done")
        sys.stdout.flush()
        os._exit(code)
    raise click.exceptions.Exit(code)


def _document(session: CommandSession, found: Snapshot) -> dict[str, Any]:
    return json_document.as_dict(found)
