"""`holdfast workers`: see which workers there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import click

from holdfast.cli.render.table import Cell, Column, Table, Value
from holdfast.cli.render.task_list import moment_cell
from holdfast.cli.session import Session, operates
from holdfast.core.moment import from_us
from holdfast.core.payload.codec import from_json
from holdfast.core.records import WorkerRecord, WorkerState
from holdfast.store.verbs.workers import list_workers, states

_COLUMNS: Final = (
    Column("worker", whole=True),
    Column("state", whole=True),
    Column("host"),
    Column("pid", right=True),
    Column("started", whole=True, room=100),
    Column("seen", whole=True),
    Column("running", right=True),
    Column("claimed", right=True, room=120),
    Column("memory", right=True, whole=True, room=90),
    Column("cpu", right=True, whole=True, room=120),
    Column("version", whole=True, room=140),
    Column("queues", room=80),
)
_STYLES: Final = {"alive": "green", "silent": "bold red", "stopped": "dim"}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A worker and the last it said of itself."""

    record: WorkerRecord
    latest: WorkerState | None
    now: datetime

    @property
    def state(self) -> str:
        """`silent`: it said no farewell, and its lease has run out since it was last seen."""
        if self.record.stopped_at is not None:
            return "stopped"
        lease = timedelta(microseconds=self.record.lease_us)
        return "alive" if from_us(self.record.seen_at) + lease > self.now else "silent"


@click.group("workers")
def workers() -> None:
    """See which workers there are."""


@workers.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that have stopped.")
@operates()
def list_(session: Session, everything: bool) -> None:
    """List the workers, the newest first."""
    now = session.now()
    found = [
        _Seen(record, _latest(session, record), now)
        for record in session.run(list_workers)
        if everything or record.stopped_at is None
    ]
    if session.screen.as_json:
        session.screen.document({"workers": [_document(worker) for worker in found]})
        return
    if found or not session.screen.is_terminal:
        session.screen.table(Table(_COLUMNS, [_row(worker) for worker in found]))
    if not found:
        session.screen.remark("no worker is running on this database")


def _latest(session: Session, record: WorkerRecord) -> WorkerState | None:
    found = session.run(partial(states, record.worker_id, limit=1))
    return found[0] if found else None


def _row(worker: _Seen) -> list[Value]:
    record, latest, state = worker.record, worker.latest, worker.state
    memory = None if latest is None else latest.memory_usage_mb
    cpu = None if latest is None else latest.cpu_percent
    return [
        record.worker_id,
        Cell(state, _STYLES[state]),
        record.hostname,
        record.pid,
        moment_cell(from_us(record.started_at), worker.now),
        moment_cell(from_us(record.seen_at), worker.now),
        None if latest is None else latest.tasks_running,
        None if latest is None else latest.tasks_claimed,
        None if memory is None else Cell(f"{memory:,.0f} MB", piped=f"{memory:.0f}MB"),
        None if cpu is None else Cell(f"{cpu:.0f} %", piped=f"{cpu:.0f}%"),
        record.version,
        ",".join(from_json(record.queues)),
    ]


def _document(worker: _Seen) -> dict[str, Any]:
    record, latest = worker.record, worker.latest
    stopped = record.stopped_at
    return {
        "worker_id": record.worker_id,
        "state": worker.state,
        "hostname": record.hostname,
        "pid": record.pid,
        "version": record.version,
        "started_at": from_us(record.started_at),
        "seen_at": from_us(record.seen_at),
        "stopped_at": None if stopped is None else from_us(stopped),
        "lease": record.lease_us / 1_000_000,
        "queues": from_json(record.queues),
        "tasks": from_json(record.known),
        "settings": from_json(record.settings),
        "command": record.command,
        "processes": None if latest is None else latest.processes,
        "tasks_running": None if latest is None else latest.tasks_running,
        "tasks_claimed": None if latest is None else latest.tasks_claimed,
        "memory_usage_mb": None if latest is None else latest.memory_usage_mb,
        "cpu_percent": None if latest is None else latest.cpu_percent,
        "snapshot_at": None if latest is None else from_us(latest.snapshot_at),
    }
