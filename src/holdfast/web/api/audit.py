"""`/audit`: who did what, from where, by which filter, to how many."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.task_filter import Moment, Word
from holdfast.web.context import Context

__all__ = ["ROUTES"]


class AuditQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which actions, and where the page begins."""

    before: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    by: Word | UnsetType = UNSET
    verb: Word | UnsetType = UNSET
    subject: Word | UnsetType = UNSET
    since: Moment | UnsetType = UNSET
    until: Moment | UnsetType = UNSET


class AuditDocument(msgspec.Struct, kw_only=True):
    """One action."""

    id: int
    at: datetime
    by: str
    origin: str | None
    verb: str
    subject: str
    filter: str | None
    count: int
    detail: Any
    """What else was said of it; values of secret keys are hidden."""


class AuditList(msgspec.Struct, kw_only=True):
    """Some actions, the newest first."""

    entries: list[AuditDocument]
    next: int | None
    """Give this as `before` for the next page; null: there is none."""


@operation("GET", "/audit", tag="audit", needs=Role.ADMIN)
async def list_actions(context: Context, query: AuditQuery) -> AuditList:
    """List what operators did, the newest first."""
    names = ("by", "verb", "subject", "since", "until")
    where: Any = {name: getattr(query, name) for name in names if getattr(query, name) is not UNSET}
    page = await context.control.audit.alist(before=query.before, limit=query.limit, **where)
    return AuditList(
        entries=[
            AuditDocument(
                **{
                    name: getattr(entry, name)
                    for name in AuditDocument.__struct_fields__
                    if name != "detail"
                },
                detail=context.payloads.masked(entry.detail),
            )
            for entry in page.entries
        ],
        next=page.next,
    )


ROUTES: Final = (list_actions,)
