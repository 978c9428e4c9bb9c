"""A task that was sent, seen from outside.

Owns the public face of one task: reading where it stands, waiting for its end, asking for
its end. Every method that may block has an async twin with the same signature. A handle
caches nothing but the id: what it says is what the database says now.

Owns also what a caller gets of a task that has ended: a value, an error, or the exception that
stands for its status. A stored value that is not of the task's return type is reported by
`outcome` as an error with the code RESULT_UNREADABLE, and raised by `get` as `PayloadError`; the
task itself stays COMPLETED.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar, Unpack, cast
from uuid import UUID

from holdfast.client import one_task
from holdfast.client.access import Access
from holdfast.client.explain import Why, explain
from holdfast.client.info import Attempt, Progress, TaskInfo, error_of
from holdfast.client.one_task import ResubmitOptions, resubmission
from holdfast.client.wait import TASKS, Deadline, adoze, aended, doze, ended
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import (
    PayloadError,
    TaskCancelled,
    TaskDropped,
    TaskExpired,
    TaskFailed,
    TaskNotCompleted,
    TaskStalled,
)
from holdfast.core.payload.codec import from_json, split_array
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import inspect
from holdfast.store.verbs.inspect import Ending

__all__ = ["Decode", "TaskHandle", "decoder_of_list"]

R_co = TypeVar("R_co", covariant=True)

LOOK: Final = 1.0
"""How often `follow` looks for changes that are not an end, in seconds."""
Decode: TypeAlias = Callable[[str], Any]
_seen: Final = attrgetter("status", "attempt", "stage", "progress", "updated_at")
"""What `follow` reports a change of."""
_RAISED: Final[dict[TaskStatus, type[TaskNotCompleted]]] = {
    TaskStatus.FAILED: TaskFailed,
    TaskStatus.CANCELLED: TaskCancelled,
    TaskStatus.EXPIRED: TaskExpired,
    TaskStatus.STALLED: TaskStalled,
    TaskStatus.DROPPED: TaskDropped,
}


class TaskHandle(Generic[R_co]):
    """One task that was sent; `R` is what its code returns.

    handle = add.send(1, 2)
    handle.get(timeout=10)
    """

    __slots__ = ("_access", "_decode", "_id", "created")

    def __init__(
        self,
        access: Access,
        task_id: bytes,
        *,
        created: bool,
        decode: Decode | None,
    ) -> None:
        self._access = access
        self._id = task_id
        self._decode = decode
        self.created = created
        """False if the send met a task that existed: a repeated one, or a unique one."""

    @property
    def id(self) -> UUID:
        """The task's id."""
        return UUID(bytes=self._id)

    def status(self) -> TaskStatus:
        """Where the task stands."""
        return self._access.run(lambda: one_task.status(self._id))

    async def astatus(self) -> TaskStatus:
        """Where the task stands."""
        return await self._access.arun(lambda: one_task.status(self._id))

    def info(self) -> TaskInfo:
        """Everything that is stored about the task."""
        return TaskInfo.of(self._access.run(lambda: one_task.show(self._id)))

    async def ainfo(self) -> TaskInfo:
        """Everything that is stored about the task."""
        return TaskInfo.of(await self._access.arun(lambda: one_task.show(self._id)))

    def attempts(self) -> list[Attempt]:
        """The executions that have ended, in order."""
        return [Attempt.of(a) for a in self._access.run(partial(inspect.attempts, self._id))]

    async def aattempts(self) -> list[Attempt]:
        """The executions that have ended, in order."""
        return [Attempt.of(a) for a in await self._access.arun(partial(inspect.attempts, self._id))]

    def output(self) -> str | None:
        """What the task has yielded so far, if it is a generator."""
        return self._access.run(lambda: one_task.output(self._id))

    async def aoutput(self) -> str | None:
        """What the task has yielded so far, if it is a generator."""
        return await self._access.arun(lambda: one_task.output(self._id))

    def log(self, *, attempt: int | None = None) -> str:
        """What the task has printed and logged, in one attempt or in all."""
        return self._access.run(lambda: one_task.log(self._id, attempt))

    async def alog(self, *, attempt: int | None = None) -> str:
        """What the task has printed and logged, in one attempt or in all."""
        return await self._access.arun(lambda: one_task.log(self._id, attempt))

    def progress(self) -> Progress | None:
        """How far the task says it is."""
        return self.info().progress

    async def aprogress(self) -> Progress | None:
        """How far the task says it is."""
        return (await self.ainfo()).progress

    def why(self) -> Why:
        """Why the task is where it is, in sentences."""
        return self._access.run(lambda: explain(self._id))

    async def awhy(self) -> Why:
        """Why the task is where it is, in sentences."""
        return await self._access.arun(lambda: explain(self._id))

    def wait(self, timeout: float | None = None) -> TaskStatus:
        """Sleep until the task has ended, and say how; `WaitTimeout` after `timeout` seconds."""
        return self._ended(timeout).status

    async def await_(self, timeout: float | None = None) -> TaskStatus:
        """Sleep until the task has ended, and say how; `WaitTimeout` after `timeout` seconds."""
        return (await self._aended(timeout)).status

    def get(self, timeout: float | None = None) -> R_co:
        """Wait for the task's value; raises `TaskFailed`, `TaskCancelled`, … if there is none."""
        ending = self._with_value(self._ended(timeout))
        return cast("R_co", _value_of(self._id, ending, self._decode))

    async def aget(self, timeout: float | None = None) -> R_co:
        """Wait for the task's value; raises `TaskFailed`, `TaskCancelled`, … if there is none."""
        ending = await self._awith_value(await self._aended(timeout))
        return cast("R_co", _value_of(self._id, ending, self._decode))

    def outcome(self, timeout: float | None = None) -> TaskResult[R_co, TaskError]:
        """Wait for the task's value or error; never raises for the task's own failure."""
        return _outcome_of(self._with_value(self._ended(timeout)), self._decode)

    async def aoutcome(self, timeout: float | None = None) -> TaskResult[R_co, TaskError]:
        """Wait for the task's value or error; never raises for the task's own failure."""
        ending = await self._awith_value(await self._aended(timeout))
        return _outcome_of(ending, self._decode)

    def follow(self, timeout: float | None = None) -> Iterator[TaskInfo]:
        """The task now and after every change that can be seen, until it has ended."""
        last: TaskInfo | None = None
        deadline = Deadline(timeout)
        while True:
            info = self.info()
            if last is None or _seen(info) != _seen(last):
                last = info
                yield info
            if info.status.is_terminal:
                return
            if deadline.has_passed:
                raise deadline.error(self._id, info.status, TASKS)
            doze(self._access, self._id, deadline.within(LOOK), TASKS)

    async def afollow(self, timeout: float | None = None) -> AsyncIterator[TaskInfo]:
        """The task now and after every change that can be seen, until it has ended."""
        last: TaskInfo | None = None
        deadline = Deadline(timeout)
        while True:
            info = await self.ainfo()
            if last is None or _seen(info) != _seen(last):
                last = info
                yield info
            if info.status.is_terminal:
                return
            if deadline.has_passed:
                raise deadline.error(self._id, info.status, TASKS)
            await adoze(self._access, self._id, deadline.within(LOOK), TASKS)

    def cancel(self) -> TaskStatus:
        """Cancel the task; the status it has then.

        CANCELLED: it will never run (again). RUNNING: its worker has been asked to end it.
        Another status: it had ended before.
        """
        return self._access.run(lambda: one_task.cancel(self._id))

    async def acancel(self) -> TaskStatus:
        """Cancel the task; the status it has then."""
        return await self._access.arun(lambda: one_task.cancel(self._id))

    def resubmit(self, **options: Unpack[ResubmitOptions]) -> TaskStatus:
        """Let a task that ended without a value run again; the status it has then.

        Its attempts and log are kept. `keep_retries` leaves the counts of retries and crashes
        as they are, `fresh` forgets its checkpoints.
        """
        again = resubmission(**options)
        return self._access.run(lambda: one_task.resubmit(self._id, again))

    async def aresubmit(self, **options: Unpack[ResubmitOptions]) -> TaskStatus:
        """Let a task that ended without a value run again; the status it has then."""
        again = resubmission(**options)
        return await self._access.arun(lambda: one_task.resubmit(self._id, again))

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aget().__await__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskHandle):
            return NotImplemented
        return self._id == other._id and self._access is other._access

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<TaskHandle {self.id}>"

    def _ended(self, timeout: float | None) -> Ending:
        ((_, ending),) = ended(self._access, [self._id], timeout, TASKS)
        return ending

    async def _aended(self, timeout: float | None) -> Ending:
        ((_, ending),) = [news async for news in aended(self._access, [self._id], timeout, TASKS)]
        return ending

    def _with_value(self, ending: Ending) -> Ending:
        if not _left_its_value(ending):
            return ending
        result = self._access.run_own(partial(one_task.value_of_step, self._id))
        return ending._replace(result=result)

    async def _awith_value(self, ending: Ending) -> Ending:
        if not _left_its_value(ending):
            return ending
        result = await self._access.arun_own(partial(one_task.value_of_step, self._id))
        return ending._replace(result=result)


def decoder_of_list(decode: Decode) -> Decode:
    """Reads a list, given what reads one item of it."""
    return lambda text: [decode(bytes(item).decode()) for item in split_array(text)]


def _left_its_value(ending: Ending) -> bool:
    """Whether the value is that of the steps that it added."""
    return bool(ending.handed_over) and ending.status is TaskStatus.COMPLETED


def _value_of(task_id: bytes, ending: Ending, decode: Decode | None) -> Any:
    """The value of a task that completed; raises what happened instead."""
    if ending.status is TaskStatus.COMPLETED:
        return _value(ending, decode)
    raise _RAISED[ending.status](task_id, _error(ending), name=ending.task_name)


def _outcome_of(ending: Ending, decode: Decode | None) -> TaskResult[Any, TaskError]:
    """The value or the error of a task that has ended."""
    if ending.status is not TaskStatus.COMPLETED:
        return TaskResult(err=_error(ending))
    try:
        return TaskResult(ok=_value(ending, decode))
    except PayloadError as error:
        return TaskResult(err=TaskError.ours(ErrorCode.RESULT_UNREADABLE, str(error)))


def _value(ending: Ending, decode: Decode | None) -> Any:
    if ending.result is None:
        return None
    return (decode or from_json)(ending.result)


def _error(ending: Ending) -> TaskError:
    stored = error_of(ending.result)
    if stored is not None:
        return stored
    code = ending.error_code or ErrorCode.RESULT_UNREADABLE
    return TaskError.stored(code, ending.failed_reason or "", None, None, None, ())
