"""Many tasks, a line each.

Owns the columns of `tasks list` and `dead-letters list`, and the colours of statuses. At a terminal
an id is its short form, which every command takes, so that 80 columns have room for what happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from holdfast.cli.render import json_document, times
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.table import Cell, Columns, Rows, TextColumn, Value
from holdfast.client.control import TaskPage
from holdfast.client.info import Attempt, Progress, TaskInfo
from holdfast.core.errors import UnreadableRow
from holdfast.core.identity import short_id
from holdfast.core.result import TaskError
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


def _columns(dead: bool) -> Columns:
    """Of dead letters it is of more interest when they ended than when they were sent."""
    return (
        TextColumn("id", whole=True),
        TextColumn("status", whole=True, room=100 if dead else 0),
        TextColumn("name", most=24),
        TextColumn("queue", room=100),
        TextColumn("attempt", right=True, room=140),
        TextColumn("submitted", whole=True, room=140 if dead else 60),
        TextColumn("ended", whole=True, room=60 if dead else 140),
        TextColumn("reason" if dead else "detail", cut=True),
    )


def show_tasks(
    screen: Screen,
    page: TaskPage,
    now: datetime,
    *,
    place: str,
    failed: Mapping[UUID, Attempt],
    dead: bool,
) -> None:
    """A page of tasks, and where the next begins.

    `place`: where they were looked for, for whoever expected some. `failed`: the last failure of
    those that have not ended, and were tried. `dead`: all of them are dead letters.
    """
    tasks, rest = page.tasks, page.next
    if screen.as_json:
        screen.document(
            {
                "tasks": [json_document.as_dict(info) for info in tasks],
                "next": rest,
                **unreadable_document(page.unreadable),
            }
        )
        return
    rows = [_row(info, failed.get(info.id), now) for info in tasks]
    show_rows(screen, _columns(dead), rows, page.unreadable)
    if rest is not None:
        screen.remark(f"there may be more: --after {rest}")
    elif not tasks and not page.unreadable:
        screen.remark(f"no {'dead letter' if dead else 'task'} fits ({place})")


def id_cell(task: UUID) -> Cell:
    """An id, short at a terminal, whole in a pipe."""
    return Cell(short_id(task.bytes), piped=str(task))


def show_rows(
    screen: Screen, columns: Columns, rows: Rows, unreadable: Sequence[UnreadableRow]
) -> None:
    """A table; then a line for each row that cannot be read, and what to do about them."""
    if rows or not screen.is_terminal:
        screen.table(columns, rows)
    for row in unreadable:
        screen.line(f"unreadable  row {row.key} of {row.table}: {row.column} {row.reason}")
    if any(row.table == "holdfast_tasks" for row in unreadable):
        screen.remark("to be rid of such rows: holdfast tasks delete --unreadable KEY")


def unreadable_document(unreadable: Sequence[UnreadableRow]) -> dict[str, Any]:
    """The same in JSON; nothing if there is none."""
    rows = [
        {"table": row.table, "key": row.key, "column": row.column, "reason": row.reason}
        for row in unreadable
    ]
    return {"unreadable": rows} if rows else {}


def status_cell(status: TaskStatus) -> Cell:
    """A status in its colour."""
    return Cell(status.value, STYLES[status])


def moment_cell(at: datetime | None, now: datetime) -> Cell | None:
    """`3 min ago` at a terminal, the moment itself in a pipe."""
    return None if at is None else Cell(times.roughly(at, now), piped=times.stamp(at))


def detail_of(info: TaskInfo, now: datetime) -> Cell | str | None:
    """What there is to say of it in a few words: when it is due, how far it is, why it failed."""
    return _detail(info, None, now)


def progress_text(progress: Progress) -> str:
    """`3 of 10 (30 %), resizing`."""
    text = f"{progress.done:g}"
    if progress.total is not None:
        text += f" of {progress.total:g}"
    if progress.fraction is not None:
        text += f" ({progress.fraction:.0%})".replace("%", " %")
    return f"{text}, {progress.message}" if progress.message else text


def _row(info: TaskInfo, failed: Attempt | None, now: datetime) -> list[Value]:
    return [
        id_cell(info.id),
        status_cell(info.status),
        info.name if info.version == 1 else f"{info.name} v{info.version}",
        info.queue,
        info.attempt,
        moment_cell(info.submitted_at, now),
        moment_cell(info.finished_at, now),
        _detail(info, failed, now),
    ]


def _detail(info: TaskInfo, failed: Attempt | None, now: datetime) -> Cell | str | None:
    match info.status:
        case TaskStatus.SCHEDULED:
            at = info.run_at or info.next_retry_at or info.enqueued_at
            what = f"retry {info.retry_count}" if info.retry_count else "due"
            when = times.relative(at, now) if at > now else "now"
            after = "" if failed is None else f": {_failure(failed)}"
            return Cell(f"{what} {when}{after}", piped=f"{what} {times.stamp(at)}{after}")
        case TaskStatus.PENDING | TaskStatus.CLAIMED if failed is not None:
            return f"failed before: {_failure(failed)}"
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
            return _ending(info, info.error)
        case _:
            return info.error_code


def _ending(info: TaskInfo, error: TaskError) -> Cell:
    """How it ended: a sentence of ours needs no code before it at a terminal."""
    text = _first_line(str(error))
    if error.is_ours and error.exception is None and info.failed_reason:
        return Cell(_first_line(info.failed_reason), piped=text)
    return Cell(text)


def _failure(attempt: Attempt) -> str:
    return _first_line(str(attempt.error or attempt.failed_reason or attempt.error_code))


def _first_line(text: str, limit: int = 200) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
