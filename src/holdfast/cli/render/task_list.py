"""Many tasks, a line each.

Owns the columns of `tasks list` and `dead-letters list`, and the colours of statuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from holdfast.cli.render import json_document, times
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.table import Cell, Column, Table
from holdfast.client.info import Progress, TaskInfo
from holdfast.core.status import TaskStatus

STYLES: Final = {
    TaskStatus.WAITING: "dim",
    TaskStatus.SCHEDULED: "cyan",
    TaskStatus.PENDING: "yellow",
    TaskStatus.CLAIMED: "blue",
    TaskStatus.RUNNING: "bold blue",
    TaskStatus.COMPLETED: "green",
    TaskStatus.FAILED: "bold red",
    TaskStatus.CANCELLED: "magenta",
    TaskStatus.EXPIRED: "magenta",
    TaskStatus.STALLED: "red",
    TaskStatus.DROPPED: "red",
}

_COLUMNS: Final = (
    Column("id", whole=True),
    Column("status", whole=True),
    Column("name"),
    Column("queue", room=100),
    Column("attempt", right=True, room=140),
    Column("submitted", whole=True),
    Column("ended", whole=True, room=140),
    Column("detail", room=110),
)


def show_tasks(screen: Screen, tasks: Sequence[TaskInfo], rest: UUID | None, now: datetime) -> None:
    """A page of tasks, and where the next begins."""
    if screen.as_json:
        screen.document({"tasks": [json_document.as_dict(info) for info in tasks], "next": rest})
        return
    if tasks or not screen.is_terminal:
        screen.table(Table(_COLUMNS, [_row(info, now) for info in tasks]))
    if rest is not None:
        screen.remark(f"there may be more: --after {rest}")
    elif not tasks:
        screen.remark("no task fits")


def status_cell(status: TaskStatus) -> Cell:
    """A status in its colour."""
    return Cell(status.value, STYLES[status])


def moment_cell(at: datetime | None, now: datetime) -> Cell | None:
    """`3 min ago` at a terminal, the moment itself in a pipe."""
    return None if at is None else Cell(times.roughly(at, now), piped=times.stamp(at))


def progress_text(progress: Progress) -> str:
    """`3 of 10 (30 %), resizing`."""
    text = f"{progress.done:g}"
    if progress.total is not None:
        text += f" of {progress.total:g}"
    if progress.fraction is not None:
        text += f" ({progress.fraction:.0%})".replace("%", " %")
    return f"{text}, {progress.message}" if progress.message else text


def _row(info: TaskInfo, now: datetime) -> list[Cell | str | int | None]:
    return [
        str(info.id),
        status_cell(info.status),
        info.name if info.version == 1 else f"{info.name} v{info.version}",
        info.queue,
        info.attempt,
        moment_cell(info.submitted_at, now),
        moment_cell(info.finished_at, now),
        _detail(info, now),
    ]


def _detail(info: TaskInfo, now: datetime) -> Cell | str | None:
    match info.status:
        case TaskStatus.SCHEDULED:
            at = info.next_retry_at or info.run_at or info.enqueued_at
            what = "due" if info.next_retry_at is None else f"retry {info.retry_count}"
            return Cell(f"{what} {times.relative(at, now)}", piped=f"{what} {times.stamp(at)}")
        case TaskStatus.RUNNING:
            parts = [
                "cancel requested" if info.cancel_requested_at is not None else None,
                info.stage,
                None if info.progress is None else progress_text(info.progress),
                None if info.worker_hostname is None else f"on {info.worker_hostname}",
            ]
            return ", ".join(part for part in parts if part) or None
        case TaskStatus.COMPLETED:
            return None
        case _ if info.error is not None:
            return _first_line(str(info.error))
        case _:
            return info.error_code


def _first_line(text: str, limit: int = 200) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
