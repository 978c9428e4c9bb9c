"""`/tasks`, to look at: lists, one task, its attempts, why it is where it is, its stack."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.info import TaskInfo
from holdfast.core.identity import as_uuid
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.task_documents import (
    AttemptDocument,
    TaskDocument,
    TaskSummary,
    UnreadableDocument,
    unreadable,
)
from holdfast.web.api.task_filter import PageSize, TaskWhere, Word
from holdfast.web.context import Context

__all__ = ["LONGEST_WAIT", "LOOK", "ROUTES", "TaskList", "Wait"]

LONGEST_WAIT: Final = 30.0
"""Seconds that an answer may be waited for: less than proxies have patience."""
LOOK: Final = 0.5
"""Seconds between two looks at the store while somebody waits."""
Wait = Annotated[
    float,
    Meta(ge=0, le=LONGEST_WAIT, description="Seconds to wait for something new: a long poll."),
]


class TaskListQuery(TaskWhere, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and where the page begins."""

    before: UUID | None = None
    """The `next` of the page before."""
    limit: PageSize = 50


class TaskList(msgspec.Struct, kw_only=True):
    """Some tasks, the newest first."""

    tasks: list[TaskSummary]
    next: UUID | None
    """Give this as `before` for the next page; null: there is none. A page may be empty and have
    a next one: not more than a part of a large table is looked through at once."""
    unreadable: list[UnreadableDocument]


class CountQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of which queue; none: of all."""

    queue: Word | UnsetType = UNSET


class TaskCount(msgspec.Struct, kw_only=True):
    """How many tasks there are in each status; one that is absent has none."""

    by_status: dict[str, int]
    at_least: list[str]
    """Of which there may be more: counting stops at 10,000."""


class TaskQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether to wait."""

    wait: Wait = 0.0
    """Seconds to wait for its end; without an end, it is shown as it is then."""


class AttemptList(msgspec.Struct, kw_only=True):
    """The executions of a task that have ended, in order."""

    attempts: list[AttemptDocument]


class WhyDocument(msgspec.Struct, kw_only=True):
    """Why a task is where it is."""

    task_id: UUID
    status: str
    reasons: list[str]
    text: str


class DependencyDocument(msgspec.Struct, kw_only=True):
    """What a task waits for, or waited for."""

    parent_id: UUID
    name: str | None
    """Null, like the status, if the task was deleted since."""
    status: str | None
    on: str
    satisfied: bool | None
    """Null while it has not ended."""


class DependencyList(msgspec.Struct, kw_only=True):
    """What a task waits for, or waited for."""

    dependencies: list[DependencyDocument]


class StackQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long its worker has to answer."""

    timeout: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] = 3.0


class StackDocument(msgspec.Struct, kw_only=True):
    """Where the code of a running task is."""

    stack: str


@operation("GET", "/tasks", tag="tasks", refusals=[404])
async def list_tasks(context: Context, query: TaskListQuery) -> TaskList:
    """List tasks, the newest first.

    A page begins behind the task `before`: give the `next` of the last answer.
    """
    page = await context.control.tasks.alist(before=query.before, limit=query.limit, **query.filter)
    return TaskList(
        tasks=[TaskSummary.of(info) for info in page.tasks],
        next=page.next,
        unreadable=unreadable(page.unreadable),
    )


@operation("GET", "/tasks/count", tag="tasks")
async def count_tasks(context: Context, query: CountQuery) -> TaskCount:
    """Count the tasks in each status, up to 10,000."""
    queue = None if query.queue is UNSET else query.queue
    counts = await context.control.tasks.acount(queue=queue)
    return TaskCount(
        by_status={status.value: number for status, number in counts.items()},
        at_least=sorted(status.value for status in counts.at_least),
    )


@operation("GET", "/tasks/{id}", tag="tasks", refusals=[404, 409])
async def show_task(context: Context, id: UUID, query: TaskQuery) -> TaskDocument:
    """Show everything that is stored about a task; with `wait`, when it has ended."""
    return TaskDocument.whole(await _when_ended(context, id, query.wait), context.payloads)


async def _when_ended(context: Context, id: UUID, wait: float) -> TaskInfo:
    end = monotonic() + wait
    info = await context.control.tasks.ashow(id)
    while not info.status.is_terminal and monotonic() < end:
        await asyncio.sleep(max(0.0, min(LOOK, end - monotonic())))
        found = await context.control.tasks.astatuses(id)
        if id not in found or found[id].is_terminal or monotonic() >= end:
            info = await context.control.tasks.ashow(id)
    return info


@operation("GET", "/tasks/{id}/attempts", tag="tasks", refusals=[404])
async def list_attempts(context: Context, id: UUID) -> AttemptList:
    """List the executions of a task that have ended, in order."""
    found = await context.control.tasks.aattempts(id)
    if not found:
        await context.control.tasks.ashow(id)
    return AttemptList(attempts=[AttemptDocument.of(made, context.payloads) for made in found])


@operation("GET", "/tasks/{id}/why", tag="tasks", refusals=[404, 409])
async def why_task(context: Context, id: UUID) -> WhyDocument:
    """Say why a task is where it is, and what keeps it from going on."""
    why = await context.control.tasks.awhy(id)
    reasons = [context.payloads.said(reason) for reason in why.reasons]
    text = context.payloads.said(str(why))
    return WhyDocument(task_id=why.task_id, status=why.status.value, reasons=reasons, text=text)


@operation("GET", "/tasks/{id}/dependencies", tag="tasks", refusals=[404])
async def list_dependencies(context: Context, id: UUID) -> DependencyList:
    """List what a task waits for, or waited for."""
    found = await context.control.tasks.adependencies(id)
    if not found:
        await context.control.tasks.ashow(id)
    return DependencyList(
        dependencies=[
            DependencyDocument(
                parent_id=as_uuid(each.parent_id),
                name=each.task_name,
                status=each.status,
                on=each.on,
                satisfied=each.satisfied,
            )
            for each in found
        ]
    )


@operation(
    "POST",
    "/tasks/{id}/stack",
    tag="tasks",
    needs=Role.OPERATE,
    payloads=True,
    refusals=[404, 409, 504],
)
async def show_stack(context: Context, id: UUID, query: StackQuery) -> StackDocument:
    """Ask the worker of a running task where its code is.

    504 if the worker does not say within `timeout` seconds.
    """
    return StackDocument(stack=await context.control.tasks.astack(id, timeout=query.timeout))


ROUTES: Final = (
    list_tasks,
    count_tasks,
    show_task,
    list_attempts,
    why_task,
    list_dependencies,
    show_stack,
)
