"""Everything Holdfast raises.

    HoldfastError
    ├── ConfigError             an option, a definition or a setting makes no sense
    ├── PayloadError            arguments cannot be stored or do not fit the signature
    ├── PayloadMismatch         this id was already used for another call
    ├── UnknownTask             no task of this name is registered
    ├── TaskNotFound            no task has this id
    ├── UniqueConflict          a live task holds the unique key
    ├── IllegalTransition       the task's status does not allow this
    │   └── UpstreamEnded       nor how the steps it waits for have ended
    ├── ClaimLost               the claim was taken away; nothing was written
    ├── WaitTimeout             the task has not ended yet
    ├── TaskNotCompleted        the task has ended without a value
    │   ├── TaskFailed
    │   ├── TaskCancelled
    │   ├── TaskExpired
    │   ├── TaskStalled
    │   └── TaskDropped
    └── StoreError              the database refused or could not answer
        ├── UnreadableRow       a row was damaged or not written by Holdfast
        ├── StoreUnavailable    try again; the only retryable error
        └── SchemaMismatch      the database belongs to other code

Owns the classes and their sentences. An error carries its facts as fields, pickles, and
says what happened, to what, and what to do about it. Drivers' exceptions never escape the
store: they become one of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.text import one_line

__all__ = [
    "ClaimLost",
    "ConfigError",
    "HoldfastError",
    "IllegalTransition",
    "PayloadError",
    "PayloadMismatch",
    "SchemaMismatch",
    "StoreError",
    "StoreUnavailable",
    "TaskCancelled",
    "TaskDropped",
    "TaskExpired",
    "TaskFailed",
    "TaskNotCompleted",
    "TaskNotFound",
    "TaskStalled",
    "UniqueConflict",
    "UnknownTask",
    "UnreadableRow",
    "UpstreamEnded",
    "WaitTimeout",
]


class HoldfastError(Exception):
    """The root of all errors that Holdfast raises."""

    retryable: bool = False
    """True when the same call may succeed later, unchanged."""
    call: object | None = None
    """What was being sent when it happened, for `app.resend(error)`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses build their message from fields, so the default (call the class with
        # `args` again) would not fit their signatures.
        return _rebuild, (type(self), self.args, self.__dict__)

    def __repr__(self) -> str:
        fields = "".join(
            f", {name}={value!r}"
            for name, value in self.__dict__.items()
            if value is not None and name != "call"
        )
        return f"{type(self).__name__}({str(self)!r}{fields})"


def _rebuild(
    kind: type[HoldfastError], args: tuple[Any, ...], fields: dict[str, Any]
) -> HoldfastError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def _uuid(value: UUID | bytes) -> UUID:
    return value if isinstance(value, UUID) else UUID(bytes=value)


class ConfigError(HoldfastError):
    """An option, a definition or a setting makes no sense."""

    def __init__(self, message: str, *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


Noun: TypeAlias = Literal["task", "workflow", "step"]
"""What an error is about; the `task_id` of one about a workflow is the workflow's."""
Problem: TypeAlias = Literal["unserialisable", "too_large", "mismatch"]


class PayloadError(HoldfastError):
    """Arguments or a value cannot be stored as JSON, or do not fit the task's signature.

    `path` says where: `args[0]`, `kwargs.order.lines[3].price`. `problem` says which:
    "unserialisable", "too_large", or "mismatch" (with the signature). `place` is which call of a
    `send_many` it was, from 0 on.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        problem: Problem = "unserialisable",
        place: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.problem: Problem = problem
        self.place = place


class PayloadMismatch(HoldfastError):
    """A task, or a workflow, with this id exists, and was sent with another payload or options."""

    def __init__(self, task_id: UUID | bytes, *, noun: Noun = "task") -> None:
        self.task_id = _uuid(task_id)
        another = "another payload" if noun == "task" else "other steps, other arguments"
        super().__init__(
            f"{noun} {self.task_id} exists with {another} or other options: "
            "send under a new id, or repeat exactly the same call"
        )


class UnknownTask(HoldfastError):
    """No task, or workflow, of this name (and version) is registered."""

    def __init__(
        self,
        name: str,
        version: int | None = None,
        *,
        known: Iterable[str] = (),
        kind: Literal["task", "workflow"] = "task",
    ) -> None:
        self.name = name
        self.version = version
        self.known = tuple(sorted(known))
        what = f"{kind} {name!r}" if version is None else f"{kind} {name!r} version {version}"
        others = f"known {kind}s: {', '.join(self.known)}"
        hint = others if self.known else f"no {kind} is registered"
        super().__init__(f"{what} is not registered with this app; {hint}")


class TaskNotFound(HoldfastError):
    """No task, or no workflow, has this id: it was never committed, or its record was deleted.

    `task_id` is what was asked for: a `UUID`, or a text that is none (which no task can have).
    `needed_by` is the task that was to wait for it, where that is how it was missed. `steps`: it
    is the name of a step that was asked for, and these are steps that the workflow has.
    """

    def __init__(
        self,
        task_id: UUID | bytes | str,
        *,
        needed_by: UUID | bytes | None = None,
        noun: Noun = "task",
        steps: Iterable[str] | None = None,
    ) -> None:
        self.task_id = task_id if isinstance(task_id, str) else _uuid(task_id)
        self.needed_by = None if needed_by is None else _uuid(needed_by)
        by = "" if needed_by is None else f", for which task {self.needed_by} was to wait"
        if steps is not None:
            names = ", ".join(steps) or "none"
            message = f"the workflow has no step {task_id!r:.200}: its steps are {names}"
        elif isinstance(task_id, str):
            message = (
                f"no {noun} has the id {task_id!r:.100}: an id is a UUID, such as "
                "'0197f3c2-5b1e-7d44-9a01-3c5e6f708192'"
            )
        else:
            message = (
                f"no {noun} has the id {self.task_id}{by}: it was never committed in this "
                "database, or it was deleted"
            )
        super().__init__(message)


class UniqueConflict(HoldfastError):
    """A live task, or workflow, holds the unique key that this one needs.

    `rival_id` is the task that needs it, where both were to be resubmitted by one call.
    """

    def __init__(
        self,
        task_id: UUID | bytes,
        *,
        name: str,
        key: str | None = None,
        rival_id: UUID | bytes | None = None,
        noun: Noun = "task",
    ) -> None:
        self.task_id = _uuid(task_id)
        self.name = name
        self.key = key
        self.rival_id = None if rival_id is None else _uuid(rival_id)
        of = f" for the key {key!r}" if key is not None else ""
        super().__init__(
            f"{noun} {self.task_id} ({name}) is unique{of} and has not ended: wait for it or "
            "cancel it (a send may also choose another `on_conflict`)"
            if rival_id is None
            else f"tasks {self.task_id} and {self.rival_id} ({name}) are unique{of}: only one of "
            "them can be live, so resubmit only one"
        )


class IllegalTransition(HoldfastError):
    """The verb cannot be applied to a task, or a workflow, in this status."""

    def __init__(
        self,
        task_id: UUID | bytes,
        verb: str,
        status: TaskStatus | WorkflowStatus,
        *,
        noun: str = "task",
        why: str | None = None,
    ) -> None:
        self.task_id = _uuid(task_id)
        self.verb = str(verb)
        self.status = status
        because = f"it is {status.value}" if why is None else why
        super().__init__(f"cannot {self.verb} {noun} {self.task_id}: {because}")


class Blame(NamedTuple):
    """A parent that has ended, and not as a step waits for it."""

    parent_id: UUID
    name: str
    status: TaskStatus
    on: str


class UpstreamEnded(IllegalTransition):
    """A step cannot be resubmitted: its parents have ended, and not as it waits for them.

    `refused` are all the tasks of the call of which that is true; `parent_id` is None where the
    parent has been deleted.
    """

    def __init__(
        self,
        task_id: UUID | bytes,
        status: TaskStatus,
        blame: Blame | None = None,
        *,
        refused: Iterable[UUID | bytes] = (),
    ) -> None:
        super().__init__(task_id, "resubmit", status)
        self.parent_id = None if blame is None else blame.parent_id
        self.refused = tuple(sorted(map(_uuid, refused)))
        self.args = (f"{self.args[0]}, and {_why_never(blame)}",)


def _why_never(blame: Blame | None) -> str:
    if blame is None:
        return "a step it waits for has been deleted: send it anew"
    parent = f"task {blame.parent_id} ({blame.name})"
    if blame.status is TaskStatus.COMPLETED:
        return f"it waits for the {blame.on} of {parent}, which has completed: it is not needed"
    return (
        f"it waits for the {blame.on} of {parent}, which is {blame.status.value}: "
        "resubmit that one first, or both together"
    )


class ClaimLost(HoldfastError):
    """The claim was taken away, so the write was refused and changed nothing."""

    def __init__(self, task_id: UUID | bytes, verb: str) -> None:
        self.task_id = _uuid(task_id)
        self.verb = str(verb)
        super().__init__(
            f"cannot {self.verb} task {self.task_id}: its claim was lost, so another attempt "
            "may be running; stop this one"
        )


class WaitTimeout(HoldfastError):
    """The wait ended before the task, or the workflow, did. That goes on."""

    def __init__(
        self,
        task_id: UUID | bytes,
        timeout: float,
        status: TaskStatus | WorkflowStatus | None = None,
        *,
        noun: Noun = "task",
    ) -> None:
        self.task_id = _uuid(task_id)
        self.timeout = timeout
        self.status = status
        where = f"is {status.value}" if status is not None else "has not ended"
        super().__init__(
            f"{noun} {self.task_id} {where} after {timeout:g} s of waiting: wait again, "
            "or ask `handle.why()`"
        )


class TaskNotCompleted(HoldfastError):
    """The task has ended and there is no value to return.

    `error` is what is known of it: code, message, and type and traceback of the exception.
    """

    _ended = "ended without a value"

    def __init__(
        self,
        task_id: UUID | bytes,
        error: TaskError | None = None,
        *,
        name: str | None = None,
        noun: Noun = "task",
        step: str | None = None,
    ) -> None:
        self.task_id = _uuid(task_id)
        self.name = name
        self.error = error
        self.step = step
        """Of a workflow: the step that ended so."""
        who = f"{noun} {self.task_id}" if name is None else f"{noun} {name} ({self.task_id})"
        at = "" if step is None else f" at step {step!r}"
        because = f": {error}" if error is not None else ""
        super().__init__(f"{who} {self._ended}{at}{because}")

    @property
    def traceback(self) -> str | None:
        """The text of the traceback where the code failed, if it did by an exception."""
        return self.error.traceback if self.error is not None else None


class TaskFailed(TaskNotCompleted):
    """The task's code failed for good."""

    _ended = "failed"


class TaskCancelled(TaskNotCompleted):
    """The task was cancelled."""

    _ended = "was cancelled"


class TaskExpired(TaskNotCompleted):
    """The task was not claimed before its `good_until`."""

    _ended = "expired"


class TaskStalled(TaskNotCompleted):
    """The system interrupted the task, and its policy says not to run it again."""

    _ended = "stalled"


class TaskDropped(TaskNotCompleted):
    """No live worker knew the task's name and version."""

    _ended = "was dropped"


class StoreError(HoldfastError):
    """The database refused, or something in it is not as it must be."""


class UnreadableRow(StoreError):
    """A row was written by hand, by other code, or damaged: it is none that we could have written.

    `table` and `key` name it (the key as it stands in the database), `column` says where it is
    wrong. It is set aside with the code INVALID_ROW, and stops nothing else.
    """

    def __init__(self, table: str, key: object, column: str, reason: str) -> None:
        self.table = table
        self.key = one_line(str(key), 100)
        self.column = column
        self.reason = reason
        super().__init__(
            f"row {self.key} of {table} cannot be read: {column} {reason}; correct or delete it "
            f"(a task's: `holdfast tasks delete --unreadable {self.key}`)"
        )


class StoreUnavailable(StoreError):
    """The database could not be reached or could not serve; the call may be repeated.

    `commit_unknown` is True when the connection was lost while a commit was under way, so
    the write may have landed. Repeating a send with the same id is safe either way.
    `silent` is True when no answer came at all: others may still be served, and may take
    our leases. An answer, even "not now", means that nobody is.
    `conflict` is True when the transaction met another one and was undone: repeating it at
    once is the right answer.
    `locked` is True when the store serves, but a row was held by a transaction that has not
    ended: nothing was written, and whatever does not need that row can go on.
    """

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        commit_unknown: bool = False,
        silent: bool = False,
        conflict: bool = False,
        locked: bool = False,
    ) -> None:
        super().__init__(message)
        self.commit_unknown = commit_unknown
        self.silent = silent
        self.conflict = conflict
        self.locked = locked


class SchemaMismatch(StoreError):
    """The database's schema is missing, foreign, or of other code; nothing was changed."""

    def __init__(
        self, message: str, *, found: int | None = None, expected: int | None = None
    ) -> None:
        super().__init__(message)
        self.found = found
        self.expected = expected
