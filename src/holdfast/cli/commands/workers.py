"""`holdfast workers`: see which workers there are."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.table import Cell, TextColumn, Value
from holdfast.cli.render.task_list import moment_cell, show_rows, unreadable_document
from holdfast.cli.session import CommandSession, operates
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
_STYLES: Final = {"alive": "green", "silent": "bold red", "stopped": "dim"}


@click.group("workers")
def workers() -> None:
    """See which workers there are."""


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
        Cell(worker.state, _STYLES[worker.state]),
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


def _document(worker: WorkerInfo) -> dict[str, Any]:
    document = json_document.as_dict(worker, worker_id=worker.id)
    del document["id"], document["latest"]
    latest = {name: getattr(worker.latest, name, None) for name in _SNAPSHOT}
    return {**document, **latest, "snapshot_at": getattr(worker.latest, "at", None)}
