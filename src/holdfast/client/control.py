"""What an operator does, from Python: the verbs of the command line.

Owns nothing but their arguments. Lists are pages, newest first; the page says where the next
one begins. Verbs take any number of ids and answer for each; a task that a verb does not
apply to is left as it is. `TaskHandle` has the same verbs for one task, with errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar, Unpack
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.acting import Acting, Effect, effect_on, recorded, who_acts
from holdfast.client.audit_control import AuditControl
from holdfast.client.dead_letter_control import DeadLetterControl
from holdfast.client.doctor.examined import ExaminedStore
from holdfast.client.ending_tail import FollowedTasks
from holdfast.client.info import Listing
from holdfast.client.limit_control import LimitedQueues, LimitedTasks
from holdfast.client.one_task import ResubmitOptions, resubmission
from holdfast.client.route_control import RouteControl
from holdfast.client.schedule_control import ScheduleControl
from holdfast.client.stats_control import StatsControl
from holdfast.client.task_questions import TaskId, TaskQuestions, raw_ids
from holdfast.client.task_search import Filter, TaskPage, TaskSearch, listing, page_of
from holdfast.client.worker_control import WorkerControl
from holdfast.client.workflow_control import WorkflowControl
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.limiting import LimitBook, queue_scope
from holdfast.core.moment import Due, When, due, from_us
from holdfast.core.options import checks
from holdfast.core.options.limit import Limit
from holdfast.core.payload.codec import from_json
from holdfast.core.records import QueueRecord, TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs import (
    cancel,
    diagnosis,
    inspect,
    limits,
    operate,
    queues,
    timing,
    workers,
)
from holdfast.store.verbs.unreadable import delete_unreadable

__all__ = [
    "Control",
    "Filter",
    "QueueControl",
    "QueueInfo",
    "TaskControl",
    "TaskCounts",
    "TaskPage",
    "WaitingKind",
]

MAX_PAGE: Final = inspect.MAX_PAGE
"""The largest page of a list."""
COUNT_CAP: Final = queues.COUNT_CAP
"""Where the counting of a queue's tasks stops."""

T = TypeVar("T")


class TaskCounts(dict[TaskStatus, int]):
    """How many tasks there are in each status; one that is absent has none.

    Counting never reads a large table: it stops after 10,000 entries. `at_least` holds the
    statuses of which there may be more than was counted (or some where none was): for the
    most part COMPLETED and WAITING, which are counted among the 10,000 newest tasks.
    """

    def __init__(self, counted: inspect.Counts) -> None:
        super().__init__(counted.by_status)
        self.at_least = counted.at_least


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue: whether it is paused, and what waits in it."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    pending: int
    """Counted up to 10,000."""
    oldest_enqueued_at: datetime | None
    scheduled: int = 0
    """Held until their time; counted among the 10,000 of all queues that are due next."""
    limits: Sequence[Limit] = ()
    fair: bool = True
    """Whether its concurrency keys take turns."""


@dataclass(frozen=True, slots=True)
class WaitingKind:
    """What waits to be claimed in a queue, of one name and version."""

    queue: str
    name: str
    version: int
    count: int
    oldest_enqueued_at: datetime


class Control(ExaminedStore):
    """`app.control`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.tasks = TaskControl(access)
        self.queues = QueueControl(access)
        self.workers = WorkerControl(access)
        self.dead_letters = DeadLetterControl(access)
        self.routes = RouteControl(access)
        self.schedules = ScheduleControl(access)
        self.workflows = WorkflowControl(access)
        self.stats = StatsControl(access)
        self.audit = AuditControl(access)

    def acting(
        self,
        *,
        by: str,
        origin: str | None = None,
        filter: str | None = None,  # noqa: A002
    ) -> Acting:
        """Say who acts in a block of code, for the record that `audit` lists.

        `origin` is from where, `filter` what the tasks were chosen by. Without it, it is the user
        of the operating system.
        """
        return Acting(by, origin, filter)

    def beside(self, *, max_connections: int, statement_timeout: float) -> Control:
        """The same on other connections to the same database, with a bound for each statement:
        for what must never keep the app waiting. They are closed with the app."""
        other = self._access.beside(
            max_connections=max_connections, statement_timeout=statement_timeout
        )
        return self if other is self._access else Control(other)

    def now(self) -> datetime:
        """The database's clock, by which every time here goes."""
        return from_us(self._access.run(partial(timing.next_due)).now)

    async def anow(self) -> datetime:
        """The database's clock, by which every time here goes."""
        return from_us((await self._access.arun(partial(timing.next_due))).now)


class TaskControl(FollowedTasks, LimitedTasks, TaskQuestions, TaskSearch):
    """`app.control.tasks`."""

    def list(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[Filter]
    ) -> TaskPage:
        """One page of the tasks that fit, the newest first."""
        return page_of(self._access.run(listing(before, limit, where)))

    async def alist(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[Filter]
    ) -> TaskPage:
        """One page of the tasks that fit, the newest first."""
        return page_of(await self._access.arun(listing(before, limit, where)))

    def count(self, *, queue: str | None = None) -> TaskCounts:
        """How many tasks there are in each status; `at_least` says where there may be more."""
        return TaskCounts(self._access.run(_counting(queue)))

    async def acount(self, *, queue: str | None = None) -> TaskCounts:
        """How many tasks there are in each status; `at_least` says where there may be more."""
        return TaskCounts(await self._access.arun(_counting(queue)))

    def cancel(self, *ids: TaskId) -> dict[UUID, TaskStatus | None]:
        """Cancel tasks; the status of each afterwards, None for one that does not exist."""
        return _by_uuid(self._access.run(_cancelling(ids)))

    async def acancel(self, *ids: TaskId) -> dict[UUID, TaskStatus | None]:
        """Cancel tasks; the status of each afterwards, None for one that does not exist."""
        return _by_uuid(await self._access.arun(_cancelling(ids)))

    def resubmit(self, *ids: TaskId, **options: Unpack[ResubmitOptions]) -> dict[UUID, bool]:
        """Let ended tasks run again; True for each that was resubmitted."""
        verb = resubmission(**options)
        return _by_uuid(self._access.run(_done("resubmit", partial(verb, raw_ids(ids)))))

    async def aresubmit(self, *ids: TaskId, **options: Unpack[ResubmitOptions]) -> dict[UUID, bool]:
        """Let ended tasks run again; True for each that was resubmitted."""
        verb = resubmission(**options)
        return _by_uuid(await self._access.arun(_done("resubmit", partial(verb, raw_ids(ids)))))

    def reschedule(
        self,
        *ids: TaskId,
        when: When | None = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> dict[UUID, bool]:
        """Change the time, queue or priority of tasks that wait; True for each that changed.

        `when` is in seconds, a timedelta or an aware datetime; 0 is at once.
        """
        return _by_uuid(self._access.run(_rescheduling(ids, when, queue, priority)))

    async def areschedule(
        self,
        *ids: TaskId,
        when: When | None = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> dict[UUID, bool]:
        """Change the time, queue or priority of tasks that wait; True for each that changed."""
        return _by_uuid(await self._access.arun(_rescheduling(ids, when, queue, priority)))

    def delete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove ended tasks with their attempts and logs; True for each that is gone."""
        return _by_uuid(self._access.run(_done("delete", partial(operate.delete, raw_ids(ids)))))

    async def adelete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove ended tasks with their attempts and logs; True for each that is gone."""
        return _by_uuid(
            await self._access.arun(_done("delete", partial(operate.delete, raw_ids(ids))))
        )

    def delete_unreadable(self, *keys: str) -> dict[str, bool]:
        """Remove rows that cannot be read, by the keys that lists name; True for each that is gone.

        A row that can be read is not touched.
        """
        return self._access.run(_deleting_unreadable(keys))

    async def adelete_unreadable(self, *keys: str) -> dict[str, bool]:
        """Remove rows that cannot be read, by the keys that lists name."""
        return await self._access.arun(_deleting_unreadable(keys))


class QueueControl(LimitedQueues):
    """`app.control.queues`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(self) -> Listing[QueueInfo]:
        """The queues in which something waits or is scheduled, and those that were ever paused or
        have a limit."""
        unreadable: list[UnreadableRow] = []
        found = self._access.run(partial(_list_queues, unreadable))
        return Listing(found, unreadable)

    async def alist(self) -> Listing[QueueInfo]:
        """The queues in which something waits or is scheduled, and those that were ever paused or
        have a limit."""
        unreadable: list[UnreadableRow] = []
        found = await self._access.arun(partial(_list_queues, unreadable))
        return Listing(found, unreadable)

    def kinds(self, *queues: str, most: int = 1_000) -> Sequence[WaitingKind]:
        """What waits in queues, by name and version, as far as the first entries of each tell."""
        return [_kind(each) for each in self._access.run(_kinds_of(queues, most))]

    async def akinds(self, *queues: str, most: int = 1_000) -> Sequence[WaitingKind]:
        """What waits in queues, by name and version, as far as the first entries of each tell."""
        return [_kind(each) for each in await self._access.arun(_kinds_of(queues, most))]

    def seen(self, queue: str) -> bool:
        """Whether there is any sign of such a queue: a task, a worker that serves it, a pause."""
        return self._access.run(partial(_is_seen, checks.queue_name(queue)))

    async def aseen(self, queue: str) -> bool:
        """Whether there is any sign of such a queue: a task, a worker that serves it, a pause."""
        return await self._access.arun(partial(_is_seen, checks.queue_name(queue)))

    def pause(self, queue: str, *, by: str | None = None) -> None:
        """Let nothing more be claimed from a queue."""
        self._access.run(_pausing(queue, by))

    async def apause(self, queue: str, *, by: str | None = None) -> None:
        """Let nothing more be claimed from a queue."""
        await self._access.arun(_pausing(queue, by))

    def resume(self, queue: str) -> bool:
        """Let a paused queue go on; False if it was not paused."""
        return self._access.run(_resuming(queue))

    async def aresume(self, queue: str) -> bool:
        """Let a paused queue go on; False if it was not paused."""
        return await self._access.arun(_resuming(queue))


def _done(
    verb: str, make: Callable[[], Op[dict[bytes, bool]]], changes: dict[str, object] | None = None
) -> Callable[[], Op[dict[bytes, bool]]]:
    """Record for which tasks a verb was done."""
    return recorded(verb, make, lambda done: effect_on([k for k, v in done.items() if v], changes))


def _counting(queue: str | None) -> Callable[[], Op[inspect.Counts]]:
    return partial(inspect.counts, None if queue is None else checks.stored_text(queue, "queue"))


def _cancelling(ids: Iterable[TaskId]) -> Callable[[], Op[dict[bytes, TaskStatus | None]]]:
    ended = (TaskStatus.CANCELLED, TaskStatus.RUNNING)
    return recorded(
        "cancel",
        partial(cancel.cancel, raw_ids(ids)),
        lambda done: effect_on([task for task, status in done.items() if status in ended]),
    )


def _deleting_unreadable(keys: Sequence[str]) -> Callable[[], Op[dict[str, bool]]]:
    return recorded(
        "delete",
        partial(delete_unreadable, keys),
        lambda done: Effect(
            sum(done.values()), "unreadable rows", {"keys": [k for k, v in done.items() if v]}
        ),
    )


def _kinds_of(queues: Sequence[str], most: int) -> Callable[[], Op[list[diagnosis.PendingKind]]]:
    names = [checks.queue_name(queue) for queue in queues]
    return partial(diagnosis.pending_kinds, names, scan=checks.at_least(1, most, "most"))


def _kind(found: diagnosis.PendingKind) -> WaitingKind:
    return WaitingKind(
        found.queue_name, found.task_name, found.version, found.number, from_us(found.oldest)
    )


def _pausing(queue: str, by: str | None) -> Callable[[], Op[None]]:
    who = who_acts(by)
    verb = partial(queues.pause, checks.queue_name(queue), by=who)
    return recorded("pause", verb, lambda _: Effect(1, f"queue {queue}"), by=who)


def _resuming(queue: str) -> Callable[[], Op[bool]]:
    verb = partial(queues.resume, checks.queue_name(queue))
    return recorded("resume", verb, lambda resumed: Effect(int(resumed), f"queue {queue}"))


def _by_uuid(answers: dict[bytes, T]) -> dict[UUID, T]:
    return {UUID(bytes=task_id): answer for task_id, answer in answers.items()}


def _rescheduling(
    ids: Iterable[TaskId], when: When | None, queue: str | None, priority: int | None
) -> Callable[[], Op[dict[bytes, bool]]]:
    if when is None and queue is None and priority is None:
        raise ConfigError("reschedule changes nothing: give when, queue or priority")
    at = Due() if when is None else due(when, option="when")
    verb = partial(
        operate.reschedule,
        raw_ids(ids),
        move=when is not None,
        delay_us=at.delay_us,
        run_at=at.run_at,
        queue=None if queue is None else checks.queue_name(queue),
        priority=None if priority is None else checks.priority(priority),
    )
    changes = {"when": None if when is None else str(when), "queue": queue, "priority": priority}
    return _done("reschedule", verb, {k: v for k, v in changes.items() if v is not None})


@reads
def _is_seen(queue: str) -> Steps[bool]:
    if any(record.queue_name == queue for record in (yield from queues.list_queues())):
        return True
    for worker in (yield from workers.list_workers()):
        if queue in from_json(worker.queues):
            return True
    page = yield from inspect.list_tasks(TaskFilter(queue_name=queue), limit=1)
    return bool(page.tasks)


@reads
def _list_queues(unreadable: list[UnreadableRow]) -> Steps[list[QueueInfo]]:
    found = yield from queues.list_queues(set_aside=unreadable)
    book = yield from limits.book(unreadable)
    there = {record.queue_name for record in found}
    for scope in book.limits:
        kind, _, name = scope.partition(" ")
        if kind == "queue" and name not in there:
            found.append(QueueRecord(name, None, None, 0, None))
    return [_queue(record, book) for record in found]


def _queue(record: QueueRecord, book: LimitBook) -> QueueInfo:
    paused, oldest = record.paused_at, record.oldest_enqueued_at
    return QueueInfo(
        record.queue_name,
        None if paused is None else from_us(paused),
        record.paused_by,
        record.pending,
        None if oldest is None else from_us(oldest),
        record.scheduled,
        book.limits.get(queue_scope(record.queue_name), ()),
        record.queue_name not in book.unfair,
    )
