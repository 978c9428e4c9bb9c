"""`POST /tasks`: send one call, many calls, one for later.

Owns the bodies. Where the app knows the task, its arguments are checked against the signature
before anything is written; where it does not, its worker will check them. A client that gives an id
may repeat its request: it is one task, however often, and another call under that id is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.handle import TaskHandle
from holdfast.client.sending.send_options import CallOptions
from holdfast.client.task import Task
from holdfast.core.near import near_names
from holdfast.core.options.unique import Unique
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.request_values import placed
from holdfast.web.api.task_actions import Priority, Queue, Seconds
from holdfast.web.api.task_filter import Moment, Name
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = [
    "OF_UNIQUE",
    "ROUTES",
    "OptionsBody",
    "SentDocument",
    "UniqueBody",
    "named_task",
    "payload_room",
]

_ROOM: Final = 100_000
"""Bytes of a body beside the arguments."""
_MANY: Final = 16_000_000
MOST_CALLS: Final = 10_000


class UniqueBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """At most one task with this key."""

    key: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    """None: the arguments are the key."""
    on_conflict: Literal["return", "replace", "debounce", "raise"] = "return"
    period: Annotated[float, Meta(ge=1, le=3_153_600_000)] | None = None
    until: Literal["started", "ended", "deleted"] | None = None

    @property
    def made(self) -> Unique:
        """The same, for `options(unique=…)`."""
        return Unique(self.key, on_conflict=self.on_conflict, period=self.period, until=self.until)


OF_UNIQUE: Final = {name: f"options.unique.{name}" for name in UniqueBody.__struct_fields__}
"""Where its fields stand in a body."""


class OptionsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one send changes of its task's options; what is absent is as the task says."""

    queue: Queue | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    delay: Seconds | UnsetType = UNSET
    run_at: Moment | UnsetType = UNSET
    good_until: Moment | UnsetType = UNSET
    good_for: Seconds | UnsetType = UNSET
    tags: Annotated[list[str], Meta(max_length=50)] | UnsetType = UNSET
    concurrency_key: str | UnsetType | None = UNSET
    unique: UniqueBody | UnsetType | None = UNSET

    @property
    def given(self) -> CallOptions:
        """The same, for `task.options(…)`."""
        found: Any = {
            name: getattr(self, name)
            for name in OptionsBody.__struct_fields__
            if getattr(self, name) is not UNSET
        }
        if isinstance(self.unique, UniqueBody):
            found["unique"] = self.unique.made
        options: CallOptions = found
        return options


class SendBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One call of a task."""

    name: Name
    version: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """None: 1, or the only one that the app knows."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    id: UUID | None = None
    """Yours: sending it again under the same id is one task, not two."""
    options: OptionsBody = msgspec.field(default_factory=OptionsBody)


class ManyCall(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one of many calls: by place, or by name."""

    args: list[Any] | UnsetType = UNSET
    kwargs: dict[str, Any] | UnsetType = UNSET


class SendManyBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Many calls of one task, sent in one transaction: all of them, or none."""

    name: Name
    version: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    calls: Annotated[list[ManyCall], Meta(max_length=MOST_CALLS)]
    options: OptionsBody = msgspec.field(default_factory=OptionsBody)


class SentDocument(msgspec.Struct, kw_only=True):
    """A task that was sent."""

    id: UUID
    created: bool
    """False: a task that was there already is the answer, by its id or its unique key."""
    remark: str | UnsetType = UNSET
    """What to look at: the app of this server has no task of that name, say."""


class SentManyDocument(msgspec.Struct, kw_only=True):
    """Tasks that were sent, in the order of the calls."""

    tasks: list[SentDocument]
    remark: str | UnsetType = UNSET
    """What to look at: the app of this server has no task of that name, say."""


def payload_room(context: Context) -> int:
    """How long the body of a send may be."""
    return context.app.config.max_payload + _ROOM


def named_task(context: Context, name: str, version: int | None) -> Task[..., Any]:
    """The task of this name; without a version, the only one that the app knows."""
    if version is None:
        known = [task.version for task in context.app.tasks if task.name == name]
        version = known[0] if len(known) == 1 else 1
    return context.app.named(name, version=version)


def _remark(context: Context, name: str) -> str | UnsetType:
    """A task of a name that nobody knows waits for ever, and looks like any other."""
    known = {task.name for task in context.app.tasks}
    if name in known or not known:
        return UNSET
    near = near_names(name, known)
    hint = f"; was {near[0]!r} meant?" if near else ""
    return f"the app of this server has no task {name!r}: it waits for a worker that knows it{hint}"


async def _note(context: Context, handle: TaskHandle[Any], name: str) -> None:
    if handle.created:
        async with context.acting():
            await context.control.audit.arecord("send", f"task {handle.id}", detail={"name": name})


@operation(
    "POST",
    "/tasks",
    tag="sending",
    needs=Role.OPERATE,
    creates=True,
    refusals=[409],
    limit=payload_room,
)
async def send_task(context: Context, body: SendBody) -> SentDocument:
    """Send a call of a task, to be run at once or, with `delay` or `run_at`, later.

    201 if a task was created; 200 if one that was there already is the answer. The arguments are
    checked against the task's signature if this app knows it. With an `id` of yours the request may
    be repeated when its answer was lost.
    """
    task = named_task(context, body.name, body.version)
    with placed(OptionsBody, OF_UNIQUE):
        options = body.options.given
        if body.id is not None:
            options["id"] = body.id
        handle = await task.options(**options).asend(*body.args, **body.kwargs)
    await _note(context, handle, body.name)
    return SentDocument(id=handle.id, created=handle.created, remark=_remark(context, body.name))


@operation("POST", "/tasks/many", tag="sending", needs=Role.OPERATE, limit=lambda _: _MANY)
async def send_many_tasks(context: Context, body: SendManyBody) -> SentManyDocument:
    """Send many calls of one task, in one transaction: all of them, or none."""
    calls: list[Any] = []
    for place, call in enumerate(body.calls):
        if call.args is not UNSET and call.kwargs is not UNSET:
            path = f"calls[{place}].kwargs"
            raise Refusal(422, "invalid", f"{path}: give args or kwargs, not both", path=path)
        given = call.args if call.kwargs is UNSET else call.kwargs
        calls.append([] if given is UNSET else given)
    task = named_task(context, body.name, body.version)
    with placed(OptionsBody, OF_UNIQUE):
        handles = await task.options(**body.options.given).asend_many(calls)
    sent = sum(handle.created for handle in handles)
    async with context.acting():
        await context.control.audit.arecord(
            "send", f"{len(handles):,} tasks", count=sent, detail={"name": body.name}
        )
    return SentManyDocument(
        tasks=[SentDocument(id=handle.id, created=handle.created) for handle in handles],
        remark=_remark(context, body.name),
    )


ROUTES: Final = (send_task, send_many_tasks)
