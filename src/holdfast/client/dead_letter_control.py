"""`app.control.dead_letters`: the tasks that failed for good, until somebody decides.

Owns the restriction to dead letters: a verb leaves any other task as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.task_questions import TaskId, raw_id
from holdfast.store.verbs.inspect import tasks_by_id

if TYPE_CHECKING:
    from holdfast.client.control import Filter, TaskControl, TaskPage

__all__ = ["DeadLetterControl"]


class DeadLetterControl:
    """`app.control.dead_letters`."""

    def __init__(self, access: Access, tasks: TaskControl) -> None:
        self._access = access
        self._tasks = tasks

    def list(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[Filter]
    ) -> TaskPage:
        """One page of the dead letters that fit, the newest first."""
        where["dead"] = True
        return self._tasks.list(before=before, limit=limit, **where)

    async def alist(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[Filter]
    ) -> TaskPage:
        """One page of the dead letters that fit, the newest first."""
        where["dead"] = True
        return await self._tasks.alist(before=before, limit=limit, **where)

    def resubmit(
        self,
        *ids: TaskId,
        keep_retries: bool = False,
        fresh: bool = False,
        good_until: datetime | None = None,
        run_at: datetime | None = None,
    ) -> dict[UUID, bool]:
        """Let dead letters run again; False for each that is none, or does not exist."""
        wanted = _uuids(ids)
        done = self._tasks.resubmit(
            *self._dead(wanted),
            keep_retries=keep_retries,
            fresh=fresh,
            good_until=good_until,
            run_at=run_at,
        )
        return {task: done.get(task, False) for task in wanted}

    async def aresubmit(
        self,
        *ids: TaskId,
        keep_retries: bool = False,
        fresh: bool = False,
        good_until: datetime | None = None,
        run_at: datetime | None = None,
    ) -> dict[UUID, bool]:
        """Let dead letters run again; False for each that is none, or does not exist."""
        wanted = _uuids(ids)
        done = await self._tasks.aresubmit(
            *(await self._adead(wanted)),
            keep_retries=keep_retries,
            fresh=fresh,
            good_until=good_until,
            run_at=run_at,
        )
        return {task: done.get(task, False) for task in wanted}

    def delete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove dead letters; False for each that is none, or does not exist."""
        wanted = _uuids(ids)
        done = self._tasks.delete(*self._dead(wanted))
        return {task: done.get(task, False) for task in wanted}

    async def adelete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove dead letters; False for each that is none, or does not exist."""
        wanted = _uuids(ids)
        done = await self._tasks.adelete(*(await self._adead(wanted)))
        return {task: done.get(task, False) for task in wanted}

    def _dead(self, wanted: Sequence[UUID]) -> Sequence[UUID]:
        found = self._access.run(partial(tasks_by_id, [task.bytes for task in wanted]))
        return [UUID(bytes=raw) for raw, record in found.items() if record.dead]

    async def _adead(self, wanted: Sequence[UUID]) -> Sequence[UUID]:
        found = await self._access.arun(partial(tasks_by_id, [task.bytes for task in wanted]))
        return [UUID(bytes=raw) for raw, record in found.items() if record.dead]


def _uuids(ids: tuple[TaskId, ...]) -> list[UUID]:
    return list(dict.fromkeys(UUID(bytes=raw_id(task_id)) for task_id in ids))
