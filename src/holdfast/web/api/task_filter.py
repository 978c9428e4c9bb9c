"""Which tasks are meant: the filter of lists, counts and actions.

Owns the words of the filter, as queries and bodies spell them, and how the record of an action
spells them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.control import MAX_PAGE
from holdfast.client.dead_letter_work import DeadFilter
from holdfast.client.task_search import Filter
from holdfast.core.status import TaskStatus

__all__ = ["DeadWhere", "Moment", "Name", "PageSize", "TaskWhere", "Word"]

Moment = Annotated[datetime, Meta(tz=True, description="With a time zone: 2026-11-15T02:30:00Z")]
Word = Annotated[str, Meta(max_length=1000)]
Name = Annotated[
    str, Meta(min_length=1, max_length=255, extra_json_schema={"pattern": "^[A-Za-z0-9_.:-]+$"})
]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]

_PAGE = ("before", "limit", "step")
"""What a query says beside its filter."""


class TaskWhere(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Tasks that fit all of this; nothing said: all tasks."""

    status: list[TaskStatus] = []
    """One of these; none: any."""
    queue: Word | UnsetType = UNSET
    name: Word | UnsetType = UNSET
    tag: Word | UnsetType = UNSET
    worker_id: Word | UnsetType = UNSET
    error_code: Word | UnsetType = UNSET
    exception: Word | UnsetType = UNSET
    """The class of an exception without a code of its own: "ValueError", "httpx.ReadTimeout"."""
    workflow_id: UUID | UnsetType = UNSET
    parent_id: UUID | UnsetType = UNSET
    """Sent by this task while it ran."""
    submitted_from: Moment | UnsetType = UNSET
    submitted_until: Moment | UnsetType = UNSET
    dead: bool | UnsetType = UNSET
    """Among the dead letters, or not."""
    text: Word | UnsetType = UNSET
    """Part of an id, a name or a key."""

    @property
    def given(self) -> dict[str, Any]:
        """What was said."""
        names = [name for name in self.__struct_fields__ if name not in _PAGE]
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not UNSET and value != []}

    @property
    def filter(self) -> Filter:
        """The same for `app.control.tasks`."""
        return cast("Filter", self.given)

    def __str__(self) -> str:
        return " ".join(f"{name}={_word(value)}" for name, value in self.given.items()) or "all"


class DeadWhere(TaskWhere, kw_only=True, forbid_unknown_fields=True):
    """Dead letters that fit all of this; nothing said: all of them."""

    version: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    ended_from: Moment | UnsetType = UNSET
    ended_until: Moment | UnsetType = UNSET

    @property
    def dead_filter(self) -> DeadFilter:
        """The same for `app.control.dead_letters`."""
        return cast("DeadFilter", self.given)


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
