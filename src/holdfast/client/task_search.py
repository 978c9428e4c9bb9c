"""Which tasks: the filters of lists, their pages, and the ids of all that fit.

Owns what may be asked of `app.control.tasks.list` and what it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Literal, TypedDict, Unpack
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.info import TaskInfo
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.identity import as_bytes
from holdfast.core.moment import optional_us
from holdfast.core.options import checks
from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op
from holdfast.store.verbs import inspect, newest

__all__ = ["Filter", "TaskIds", "TaskPage", "TaskSearch", "listing", "page_of", "wanted_of"]

_UNHANDLED: Final = str(ErrorCode.UNHANDLED_EXCEPTION)
MOST_IDS: Final = 10_000
"""How many ids one question is answered with."""


class Filter(TypedDict, total=False):
    """Which tasks a list shows."""

    status: TaskStatus | str | Iterable[TaskStatus | str]
    queue: str
    name: str
    tag: str
    worker_id: str
    error_code: str
    exception: str
    """The class of an exception without a code of its own: "ValueError", "httpx.ReadTimeout"."""
    workflow_id: UUID | str
    parent_id: UUID | str
    """Sent by this task while it ran."""
    submitted_from: datetime
    submitted_until: datetime
    dead: bool
    text: str
    """Part of an id, a name or a key."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some tasks, the newest first."""

    tasks: Sequence[TaskInfo]
    next: UUID | None
    """Give this as `before` for the next page; None: there is none."""
    unreadable: Sequence[UnreadableRow] = ()
    """Rows of this page that cannot be read: written by hand, by other code, or damaged."""


@dataclass(frozen=True, slots=True)
class TaskIds:
    """The ids of some tasks that fit."""

    ids: Sequence[UUID]
    next: UUID | None
    """Give this as `before` for those that follow; None: there are none."""


class TaskSearch:
    """The tasks that fit, without what is stored about them."""

    _access: Access

    def ids(
        self,
        *,
        before: UUID | str | None = None,
        limit: int = MOST_IDS,
        **where: Unpack[Filter],
    ) -> TaskIds:
        """The ids of the tasks that fit, the greatest first: to count them, and to give to verbs.

        No more than 100,000 tasks are looked at; `next` says where to go on.
        """
        return _ids_of(self._access.run(_fitting(before, limit, where)))

    async def aids(
        self,
        *,
        before: UUID | str | None = None,
        limit: int = MOST_IDS,
        **where: Unpack[Filter],
    ) -> TaskIds:
        """The ids of the tasks that fit, the greatest first: to count them, and to give to verbs.

        No more than 100,000 tasks are looked at; `next` says where to go on.
        """
        return _ids_of(await self._access.arun(_fitting(before, limit, where)))


def _fitting(
    before: UUID | str | None, limit: int, where: Filter
) -> Callable[[], Op[tuple[list[bytes], bytes | None]]]:
    start = None if before is None else as_bytes(before)
    size = min(checks.at_least(1, limit, "limit"), MOST_IDS)
    return partial(inspect.fitting, wanted_of(where), before=start, limit=size)


def _ids_of(found: tuple[list[bytes], bytes | None]) -> TaskIds:
    ids, rest = found
    return TaskIds([UUID(bytes=raw) for raw in ids], None if rest is None else UUID(bytes=rest))


def listing(before: UUID | str | None, limit: int, where: Filter) -> Callable[[], Op[inspect.Page]]:
    """One page of the tasks that fit."""
    start = None if before is None else as_bytes(before)
    size = checks.at_least(1, limit, "limit")
    return partial(newest.newest, wanted_of(where), before=start, limit=size)


def wanted_of(where: Filter) -> TaskFilter:
    """The filter as the store takes it, checked."""
    unknown = where.keys() - Filter.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(Filter.__annotations__))
        raise ConfigError(f"tasks cannot be listed by {min(unknown)!r}: use {names}")
    exception = _text(where, "exception") or None
    workflow, parent = where.get("workflow_id"), where.get("parent_id")
    return TaskFilter(
        status=_statuses(where.get("status", ())),
        queue_name=_text(where, "queue"),
        task_name=_text(where, "name"),
        tag=_text(where, "tag"),
        worker_id=_text(where, "worker_id"),
        error_code=_text(where, "error_code") or (_UNHANDLED if exception else None),
        exception=exception,
        workflow_id=None if workflow is None else as_bytes(workflow),
        parent_id=None if parent is None else as_bytes(parent),
        created_from=optional_us(where.get("submitted_from"), option="submitted_from"),
        created_until=optional_us(where.get("submitted_until"), option="submitted_until"),
        dead=where.get("dead"),
        text=_text(where, "text") or None,
    )


def _text(
    where: Filter,
    name: Literal["queue", "name", "tag", "worker_id", "error_code", "exception", "text"],
) -> str | None:
    given = where.get(name)
    return None if given is None else checks.stored_text(given, name)


def _statuses(given: TaskStatus | str | Iterable[TaskStatus | str]) -> frozenset[TaskStatus]:
    names = [given] if isinstance(given, str) else given
    try:
        return frozenset(TaskStatus(name) for name in names)
    except ValueError as error:
        known = ", ".join(TaskStatus)
        raise ConfigError(f"{error}: there are {known}", option="status") from None


def page_of(page: inspect.Page) -> TaskPage:
    """What a user sees of it."""
    start = None if page.next is None else UUID(bytes=page.next)
    return TaskPage([TaskInfo.of(task) for task in page.tasks], start, page.unreadable)
