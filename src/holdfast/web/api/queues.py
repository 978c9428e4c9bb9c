"""`/queues`: what waits, pauses, limits and turns."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from holdfast.client.control import QueueInfo
from holdfast.core.options.limit import Limit
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.task_documents import UnreadableDocument, unreadable
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES", "LimitDocument", "LimitsBody", "limits_of"]

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class LimitDocument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """At most so many at a time, and so many in a time, in the whole fleet."""

    concurrency: Count | None = None
    rate: Annotated[str, Meta(max_length=50)] | None = None
    """`100/minute`; smooth."""
    burst: Count = 1
    per_key: LimitDocument | None = None

    @property
    def limit(self) -> Limit:
        """The same, for `app.control`."""
        inner = None if self.per_key is None else self.per_key.limit
        return Limit(self.concurrency, self.rate, self.burst, inner)

    @classmethod
    def of(cls, limit: Limit) -> LimitDocument:
        """A limit, as it stands."""
        return cls(
            concurrency=limit.concurrency,
            rate=limit.rate,
            burst=limit.burst,
            per_key=None if limit.per_key is None else cls.of(limit.per_key),
        )


class LimitsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All the limits there are to be; none: what was set is removed."""

    limits: Annotated[list[LimitDocument], Meta(max_length=10)]


class FairBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether concurrency keys take turns."""

    fair: bool


class QueueDocument(msgspec.Struct, kw_only=True):
    """A queue: whether it is paused, and what waits in it."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    pending: int
    """Counted up to 10,000."""
    oldest_enqueued_at: datetime | None
    scheduled: int
    limits: list[LimitDocument]
    fair: bool

    @classmethod
    def of(cls, info: QueueInfo) -> QueueDocument:
        """A queue, as it stands."""
        return cls(
            name=info.name,
            paused_at=info.paused_at,
            paused_by=info.paused_by,
            pending=info.pending,
            oldest_enqueued_at=info.oldest_enqueued_at,
            scheduled=info.scheduled,
            limits=[LimitDocument.of(limit) for limit in info.limits],
            fair=info.fair,
        )


class QueueList(msgspec.Struct, kw_only=True):
    """The queues in which something waits, and those that were ever paused or have a limit."""

    queues: list[QueueDocument]
    unreadable: list[UnreadableDocument]


class ChangedDocument(msgspec.Struct, kw_only=True):
    """Whether something changed."""

    changed: bool


def limits_of(body: LimitsBody) -> Any:
    """The limits of a body; None removes what was set."""
    return [each.limit for each in body.limits] or None


@operation("GET", "/queues", tag="queues")
async def list_queues(context: Context) -> QueueList:
    """List the queues in which something waits, and those that were ever paused or have a limit."""
    found = await context.control.queues.alist()
    return QueueList(
        queues=[QueueDocument.of(info) for info in found], unreadable=unreadable(found.unreadable)
    )


@operation("GET", "/queues/{queue}", tag="queues", refusals=[404])
async def show_queue(context: Context, queue: str) -> QueueDocument:
    """Show one queue. 404 if there is no sign of it: no task, no worker, no pause."""
    for info in await context.control.queues.alist():
        if info.name == queue:
            return QueueDocument.of(info)
    if not await context.control.queues.aseen(queue):
        raise Refusal(404, "not_found", f"there is no sign of a queue {queue!r:.200}")
    return QueueDocument.of(QueueInfo(queue, None, None, 0, None))


@operation("POST", "/queues/{queue}/pause", tag="queues", needs=Role.OPERATE)
async def pause_queue(context: Context, queue: str) -> ChangedDocument:
    """Let nothing more be claimed from a queue. What runs goes on."""
    async with context.acting():
        await context.control.queues.apause(queue)
    return ChangedDocument(changed=True)


@operation("POST", "/queues/{queue}/resume", tag="queues", needs=Role.OPERATE)
async def resume_queue(context: Context, queue: str) -> ChangedDocument:
    """Let a paused queue go on."""
    async with context.acting():
        return ChangedDocument(changed=await context.control.queues.aresume(queue))


@operation("PUT", "/queues/{queue}/limits", tag="queues", needs=Role.ADMIN)
async def limit_queue(context: Context, queue: str, body: LimitsBody) -> ChangedDocument:
    """Limit a queue, at once and in the whole fleet; an empty list removes what was set."""
    async with context.acting():
        await context.control.queues.alimit(queue, limits_of(body))
    return ChangedDocument(changed=True)


@operation("PUT", "/queues/{queue}/fair", tag="queues", needs=Role.ADMIN)
async def order_queue(context: Context, queue: str, body: FairBody) -> ChangedDocument:
    """Let the concurrency keys of a queue take turns, or its tasks go in strict order."""
    async with context.acting():
        await context.control.queues.afair(queue, body.fair)
    return ChangedDocument(changed=True)


@operation("PUT", "/task-limits/{name}", tag="queues", needs=Role.ADMIN)
async def limit_task(context: Context, name: str, body: LimitsBody) -> ChangedDocument:
    """Limit a task instead of what its code says; an empty list: as its code says."""
    async with context.acting():
        await context.control.tasks.alimit(name, limits_of(body))
    return ChangedDocument(changed=True)


ROUTES: Final = (
    list_queues,
    show_queue,
    pause_queue,
    resume_queue,
    limit_queue,
    order_queue,
    limit_task,
)
