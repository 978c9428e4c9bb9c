"""How a task is named in a URL, and in a column."""

from __future__ import annotations

from uuid import UUID

from holdfast.core.errors import TaskNotFound
from holdfast.web.context import Context

__all__ = ["short_id", "task_id_of"]


def task_id_of(context: Context) -> UUID:
    """The task that the path names; `TaskNotFound` if it names none."""
    text: str = context.request.path_params["id"]
    try:
        return UUID(text)
    except ValueError:
        raise TaskNotFound(text[:100]) from None


def short_id(id: UUID) -> str:
    """The first 8 and the last 6 digits, as `holdfast tasks show` takes them."""
    return f"{id.hex[:8]}-{id.hex[-6:]}"
