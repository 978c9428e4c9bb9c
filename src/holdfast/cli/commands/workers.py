"""`holdfast workers`: see which workers there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.table import Cell, Column, Table, Value
from holdfast.cli.render.task_list import moment_cell, show_unreadable, unreadable_document
from holdfast.cli.session import Session, operates
from holdfast.client.worker_control import WorkerInfo

_COLUMNS: Final = (
    Column("worker", whole=True),
    Column("state", whole=True),
    Column("seen", whole=True),
    Column("running", right=True),
    Column("claimed", right=True, room=120),
    Column("memory", right=True, whole=True, room=120),
    Column("cpu", right=True, whole=True, room=120),
    Column("as of", whole=True),
    Column("host"),
    Column("pid", right=True),
    Column("started", whole=True, room=100),
    Column("version", whole=True, room=140),
    Column("queues", room=90),
)
_STYLES: Final = {"alive": "green", "silent": "bold red", "stopped": "dim"}


@click.group("workers")
def workers() -> None:
    """See which workers there are."""


@workers.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that have stopped.")
@operates()
def list_(session: Session, everything: bool) -> None:
    """List the workers, the newest first.

    What each runs, and its memory, are what it said itself at the time under AS OF (every 30 s).
    """
    found = session.control.workers.list(stopped=everything)
    if session.screen.as_json:
        workers = [_document(worker) for worker in found]
        session.screen.document({"workers": workers, **unreadable_document(found.unreadable)})
        return
    now = session.now()
    if found or not session.screen.is_terminal:
        session.screen.table(Table(_COLUMNS, [_row(worker, now) for worker in found]))
    show_unreadable(session.screen, found.unreadable)
    if not found:
        session.screen.remark(f"no worker is running on this database ({session.place.described})")


def _row(worker: WorkerInfo, now: datetime) -> list[Value]:
    if worker.state != "alive":
        # What it said last is no longer so.
        worker = replace(worker, latest=None)
    latest = worker.latest
    memory = None if latest is None else latest.memory_usage_mb
    cpu = None if latest is None else latest.cpu_percent
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
    latest = worker.latest
    document = json_document.as_dict(worker, worker_id=worker.id)
    del document["id"], document["latest"]
    return {
        **document,
        "processes": None if latest is None else latest.processes,
        "tasks_running": None if latest is None else latest.tasks_running,
        "tasks_claimed": None if latest is None else latest.tasks_claimed,
        "memory_usage_mb": None if latest is None else latest.memory_usage_mb,
        "cpu_percent": None if latest is None else latest.cpu_percent,
        "snapshot_at": None if latest is None else latest.at,
    }
