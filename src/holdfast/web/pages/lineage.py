"""What a task comes from: its schedule, its workflow, and the tasks that led to it, each by name.

What has been deleted since, or cannot be read, is still named by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from holdfast.client.info import TaskInfo
from holdfast.client.workflow_info import WorkflowInfo
from holdfast.core.errors import TaskNotFound, UnreadableRow
from holdfast.core.status import TaskStatus
from holdfast.web.context import Context

__all__ = ["Ancestor", "ancestors"]


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One of them."""

    path: str
    icon: str
    name: str
    is_id: bool
    part: str
    """What it is to the task."""
    status: TaskStatus | None = None


async def ancestors(context: Context, info: TaskInfo) -> Sequence[Ancestor]:
    """All of them, the farthest first."""
    found: list[Ancestor] = []
    if info.schedule_name:
        path = f"/schedules/{info.schedule_name}"
        found.append(Ancestor(path, "schedules", info.schedule_name, False, "schedule"))
    if info.workflow_id is not None:
        whole = await _whole(context, info.workflow_id)
        name = str(info.workflow_id) if whole is None else whole.name
        path = f"/workflows/{info.workflow_id}"
        found.append(Ancestor(path, "workflows", name, whole is None, "workflow"))
    parts = {info.parent_id: "sent this"} if info.parent_id is not None else {}
    if info.root_id is not None and info.root_id not in (info.parent_id, info.id):
        parts = {info.root_id: "began it all", **parts}
    known = await context.control.tasks.ashow_many(*parts) if parts else {}
    return [*found, *(_task(id, part, known.get(id)) for id, part in parts.items())]


def _task(id: UUID, part: str, info: TaskInfo | None) -> Ancestor:
    if info is None:
        return Ancestor(f"/tasks/{id}", "tasks", str(id), True, part)
    return Ancestor(f"/tasks/{id}", info.status.value.lower(), info.name, False, part, info.status)


async def _whole(context: Context, id: UUID) -> WorkflowInfo | None:
    try:
        return await context.control.workflows.aget(id)
    except (TaskNotFound, UnreadableRow):
        return None
