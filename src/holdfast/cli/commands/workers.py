"""`holdfast workers`: see which workers there are, and have them stop.

Owns the choice of workers, by what begins their ids, and waiting until they have gone.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import click

from holdfast.cli import completion
from holdfast.cli.render import json_document, times
from holdfast.cli.render.table import Cell, TextColumn, Value
from holdfast.cli.render.task_list import moment_cell, show_rows, unreadable_document
from holdfast.cli.selection import confirm
from holdfast.cli.session import CommandSession, Misused, NotDone, operates
from holdfast.client.worker_control import WorkerInfo

_COLUMNS: Final = (
    TextColumn("worker", whole=True),
    TextColumn("state", whole=True),
    TextColumn("seen", whole=True),
    TextColumn("running", right=True),
    TextColumn("claimed", right=True, room=120),
    TextColumn("memory", right=True, whole=True, room=120),
    TextColumn("cpu", right=True, whole=True, room=120),
    TextColumn("as of", whole=True),
    TextColumn("host"),
    TextColumn("pid", right=True),
    TextColumn("started", whole=True, room=100),
    TextColumn("version", whole=True, room=140),
    TextColumn("queues", room=90),
)
_SNAPSHOT: Final = ("processes", "tasks_running", "tasks_claimed", "memory_usage_mb", "cpu_percent")
_LOOK_EVERY: Final = 0.5
_OBEYING: Final = {"drain": "draining", "stop": "stopping", "interrupt": "stopping"}
_STYLES: Final = {"alive": "green", "silent": "bold red", "stopped": "dim"}


@click.group("workers")
def workers() -> None:
    """See which workers there are; have them stop."""


@workers.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that have stopped.")
@operates()
def list_(session: CommandSession, everything: bool) -> None:
    """List the workers, the newest first.

    What each runs, and its memory, are what it said itself at the time under AS OF (every 30 s).
    """
    found = session.control.workers.list(stopped=everything)
    if session.screen.as_json:
        workers = [_document(worker) for worker in found]
        session.screen.document({"workers": workers, **unreadable_document(found.unreadable)})
        return
    now = session.control.now()
    show_rows(session.screen, _COLUMNS, [_row(worker, now) for worker in found], found.unreadable)
    if not found:
        session.screen.remark(f"no worker is running on this database ({session.place.described})")


def _row(worker: WorkerInfo, now: datetime) -> list[Value]:
    # What a worker said last is no longer so if it is silent.
    latest = worker.latest if worker.state == "alive" else None
    memory, cpu = (getattr(latest, name, None) for name in ("memory_usage_mb", "cpu_percent"))
    return [
        worker.id,
        _state(worker),
        moment_cell(worker.seen_at, now),
        None if latest is None else latest.tasks_running,
        None if latest is None else latest.tasks_claimed,
        None if memory is None else Cell(f"{memory:,.0f} MB", piped=f"{memory:.0f}MB"),
        None if cpu is None else Cell(f"{cpu:.0f} %", piped=f"{cpu:.0f}%"),
        None if latest is None else moment_cell(latest.at, now),
        worker.hostname,
        worker.pid,
        moment_cell(worker.started_at, now),
        worker.version,
        ",".join(worker.queues),
    ]


def _ordering(function: Callable[..., None]) -> Callable[..., None]:
    """The options of both orders."""
    for option in (
        click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion.workers),
        click.option("--all", "everything", is_flag=True, help="Every worker that is there."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--wait", is_flag=True, help="Until they have stopped."),
    ):
        function = option(function)
    return function


@workers.command("stop")
@_ordering
@click.option("--interrupt", is_flag=True, help="Give what runs no time to end.")
@operates()
def stop_(session: CommandSession, interrupt: bool, **given: Any) -> None:
    """Have workers stop, as SIGTERM does: what runs has their grace to end.

    What has not ended by then is interrupted, stopped or waited for, as its task says. A worker
    hears of it within two seconds. Whatever restarts workers, such as systemd, will do so.
    """
    _have(session, "stop", lambda names: _stop(session, names, interrupt=interrupt), **given)


@workers.command()
@_ordering
@operates()
def drain(session: CommandSession, **given: Any) -> None:
    """Have workers claim nothing more, end what they run, and stop.

    However long it takes: `holdfast workers stop` makes an end of it.
    """
    _have(session, "drain", lambda names: session.control.workers.drain(*names), **given)


def _stop(session: CommandSession, names: Sequence[str], *, interrupt: bool) -> dict[str, bool]:
    return session.control.workers.stop(*names, interrupt=interrupt)


def _have(
    session: CommandSession,
    verb: str,
    order: Callable[[Sequence[str]], dict[str, bool]],
    *,
    ids: tuple[str, ...],
    everything: bool,
    yes: bool,
    wait: bool,
) -> None:
    if bool(ids) == everything:
        raise click.UsageError("which workers? Give ids (holdfast workers list), or --all")
    names = _named(session, ids) if ids else _all(session)
    if names and everything and not yes:
        number = "1 worker" if len(names) == 1 else f"{len(names):,} workers"
        confirm(f"{verb} {number}?")
    told = order(names) if names else {}
    silent = _silent(session) if told else {}
    if not session.screen.as_json:
        for name, heard in told.items():
            session.screen.line(f"{name}  {_told(verb, heard, silent.get(name))}")
        if not told:
            session.screen.remark(
                f"no worker is running on this database ({session.place.described})"
            )
    left = _await(session, {name for name, heard in told.items() if heard}) if wait else []
    if session.screen.as_json:
        session.screen.document(
            {
                "workers": [
                    {"worker_id": name, "told": heard, "silent": name in silent}
                    for name, heard in told.items()
                ]
            }
        )
    gone = [name for name, heard in told.items() if heard and name in silent]
    if gone and not wait:
        number = "1 worker is" if len(gone) == 1 else f"{len(gone):,} workers are"
        raise NotDone(f"{number} gone, or cut off: other workers recover the tasks")
    if left and not everything:
        raise NotDone(f"not waited for: {', '.join(left)}")


def _told(verb: str, heard: bool, unseen: str | None) -> str:
    if not heard:
        return "has stopped already"
    if unseen is None:
        return f"has been asked to {verb}"
    return f"{unseen}; nobody hears this"


def _silent(session: CommandSession) -> dict[str, str]:
    """Those that nobody is left of, or that have not been seen for longer than their lease: why."""
    now, here = session.control.now(), socket.gethostname()
    found: dict[str, str] = {}
    for worker in session.control.workers.list():
        if worker.state == "silent":
            unseen = times.length(now - worker.seen_at)
            found[worker.id] = f"has not been seen for {unseen}"
        elif worker.hostname == here and not _runs(worker.pid):
            found[worker.id] = f"is gone: there is no process {worker.pid} on this machine"
    return found


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # Somebody else's, or no process at all that this machine could have.
        return True
    return True


def _all(session: CommandSession) -> list[str]:
    return [worker.id for worker in session.control.workers.list()]


def _named(session: CommandSession, ids: Sequence[str]) -> list[str]:
    known = [worker.id for worker in session.control.workers.list(stopped=True)]
    found: dict[str, None] = {}
    for typed in ids:
        fitting = [name for name in known if name == typed] or [
            name for name in known if typed and name.startswith(typed)
        ]
        if not fitting:
            raise NotDone(
                f"no worker has an id that begins with {typed} in this database "
                f"({session.place.described}): holdfast workers list shows those there are"
            )
        if len(fitting) > 1:
            raise Misused(
                f"{typed} may be any of {len(fitting)} workers ({', '.join(fitting[:5])}): give "
                "more of it"
            )
        found[fitting[0]] = None
    return list(found)


def _await(session: CommandSession, names: set[str]) -> list[str]:
    """Wait until none of these is there any more, but for those that are silent: these."""
    silent: list[str] = []
    while names:
        left = {worker.id: worker for worker in session.control.workers.list()}
        for name in sorted(names - left.keys()):
            session.screen.remark(f"{name} has stopped")
        for name in sorted(names & left.keys()):
            if left[name].state == "silent":
                silent.append(name)
                session.screen.remark(
                    f"{name} is not waited for: it has not been seen for its lease, so it is gone, "
                    "or cut off; its tasks are recovered by others"
                )
        names = (names & left.keys()) - set(silent)
        if names:
            time.sleep(_LOOK_EVERY)
    return silent


def _state(worker: WorkerInfo) -> Cell:
    if worker.state == "alive" and worker.command is not None:
        return Cell(_OBEYING.get(worker.command, worker.command), "yellow")
    if worker.state == "alive" and not worker.queues:
        # It has said so itself: a signal has told it to stop.
        return Cell("stopping", "yellow")
    return Cell(worker.state, _STYLES[worker.state])


def _document(worker: WorkerInfo) -> dict[str, Any]:
    document = json_document.as_dict(worker, worker_id=worker.id)
    del document["id"], document["latest"]
    latest = {name: getattr(worker.latest, name, None) for name in _SNAPSHOT}
    return {**document, **latest, "snapshot_at": getattr(worker.latest, "at", None)}
