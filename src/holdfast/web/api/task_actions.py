"""What is done to tasks: cancel, resubmit, reschedule, delete, one by one and by filter.

Owns the bodies. One task answers with an error if the verb does not apply to it; of many, those it
does not apply to are left as they are, and the answer says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.one_task import ResubmitOptions
from holdfast.core.errors import IllegalTransition, TaskNotFound
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.request_values import placed
from holdfast.web.api.task_filter import Moment, TaskWhere
from holdfast.web.bulk_verb import BulkAnswer, BulkVerb, count, do_to_filter, do_to_ids
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES", "BulkDocument", "StatusDocument", "TaskSelection", "selected"]

MOST: Final = 10_000
"""Tasks of one request."""
Seconds = Annotated[float, Meta(ge=0, le=3_153_600_000, description="Seconds; 0 is at once.")]
Priority = Annotated[int, Meta(ge=1, le=100)]
Queue = Annotated[
    str, Meta(min_length=1, max_length=100, extra_json_schema={"pattern": "^[A-Za-z0-9_.:-]+$"})
]


class StatusDocument(msgspec.Struct, kw_only=True):
    """Where a task stands now."""

    id: UUID
    status: str


class ResubmitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How it runs again."""

    keep_retries: bool = False
    """Leave the counts of retries and crashes as they are."""
    fresh: bool = False
    """Forget its checkpoints."""
    good_until: Moment | None = None
    run_at: Moment | None = None

    @property
    def options(self) -> ResubmitOptions:
        """The same, for `app.control`."""
        return ResubmitOptions(
            keep_retries=self.keep_retries,
            fresh=self.fresh,
            good_until=self.good_until,
            run_at=self.run_at,
        )


class RescheduleBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What changes; at least one."""

    delay: Seconds | UnsetType = UNSET
    run_at: Moment | UnsetType = UNSET
    queue: Queue | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET

    @property
    def options(self) -> dict[str, Any]:
        """The same, for `app.control`."""
        if self.delay is not UNSET and self.run_at is not UNSET:
            raise Refusal(422, "invalid", "give delay or run_at, not both", path="delay")
        given: dict[str, Any] = {}
        if self.delay is not UNSET:
            given["when"] = self.delay
        if self.run_at is not UNSET:
            given["when"] = self.run_at
        if self.queue is not UNSET:
            given["queue"] = self.queue
        if self.priority is not UNSET:
            given["priority"] = self.priority
        if not given:
            said = "this changes nothing: give delay, run_at, queue or priority"
            raise Refusal(422, "invalid", said, path="")
        return given


class TaskSelection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which tasks: by their ids, or by a filter and how many it may be."""

    ids: Annotated[list[UUID], Meta(max_length=MOST)] | UnsetType = UNSET
    filter: TaskWhere | UnsetType = UNSET
    at_most: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    """With a filter: no more than so many, which is what `/tasks/select` counted."""
    before: UUID | None = None
    """With a filter: go on behind this task, the `next` of the last answer."""


class ResubmitTaskSelection(TaskSelection, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and how they run again."""

    options: ResubmitBody = msgspec.field(default_factory=ResubmitBody)


class RescheduleSelection(TaskSelection, kw_only=True, forbid_unknown_fields=True):
    """Which tasks, and what changes."""

    options: RescheduleBody


class SelectBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What would be done, and to which tasks."""

    verb: Literal["cancel", "resubmit", "reschedule", "delete"]
    filter: TaskWhere = msgspec.field(default_factory=TaskWhere)


class SelectDocument(msgspec.Struct, kw_only=True):
    """How many tasks a verb would be applied to."""

    count: int
    is_all: bool
    """False: there may be more; counting stops at 10,000."""
    by_status: dict[str, int]


class RefusedDocument(msgspec.Struct, kw_only=True):
    """A task that was left as it is."""

    id: UUID
    reason: str


class BulkDocument(msgspec.Struct, kw_only=True):
    """What became of the tasks."""

    done: int
    refused: int
    reasons: list[RefusedDocument]
    """Why, of the first 100 that were refused."""
    is_all: bool
    """False: tasks may be left that the filter finds; ask again with `next` as `before`."""
    next: UUID | None


def _result(answer: BulkAnswer) -> BulkDocument:
    return BulkDocument(
        done=answer.done,
        refused=answer.not_done,
        reasons=[RefusedDocument(id=task, reason=why) for task, why in answer.refused.items()],
        is_all=answer.is_all,
        next=answer.next,
    )


async def selected(
    context: Context, verb: str, body: TaskSelection, act: BulkVerb, **fixed: Any
) -> BulkDocument:
    """Do it to the tasks that a body selects; `fixed` is part of every filter."""
    control = context.control
    if body.ids is not UNSET:
        if body.filter is not UNSET:
            raise Refusal(422, "invalid", "give ids or a filter, not both", path="filter")
        async with context.acting():
            return _result(await do_to_ids(control, verb, act, body.ids))
    if body.filter is UNSET:
        raise Refusal(422, "invalid", "which tasks? Give ids, or a filter", path="ids")
    if body.at_most is UNSET:
        said = "with a filter, say how many tasks it may be: count them with /tasks/select"
        raise Refusal(422, "invalid", said, path="at_most")
    where: Any = {**body.filter.filter, **fixed}
    async with context.acting(filter=str(body.filter)):
        most = min(body.at_most, MOST)
        answer = await do_to_filter(control, verb, where, act, before=body.before, most=most)
    return _result(answer)


@operation("POST", "/tasks/select", tag="actions")
async def select_tasks(context: Context, body: SelectBody) -> SelectDocument:
    """Count the tasks that a verb would be applied to. Ask this before an action by filter."""
    found = await count(context.control, body.verb, body.filter.filter)
    return SelectDocument(
        count=found.count,
        is_all=found.is_all,
        by_status={status.value: number for status, number in found.by_status.items()},
    )


def _cancelling(context: Context) -> BulkVerb:
    async def act(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        found = await context.control.tasks.acancel(*ids)
        reached = (TaskStatus.CANCELLED, TaskStatus.RUNNING)
        return {task: status in reached for task, status in found.items()}

    return act


def _plain(method: Any, **options: Any) -> BulkVerb:
    async def act(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        done: Mapping[UUID, bool] = await method(*ids, **options)
        return done

    return act


@operation("POST", "/tasks/cancel", tag="actions", needs=Role.OPERATE, refusals=[404])
async def cancel_tasks(context: Context, body: TaskSelection) -> BulkDocument:
    """Cancel tasks by their ids or by a filter. Running ones are asked to end."""
    return await selected(context, "cancel", body, _cancelling(context))


@operation("POST", "/tasks/resubmit", tag="actions", needs=Role.OPERATE, refusals=[404])
async def resubmit_tasks(context: Context, body: ResubmitTaskSelection) -> BulkDocument:
    """Let ended tasks run again, by their ids or by a filter."""
    with placed(ResubmitBody):
        act = _plain(context.control.tasks.aresubmit, **body.options.options)
        return await selected(context, "resubmit", body, act)


@operation("POST", "/tasks/reschedule", tag="actions", needs=Role.OPERATE, refusals=[404])
async def reschedule_tasks(context: Context, body: RescheduleSelection) -> BulkDocument:
    """Change the time, queue or priority of tasks that wait, by their ids or by a filter."""
    with placed(RescheduleBody):
        act = _plain(context.control.tasks.areschedule, **body.options.options)
        return await selected(context, "reschedule", body, act)


@operation("POST", "/tasks/delete", tag="actions", needs=Role.ADMIN, refusals=[404])
async def delete_tasks(context: Context, body: TaskSelection) -> BulkDocument:
    """Delete ended tasks with their attempts and logs, by their ids or by a filter."""
    return await selected(context, "delete", body, _plain(context.control.tasks.adelete))


@operation("POST", "/tasks/{id}/cancel", tag="tasks", needs=Role.OPERATE, refusals=[404, 409])
async def cancel_task(context: Context, id: UUID) -> StatusDocument:
    """Cancel a task. A running one is asked to end, and is still RUNNING in the answer."""
    async with context.acting():
        before = (await context.control.tasks.astatuses(id)).get(id)
        status = (await context.control.tasks.acancel(id))[id]
    if status is None:
        raise TaskNotFound(id)
    if status is not TaskStatus.RUNNING and (
        status is not TaskStatus.CANCELLED or before is TaskStatus.CANCELLED
    ):
        raise IllegalTransition(id, "cancel", status)
    return StatusDocument(id=id, status=status.value)


@operation("POST", "/tasks/{id}/resubmit", tag="tasks", needs=Role.OPERATE, refusals=[404, 409])
async def resubmit_task(context: Context, id: UUID, body: ResubmitBody) -> StatusDocument:
    """Let an ended task run again."""
    act = partial(context.control.tasks.aresubmit, id, **body.options)
    return await _one(context, "resubmit", id, act)


@operation("POST", "/tasks/{id}/reschedule", tag="tasks", needs=Role.OPERATE, refusals=[404, 409])
async def reschedule_task(context: Context, id: UUID, body: RescheduleBody) -> StatusDocument:
    """Change the time, queue or priority of a task that waits."""
    act = partial(context.control.tasks.areschedule, id, **body.options)
    return await _one(context, "reschedule", id, act)


@operation("DELETE", "/tasks/{id}", tag="tasks", needs=Role.ADMIN, refusals=[404, 409])
async def delete_task(context: Context, id: UUID) -> StatusDocument:
    """Delete an ended task with its attempts and log; the answer is how it had ended."""
    before = (await context.control.tasks.astatuses(id)).get(id)
    async with context.acting():
        done = (await context.control.tasks.adelete(id))[id]
    if before is None:
        raise TaskNotFound(id)
    if not done:
        status = (await context.control.tasks.astatuses(id)).get(id)
        if status is None:
            raise TaskNotFound(id)
        why = await context.control.tasks.awhy_not("delete", id)
        raise IllegalTransition(id, "delete", status, why=why[id])
    return StatusDocument(id=id, status=before.value)


async def _one(context: Context, verb: str, id: UUID, act: Any) -> StatusDocument:
    async with context.acting():
        done = (await act())[id]
    status = (await context.control.tasks.astatuses(id)).get(id)
    if status is None:
        raise TaskNotFound(id)
    if not done:
        why = await context.control.tasks.awhy_not(verb, id)
        raise IllegalTransition(id, verb, status, why=why[id])
    return StatusDocument(id=id, status=status.value)


ROUTES: Final = (
    select_tasks,
    cancel_tasks,
    resubmit_tasks,
    reschedule_tasks,
    delete_tasks,
    cancel_task,
    resubmit_task,
    reschedule_task,
    delete_task,
)
