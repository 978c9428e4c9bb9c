"""`/dead-letters`: the tasks that failed for good, until somebody decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.task_actions import (
    BulkDocument,
    RefusedDocument,
    ResubmitTaskSelection,
    TaskSelection,
    selected,
)
from holdfast.web.api.task_documents import TaskSummary, unreadable
from holdfast.web.api.task_filter import DeadWhere, PageSize
from holdfast.web.api.tasks import TaskList
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES"]


_MOST_CAUSES: Final = 1_000


class DeadListQuery(DeadWhere, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters, and where the page begins."""

    before: UUID | None = None
    """The `next` of the page before."""
    limit: PageSize = 50


class DeadCountDocument(msgspec.Struct, kw_only=True):
    """How many fit."""

    count: int


class CauseDocument(msgspec.Struct, kw_only=True):
    """How many died in one way."""

    error_code: str | None
    name: str
    version: int
    queue: str
    count: int
    first_at: datetime
    last_at: datetime
    exception: str | None
    """The class of the exception, where no error code stands for it."""


class CauseList(msgspec.Struct, kw_only=True):
    """How many died of what."""

    causes: list[CauseDocument]
    is_all: bool
    """False: these are the 1,000 most frequent."""


class DeathsQuery(DeadWhere, kw_only=True, forbid_unknown_fields=True):
    """Which, and in what steps."""

    step: Literal["hour", "day"] = "hour"


class DeathsDocument(msgspec.Struct, kw_only=True):
    """How many died in one stretch of time."""

    at: datetime
    """When it begins."""
    count: int
    by_code: dict[str, int]


class DeathList(msgspec.Struct, kw_only=True):
    """How many died when; stretches without any are left out."""

    counts: list[DeathsDocument]


class ResubmitAllBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters, how many they are, and how they run again."""

    filter: DeadWhere = msgspec.field(default_factory=DeadWhere)
    at_most: Annotated[int, Meta(ge=1, le=10_000_000)]
    """No more than so many, which is what was counted."""
    rate: Annotated[str, Meta(max_length=50)] | None = None
    """`100/minute`; none: at once."""
    keep_retries: bool = False
    fresh: bool = False


class TreatedDocument(msgspec.Struct, kw_only=True):
    """What became of them."""

    done: int
    refused: int
    reasons: list[RefusedDocument]
    """Why, of the first 100 that were refused."""


@operation("GET", "/dead-letters", tag="dead letters", refusals=[404])
async def list_dead_letters(context: Context, query: DeadListQuery) -> TaskList:
    """List the tasks that failed for good, the newest first."""
    page = await context.control.dead_letters.alist(
        before=query.before, limit=query.limit, **query.dead_filter
    )
    return TaskList(
        tasks=[TaskSummary.of(info) for info in page.tasks],
        next=page.next,
        unreadable=unreadable(page.unreadable),
    )


@operation("GET", "/dead-letters/count", tag="dead letters")
async def count_dead_letters(context: Context, query: DeadWhere) -> DeadCountDocument:
    """Count the dead letters that fit."""
    return DeadCountDocument(count=await context.control.dead_letters.acount(**query.dead_filter))


@operation("GET", "/dead-letters/causes", tag="dead letters")
async def list_causes(context: Context, query: DeadWhere) -> CauseList:
    """Count the dead letters that fit by what they died of, the most frequent first."""
    found = await context.control.dead_letters.acauses(**query.dead_filter)
    causes = found[:_MOST_CAUSES]
    return CauseList(
        causes=[
            CauseDocument(**{name: getattr(each, name) for name in CauseDocument.__struct_fields__})
            for each in causes
        ],
        is_all=len(causes) == len(found),
    )


@operation("GET", "/dead-letters/over-time", tag="dead letters")
async def list_deaths(context: Context, query: DeathsQuery) -> DeathList:
    """Count the dead letters that fit by the hour or day in which they died."""
    found = await context.control.dead_letters.aover_time(query.step, **query.dead_filter)
    return DeathList(
        counts=[
            DeathsDocument(
                at=each.at,
                count=each.count,
                by_code={str(code): number for code, number in each.by_code.items()},
            )
            for each in found
        ]
    )


@operation(
    "POST", "/dead-letters/resubmit-all", tag="dead letters", needs=Role.OPERATE, refusals=[409]
)
async def resubmit_all_dead_letters(context: Context, body: ResubmitAllBody) -> TreatedDocument:
    """Let all dead letters that fit run again, at once or at a rate. Count them first.

    With a `rate` each gets its time, so that they go on at this rate when this has answered. 409 if
    there are more than `at_most` by now.
    """
    letters, where = context.control.dead_letters, body.filter.dead_filter
    number = await letters.acount(**where)
    if number > body.at_most:
        said = f"{number:,} dead letters fit, more than at_most={body.at_most:,}"
        raise Refusal(409, "more_than_counted", said, count=number)
    async with context.acting():
        treated = await letters.aresubmit_all(
            **where, rate=body.rate, keep_retries=body.keep_retries, fresh=body.fresh
        )
    return TreatedDocument(
        done=treated.done,
        refused=treated.refused,
        reasons=[RefusedDocument(id=task, reason=why) for task, why in treated.reasons.items()],
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


ROUTES: Final = (
    list_dead_letters,
    count_dead_letters,
    list_causes,
    list_deaths,
    resubmit_all_dead_letters,
    resubmit_dead_letters,
    delete_dead_letters,
)
