"""`/routes`: rules that send tasks to queues by their names."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.queues import ChangedDocument
from holdfast.web.api.task_documents import UnreadableDocument, unreadable
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES"]

Weight = Annotated[int, Meta(ge=1, le=1_000_000)]


class RouteDocument(msgspec.Struct, kw_only=True):
    """One rule."""

    pattern: str
    """The name of a task, or a pattern in which `*` stands for any characters."""
    queues: dict[str, int]
    """Where to, by weight."""
    set_by: str | None
    updated_at: datetime


class RouteList(msgspec.Struct, kw_only=True):
    """The rules, by their patterns."""

    routes: list[RouteDocument]
    unreadable: list[UnreadableDocument]


class RouteBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where to."""

    queues: Annotated[dict[str, Weight], Meta(min_length=1, max_length=100)]
    """One queue, or several with the share of each: `{"images": 3, "images-eu": 1}`."""


@operation("GET", "/routes", tag="routes")
async def list_routes(context: Context) -> RouteList:
    """List the rules, by their patterns."""
    found = await context.control.routes.alist()
    return RouteList(
        routes=[
            RouteDocument(
                pattern=each.pattern,
                queues=dict(each.queues),
                set_by=each.set_by,
                updated_at=each.updated_at,
            )
            for each in found
        ],
        unreadable=unreadable(found.unreadable),
    )


@operation("PUT", "/routes/{pattern}", tag="routes", needs=Role.ADMIN)
async def set_route(context: Context, pattern: str, body: RouteBody) -> ChangedDocument:
    """Send the tasks of this name, or of names like it (`mail.*`), to queues by weight."""
    async with context.acting():
        await context.control.routes.aset(pattern, body.queues)
    return ChangedDocument(changed=True)


@operation("DELETE", "/routes/{pattern}", tag="routes", needs=Role.ADMIN)
async def delete_route(context: Context, pattern: str) -> ChangedDocument:
    """Remove a rule. What was sent before stays where it is."""
    async with context.acting():
        if not await context.control.routes.adelete(pattern):
            raise Refusal(404, "not_found", f"there is no route {pattern!r:.200}")
    return ChangedDocument(changed=True)


ROUTES: Final = (list_routes, set_route, delete_route)
