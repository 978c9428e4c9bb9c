"""Many workflows, a line each.

Owns the columns of `workflows list`, and the colours of their statuses.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from holdfast.cli.render import json_document
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.table import Cell, TextColumn, Value
from holdfast.cli.render.task_list import id_cell, moment_cell, show_rows, unreadable_document
from holdfast.client.workflow_control import WorkflowPage
from holdfast.client.workflow_info import WorkflowInfo
from holdfast.core.status import WorkflowStatus

STYLES: Final = {
    WorkflowStatus.RUNNING: "bold blue",
    WorkflowStatus.PAUSED: "yellow",
    WorkflowStatus.COMPLETED: "green",
    WorkflowStatus.FAILED: "bold red",
    WorkflowStatus.CANCELLED: "magenta",
}
_COLUMNS: Final = (
    TextColumn("id", whole=True),
    TextColumn("status", whole=True),
    TextColumn("name", most=32),
    TextColumn("steps", right=True),
    TextColumn("submitted", whole=True, room=60),
    TextColumn("ended", whole=True, room=100),
    TextColumn("detail", cut=True),
)


def show_workflows(screen: Screen, page: WorkflowPage, now: datetime, *, place: str) -> None:
    """A page of workflows, and where the next begins."""
    if screen.as_json:
        screen.document(
            {
                "workflows": [json_document.as_dict(info) for info in page.workflows],
                "next": page.next,
                **unreadable_document(page.unreadable),
            }
        )
        return
    show_rows(screen, _COLUMNS, [_row(info, now) for info in page.workflows], page.unreadable)
    if page.next is not None:
        screen.remark(f"there may be more: --after {page.next}")
    elif not page.workflows and not page.unreadable:
        screen.remark(f"no workflow fits ({place})")


def status_cell(status: WorkflowStatus) -> Cell:
    """A status in its colour."""
    return Cell(status.value, STYLES[status])


def _row(info: WorkflowInfo, now: datetime) -> list[Value]:
    return [
        id_cell(info.id),
        status_cell(info.status),
        info.name if info.version == 1 else f"{info.name} v{info.version}",
        info.steps,
        moment_cell(info.created_at, now),
        moment_cell(info.finished_at, now),
        _detail(info),
    ]


def _detail(info: WorkflowInfo) -> str | None:
    if info.status is WorkflowStatus.PAUSED:
        return f"by {info.paused_by}" if info.paused_by else "a step failed"
    if info.stopping is not None:
        by = f" by {info.stopped_by}" if info.stopped_by else ""
        return f"{info.stopping}{by}"
    return ", ".join(info.tags) or None
