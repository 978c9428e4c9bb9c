"""Following the ends of all tasks: `app.control.tasks.tail(…)`.

Owns what has been seen. Each look asks how the tasks stand that the last one found alive, tells of
those that have ended since, and finds those that may end next. So nothing is lost when the database
is away for a while: whatever was alive before is asked about afterwards.

Bounded: of each queue the next 1,000 are watched (fewer where more than ten have tasks: 10,000 in
all, ten of each at the least), and the 1,000 newest of all. Where more end between two looks than
that, some are not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, NamedTuple, TypedDict, Unpack

from holdfast.client.access import Access
from holdfast.client.info import TaskInfo
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.moment import to_us
from holdfast.core.options import checks
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs.inspect import statuses, tasks_by_id
from holdfast.store.verbs.live_tasks import live_tasks
from holdfast.store.verbs.timing import next_due

__all__ = ["EndingFilter", "EndingTail", "FollowedTasks"]

_MOST: Final = 1_000
_MOST_ASKED: Final = 5_000
_CHUNK: Final = 500


class EndingFilter(TypedDict, total=False):
    """Which endings are told."""

    status: Iterable[TaskStatus | str]
    queue: str
    name: str
    tag: str
    worker_id: str
    error_code: str
    dead: bool


class _Seen(NamedTuple):
    """What one look has seen."""

    now: int
    ended: Sequence[TaskInfo]
    alive: AbstractSet[bytes]
    """Those that had not ended."""
    told: AbstractSet[bytes]
    """Those of the newest that had."""


class EndingTail:
    """The ends of tasks, from the first look on."""

    def __init__(self, access: Access, where: EndingFilter) -> None:
        self._access = access
        self._where = _checked(where)
        self._last: _Seen | None = None
        self._since = 0

    def look(self) -> list[TaskInfo]:
        """The tasks that have ended since the last look and fit, in the order of their ends.

        The first look finds none: it learns which tasks are alive. One that raises has lost
        nothing: look again.
        """
        return self._learn(self._access.run(self._asking()))

    async def alook(self) -> list[TaskInfo]:
        """The tasks that have ended since the last look and fit, in the order of their ends."""
        return self._learn(await self._access.arun(self._asking()))

    def _asking(self) -> Callable[[], Op[_Seen]]:
        queue = self._where.get("queue")
        return partial(_look, self._last, None if queue is None else [queue])

    def _learn(self, seen: _Seen) -> list[TaskInfo]:
        if self._last is None:
            self._since = seen.now
        self._last = seen
        # Where newer tasks were deleted, older ones are among the newest that ended long ago.
        fitting = [
            info
            for info in seen.ended
            if info.finished_at is not None
            and to_us(info.finished_at) >= self._since
            and _fits(info, self._where)
        ]
        return sorted(fitting, key=lambda info: info.finished_at or info.updated_at)


class FollowedTasks:
    """The ends of tasks, as they come."""

    _access: Access

    def tail(self, **where: Unpack[EndingFilter]) -> EndingTail:
        """Follow how tasks end, from the first `look()` on: call it about once a second."""
        return EndingTail(self._access, where)


@reads
def _look(last: _Seen | None, queues: Sequence[str] | None) -> Steps[_Seen]:
    """Who has ended since the last look, and who is alive."""
    now = (yield from next_due()).now
    found = set((yield from live_tasks(most=_MOST, queues=queues)))
    asked = set[bytes]() if last is None else last.alive
    known: dict[bytes, TaskStatus] = {}
    for part in _parts(found | asked):
        known |= yield from statuses(part)
    over = {task for task, status in known.items() if status.is_terminal}
    ended: list[TaskInfo] = []
    aside: list[UnreadableRow] = []
    for part in _parts(set() if last is None else over - last.told):
        page = yield from tasks_by_id(part, aside)
        ended += [TaskInfo.of(record) for record in page.values() if record.status.is_terminal]
    alive = known.keys() - over
    # Of those that are not found any more the oldest are kept: they end first.
    rest = sorted(alive - found)[:_MOST_ASKED]
    return _Seen(now, ended, (alive & found).union(rest), over & found)


def _parts(ids: AbstractSet[bytes]) -> list[list[bytes]]:
    ordered = sorted(ids)
    return [ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK)]


def _checked(where: EndingFilter) -> EndingFilter:
    unknown = where.keys() - EndingFilter.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(EndingFilter.__annotations__))
        raise ConfigError(f"endings cannot be chosen by {min(unknown)!r}: use {names}")
    for name in ("queue", "name", "tag", "worker_id", "error_code"):
        value = where.get(name)
        if value is not None:
            checks.stored_text(value, name)
    wanted = where.get("status", ())
    given = [wanted] if isinstance(wanted, str) else wanted
    for status in given:
        if status not in list(TaskStatus) or not TaskStatus(status).is_terminal:
            ends = ", ".join(each.value for each in TaskStatus if each.is_terminal)
            raise ConfigError(f"no task ends as {str(status)!r}: there are {ends}", option="status")
    return {**where, "status": frozenset(TaskStatus(status) for status in given)}


def _fits(info: TaskInfo, where: EndingFilter) -> bool:
    status, tag = where.get("status"), where.get("tag")
    return (
        (not status or info.status in status)
        and where.get("queue") in (None, info.queue)
        and where.get("name") in (None, info.name)
        and where.get("worker_id") in (None, info.claimed_by_worker_id)
        and where.get("error_code") in (None, info.error_code)
        and (tag is None or tag in info.tags)
        and where.get("dead") in (None, info.dead)
    )
