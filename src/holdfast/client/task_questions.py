"""What an operator asks about single tasks: which, where, why, and what it left behind.

Owns the reading half of `app.control.tasks`; `TaskHandle` answers the same about a task that a
program sent itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from holdfast.client import find as finding
from holdfast.client import one_task
from holdfast.client.access import Access
from holdfast.client.explain import Why, explain
from holdfast.client.handle import TaskHandle
from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.refusals import refusals
from holdfast.client.wait import Deadline
from holdfast.core.errors import ConfigError, IllegalTransition, PayloadError, WaitTimeout
from holdfast.core.identity import sought
from holdfast.core.lifecycle import Verb
from holdfast.core.payload.codec import to_show
from holdfast.core.status import TaskStatus
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import inspect
from holdfast.store.verbs.evidence import Printed, StoredCheckpoint, checkpoints, read_log
from holdfast.store.verbs.inspect import Dependency
from holdfast.store.verbs.stack_requests import ask_stack, take_stack

__all__ = [
    "PATIENCE",
    "CheckpointInfo",
    "Dependency",
    "Printed",
    "TaskId",
    "TaskQuestions",
    "raw_id",
    "raw_ids",
]

TaskId: TypeAlias = "UUID | str | TaskHandle[object]"

PATIENCE: Final = 3.0
"""Seconds that a worker has to say where a task's code is; then the question is taken back."""
_LOOK: Final = 0.05
_FROM_THE_START: Final = (0, -1)


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A durable step that a task has made."""

    name: str
    value: Any
    """As plain data, without secrets; None if it is too large to be shown, or cannot be read."""
    length: int
    """In characters of its JSON."""


class TaskQuestions:
    """Questions about tasks that are named."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def find(self, text: str, *, limit: int = 10) -> list[UUID]:
        """The tasks somebody may mean by a whole id, a short one, or its first or last digits.

        Short ids, as lists and logs show them, are the first 8 and the last 6 digits:
        `0197f3c2-708192`.
        """
        return [UUID(bytes=raw) for raw in self._access.run(partial(finding.find, text, limit))]

    async def afind(self, text: str, *, limit: int = 10) -> list[UUID]:
        """The tasks somebody may mean by a whole id, a short one, or its first or last digits."""
        found = await self._access.arun(partial(finding.find, text, limit))
        return [UUID(bytes=raw) for raw in found]

    def show(self, task_id: TaskId) -> TaskInfo:
        """Everything that is stored about a task."""
        return TaskInfo.of(self._access.run(partial(one_task.show, raw_id(task_id))))

    async def ashow(self, task_id: TaskId) -> TaskInfo:
        """Everything that is stored about a task."""
        return TaskInfo.of(await self._access.arun(partial(one_task.show, raw_id(task_id))))

    def show_many(self, *ids: TaskId) -> dict[UUID, TaskInfo]:
        """The same of many; one that does not exist is absent."""
        found = self._access.run(partial(inspect.tasks_by_id, raw_ids(ids)))
        return {UUID(bytes=raw): TaskInfo.of(record) for raw, record in found.items()}

    async def ashow_many(self, *ids: TaskId) -> dict[UUID, TaskInfo]:
        """The same of many; one that does not exist is absent."""
        found = await self._access.arun(partial(inspect.tasks_by_id, raw_ids(ids)))
        return {UUID(bytes=raw): TaskInfo.of(record) for raw, record in found.items()}

    def statuses(self, *ids: TaskId) -> dict[UUID, TaskStatus]:
        """Where tasks stand; one that does not exist is absent."""
        found = self._access.run(partial(inspect.statuses, raw_ids(ids)))
        return {UUID(bytes=raw): status for raw, status in found.items()}

    async def astatuses(self, *ids: TaskId) -> dict[UUID, TaskStatus]:
        """Where tasks stand; one that does not exist is absent."""
        found = await self._access.arun(partial(inspect.statuses, raw_ids(ids)))
        return {UUID(bytes=raw): status for raw, status in found.items()}

    def attempts(self, task_id: TaskId) -> list[Attempt]:
        """The executions of a task that have ended, in order."""
        found = self._access.run(partial(inspect.attempts, raw_id(task_id)))
        return [Attempt.of(each) for each in found]

    async def aattempts(self, task_id: TaskId) -> list[Attempt]:
        """The executions of a task that have ended, in order."""
        found = await self._access.arun(partial(inspect.attempts, raw_id(task_id)))
        return [Attempt.of(each) for each in found]

    def last_errors(self, *ids: TaskId) -> dict[UUID, Attempt]:
        """The last execution of each task that ended with an error; without one it is absent."""
        found = self._access.run(partial(inspect.last_errors, raw_ids(ids)))
        return {UUID(bytes=raw): Attempt.of(made) for raw, made in found.items()}

    async def alast_errors(self, *ids: TaskId) -> dict[UUID, Attempt]:
        """The last execution of each task that ended with an error; without one it is absent."""
        found = await self._access.arun(partial(inspect.last_errors, raw_ids(ids)))
        return {UUID(bytes=raw): Attempt.of(made) for raw, made in found.items()}

    def why_not(self, verb: str, *ids: TaskId) -> dict[UUID, str]:
        """Why "cancel", "resubmit", "delete", … do not apply to these tasks, as they stand."""
        found = self._access.run(partial(refusals, _verb(verb), raw_ids(ids)))
        return {UUID(bytes=raw): why for raw, why in found.items()}

    async def awhy_not(self, verb: str, *ids: TaskId) -> dict[UUID, str]:
        """Why "cancel", "resubmit", "delete", … do not apply to these tasks, as they stand."""
        found = await self._access.arun(partial(refusals, _verb(verb), raw_ids(ids)))
        return {UUID(bytes=raw): why for raw, why in found.items()}

    def dependencies(self, task_id: TaskId) -> Sequence[Dependency]:
        """What a task waits for, or waited for."""
        return self._access.run(partial(inspect.dependencies, raw_id(task_id)))

    async def adependencies(self, task_id: TaskId) -> Sequence[Dependency]:
        """What a task waits for, or waited for."""
        return await self._access.arun(partial(inspect.dependencies, raw_id(task_id)))

    def checkpoints(self, task_id: TaskId) -> Sequence[CheckpointInfo]:
        """The durable steps that a task has made, the first hundred by name."""
        found = self._access.run(partial(checkpoints, raw_id(task_id)))
        return [_checkpoint(each) for each in found]

    async def acheckpoints(self, task_id: TaskId) -> Sequence[CheckpointInfo]:
        """The durable steps that a task has made, the first hundred by name."""
        found = await self._access.arun(partial(checkpoints, raw_id(task_id)))
        return [_checkpoint(each) for each in found]

    def why(self, task_id: TaskId) -> Why:
        """Why a task is where it is, in sentences."""
        return self._access.run(partial(explain, raw_id(task_id)))

    async def awhy(self, task_id: TaskId) -> Why:
        """Why a task is where it is, in sentences."""
        return await self._access.arun(partial(explain, raw_id(task_id)))

    def log_parts(
        self,
        task_id: TaskId,
        *,
        attempt: int | None = None,
        after: tuple[int, int] = _FROM_THE_START,
    ) -> list[Printed]:
        """Some of the pieces that a task printed, from behind the (attempt, part) `after`."""
        return self._access.run(partial(read_log, raw_id(task_id), attempt=attempt, after=after))

    async def alog_parts(
        self,
        task_id: TaskId,
        *,
        attempt: int | None = None,
        after: tuple[int, int] = _FROM_THE_START,
    ) -> list[Printed]:
        """Some of the pieces that a task printed, from behind the (attempt, part) `after`."""
        op = partial(read_log, raw_id(task_id), attempt=attempt, after=after)
        return await self._access.arun(op)

    def stack(self, task_id: TaskId, *, timeout: float = PATIENCE) -> str:
        """Where the code of a running task is; `WaitTimeout` if its worker does not say."""
        raw, deadline = raw_id(task_id), Deadline(timeout)
        self._access.run(partial(_check_running, raw))
        self._access.run(partial(ask_stack, raw))
        while True:
            is_over = deadline.has_passed
            found = self._access.run(partial(take_stack, raw, give_up=is_over))
            if found is not None:
                return found
            if is_over:
                self._access.run(partial(_check_running, raw))
                raise WaitTimeout(raw, timeout, TaskStatus.RUNNING)
            time.sleep(_LOOK)

    async def astack(self, task_id: TaskId, *, timeout: float = PATIENCE) -> str:
        """Where the code of a running task is; `WaitTimeout` if its worker does not say."""
        import asyncio

        raw, deadline = raw_id(task_id), Deadline(timeout)
        await self._access.arun(partial(_check_running, raw))
        await self._access.arun(partial(ask_stack, raw))
        while True:
            is_over = deadline.has_passed
            found = await self._access.arun(partial(take_stack, raw, give_up=is_over))
            if found is not None:
                return found
            if is_over:
                await self._access.arun(partial(_check_running, raw))
                raise WaitTimeout(raw, timeout, TaskStatus.RUNNING)
            await asyncio.sleep(_LOOK)


def _checkpoint(stored: StoredCheckpoint) -> CheckpointInfo:
    if stored.length > len(stored.value):
        return CheckpointInfo(stored.name, None, stored.length)
    try:
        return CheckpointInfo(stored.name, to_show(stored.value), stored.length)
    except PayloadError:
        return CheckpointInfo(stored.name, None, stored.length)


@reads
def _check_running(task_id: bytes) -> Steps[None]:
    status = yield from one_task.status(task_id)
    if status is not TaskStatus.RUNNING:
        raise IllegalTransition(task_id, "show the stack of", status)


def raw_id(given: TaskId) -> bytes:
    """The 16 bytes of a task's id, however it is given."""
    return given.id.bytes if isinstance(given, TaskHandle) else sought(given)


def raw_ids(given: Iterable[TaskId]) -> Sequence[bytes]:
    """The same for many."""
    return [raw_id(task_id) for task_id in given]


def _verb(named: str) -> Verb:
    try:
        return Verb(named)
    except ValueError:
        raise ConfigError(f"{named!r:.100} is no verb: there are {', '.join(Verb)}") from None
