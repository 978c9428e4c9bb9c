"""`/dead-letters`: the tasks that failed for good, until somebody decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.task_actions import (
    BulkDocument,
    ResubmitTaskSelection,
    TaskSelection,
    selected,
)
from holdfast.web.api.task_documents import TaskSummary, unreadable
from holdfast.web.api.tasks import TaskList, TaskListQuery
from holdfast.web.context import Context

__all__ = ["ROUTES"]


@operation("GET", "/dead-letters", tag="dead letters", refusals=[404])
async def list_dead_letters(context: Context, query: TaskListQuery) -> TaskList:
    """List the tasks that failed for good, the newest first."""
    page = await context.control.dead_letters.alist(
        before=query.before, limit=query.limit, **query.filter
    )
    return TaskList(
        tasks=[TaskSummary.of(info) for info in page.tasks],
        next=page.next,
        unreadable=unreadable(page.unreadable),
    )


@operation("POST", "/dead-letters/resubmit", tag="dead letters", needs=Role.OPERATE, refusals=[404])
async def resubmit_dead_letters(context: Context, body: ResubmitTaskSelection) -> BulkDocument:
    """Let dead letters run again, by their ids or by a filter. Other tasks are left as they are."""

    async def act(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        return await context.control.dead_letters.aresubmit(*ids, **body.options.options)

    return await selected(context, "resubmit", body, act, dead=True)


@operation("POST", "/dead-letters/delete", tag="dead letters", needs=Role.ADMIN, refusals=[404])
async def delete_dead_letters(context: Context, body: TaskSelection) -> BulkDocument:
    """Delete dead letters, by their ids or by a filter. Other tasks are left as they are."""
    act: Any = context.control.dead_letters.adelete
    return await selected(context, "delete", body, _plain(act), dead=True)


def _plain(method: Any) -> Any:
    async def act(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        done: Mapping[UUID, bool] = await method(*ids)
        return done

    return act


ROUTES: Final = (list_dead_letters, resubmit_dead_letters, delete_dead_letters)
