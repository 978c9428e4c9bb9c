"""What a user sees of a task and of its attempts: frozen, in the user's own types.

Owns the translation of records into datetimes, UUIDs and decoded JSON. Asks nobody
anything: a `TaskInfo` is how the task stood when it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

from holdfast.core.errors import PayloadError, UnreadableRow
from holdfast.core.moment import from_us
from holdfast.core.options.unique import key_of
from holdfast.core.payload.codec import from_json, to_show
from holdfast.core.payload.failure import decode_error
from holdfast.core.records import AttemptRecord, TaskRecord
from holdfast.core.result import TaskError
from holdfast.core.status import AttemptOutcome, TaskStatus, celery_state

__all__ = ["Attempt", "Heartbeat", "Listing", "Progress", "TaskInfo"]

T = TypeVar("T")


class Listing(list[T]):
    """A list of what could be read, with the rows beside it that could not."""

    def __init__(self, found: Iterable[T], unreadable: Sequence[UnreadableRow]) -> None:
        super().__init__(found)
        self.unreadable = unreadable


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last sign of life of whoever holds a task.

    `role` is "claimer" from the claim to the start (the claim itself is the sign) and
    "runner" from then on; the worker's lease covers both. `host` and `pid` are those of the
    process that runs the code, known from the start on.
    """

    role: Literal["claimer", "runner"]
    at: datetime
    worker_id: str | None
    host: str | None
    pid: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task says it is."""

    done: float
    total: float | None = None
    message: str | None = None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1, or None when the total is not known."""
        if not self.total:
            return None
        return min(1.0, max(0.0, self.done / self.total))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Everything that is stored about a task, as it was when it was read."""

    id: UUID
    name: str
    version: int
    queue: str
    priority: int
    status: TaskStatus
    args: list[Any]
    """As plain data, and each `Secret` as `"***"`; so, too, in `kwargs`, `result` and `meta`."""
    kwargs: dict[str, Any]
    options: dict[str, Any]
    """What its policy changes of the defaults: retry, timeout, on_crash, …"""
    tags: tuple[str, ...]

    sent_at: datetime
    """When it was sent, by the sender's clock; all other times are the database's."""
    submitted_at: datetime
    updated_at: datetime
    enqueued_at: datetime
    """From when on it may be claimed: its place among tasks of equal priority."""
    run_at: datetime | None
    good_until: datetime | None

    claimed_at: datetime | None
    claimed_by_worker_id: str | None
    started_at: datetime | None
    first_started_at: datetime | None
    retried_at: datetime | None
    last_heartbeat: Heartbeat | None
    cancel_requested_at: datetime | None
    worker_pid: int | None
    worker_hostname: str | None
    worker_process_name: str | None

    attempt: int
    """How often it has been started."""
    retry_count: int
    max_retries: int
    crash_count: int
    next_retry_at: datetime | None

    finished_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    result: Any
    """The stored value of a COMPLETED task, as plain JSON data; `TaskHandle.get` has its type."""
    error: TaskError | None
    error_code: str | None
    failed_reason: str | None
    dead: bool
    """Listed among the dead letters."""

    progress: Progress | None
    stage: str | None
    meta: Any
    """What the task attached to its stage."""
    output: str | None

    unique_key: str | None
    """The key it was sent with, or a hash of its arguments where they are the key."""
    concurrency_key: str | None
    workflow_id: UUID | None
    parent_id: UUID | None
    root_id: UUID | None
    waits_for: int
    """How many more dependencies it needs before it can run."""
    handed_over: bool
    """WAITING, but its code has run: it is a step that ends with the steps that it added."""
    schedule_name: str | None
    schedule_tick: datetime | None
    trace_context: str | None

    @property
    def celery_state(self) -> str:
        """Celery's name for where it stands."""
        return celery_state(
            self.status,
            attempt=self.attempt,
            stage=self.stage,
            handed_over=self.handed_over,
        )

    @classmethod
    def of(cls, record: TaskRecord) -> TaskInfo:
        """The public view of a record."""
        ended = record.status.is_terminal
        completed = record.status is TaskStatus.COMPLETED
        held = record.unique_key
        return cls(
            id=UUID(bytes=record.id),
            name=record.task_name,
            version=record.version,
            queue=record.queue_name,
            priority=record.priority,
            status=record.status,
            args=to_show(record.args),
            kwargs=to_show(record.kwargs),
            options=from_json(record.task_options) if record.task_options else {},
            tags=tuple(from_json(record.tags)) if record.tags else (),
            sent_at=from_us(record.sent_at),
            submitted_at=from_us(record.created_at),
            updated_at=from_us(record.updated_at),
            enqueued_at=from_us(record.enqueued_at),
            run_at=_moment(record.run_at),
            good_until=_moment(record.good_until),
            claimed_at=_moment(record.claimed_at),
            claimed_by_worker_id=record.claimed_by_worker_id,
            started_at=_moment(record.started_at),
            first_started_at=_moment(record.first_started_at),
            retried_at=_moment(record.retried_at),
            last_heartbeat=_heartbeat(record),
            cancel_requested_at=_moment(record.cancel_requested_at),
            worker_pid=record.worker_pid,
            worker_hostname=record.worker_hostname,
            worker_process_name=record.worker_process_name,
            attempt=record.attempt,
            retry_count=record.retry_count,
            max_retries=record.max_retries,
            crash_count=record.crash_count,
            next_retry_at=_moment(record.next_retry_at),
            finished_at=_moment(record.finished_at),
            completed_at=_moment(record.completed_at),
            failed_at=_moment(record.failed_at),
            result=to_show(record.result) if completed and record.result else None,
            error=error_of(record.result) if ended and not completed else None,
            error_code=record.error_code,
            failed_reason=record.failed_reason,
            dead=record.dead,
            progress=progress_of(record.progress),
            stage=record.stage,
            meta=to_show(record.stage_meta) if record.stage_meta else None,
            output=record.output,
            unique_key=None if held is None else key_of(record.task_name, held),
            concurrency_key=record.concurrency_key,
            workflow_id=_uuid(record.workflow_id),
            parent_id=_uuid(record.parent_id),
            root_id=_uuid(record.root_id),
            waits_for=record.deps_needed,
            handed_over=record.handed_over,
            schedule_name=record.schedule_name,
            schedule_tick=_moment(record.schedule_tick),
            trace_context=record.trace_context,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a task that has ended."""

    number: int
    outcome: AttemptOutcome
    will_retry: bool
    started_at: datetime
    finished_at: datetime
    error: TaskError | None
    error_code: str | None
    failed_reason: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    exit_code: int | None
    exit_signal: int | None
    peak_memory_kb: int | None
    cpu_time: timedelta | None

    @property
    def duration(self) -> timedelta:
        """How long it ran."""
        return self.finished_at - self.started_at

    @classmethod
    def of(cls, record: AttemptRecord) -> Attempt:
        """The public view of a record."""
        cpu = record.cpu_time_us
        return cls(
            number=record.attempt,
            outcome=record.outcome,
            will_retry=record.will_retry,
            started_at=from_us(record.started_at),
            finished_at=from_us(record.finished_at),
            error=error_of(record.error),
            error_code=record.error_code,
            failed_reason=record.failed_reason,
            worker_id=record.worker_id,
            worker_hostname=record.worker_hostname,
            worker_pid=record.worker_pid,
            worker_process_name=record.worker_process_name,
            exit_code=record.exit_code,
            exit_signal=record.exit_signal,
            peak_memory_kb=record.peak_memory_kb,
            cpu_time=None if cpu is None else timedelta(microseconds=cpu),
        )


def error_of(text: str | None) -> TaskError | None:
    """A stored error; None where there is none, or none that can be read."""
    if not text:
        return None
    try:
        return decode_error(text)
    except PayloadError:
        return None


def progress_of(text: str | None) -> Progress | None:
    """A stored progress, `{"done": 3, "total": 10, "message": "resizing"}`."""
    plain = from_json(text) if text else None
    if not isinstance(plain, Mapping) or not isinstance(plain.get("done"), int | float):
        return None
    total, message = plain.get("total"), plain.get("message")
    return Progress(
        plain["done"],
        total if isinstance(total, int | float) else None,
        message if isinstance(message, str) else None,
    )


def _moment(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def _uuid(raw: bytes | None) -> UUID | None:
    return None if raw is None else UUID(bytes=raw)


def _heartbeat(record: TaskRecord) -> Heartbeat | None:
    if record.status is TaskStatus.CLAIMED and record.claimed_at is not None:
        return Heartbeat(
            "claimer", from_us(record.claimed_at), record.claimed_by_worker_id, None, None
        )
    if record.heartbeat_at is None:
        return None
    return Heartbeat(
        "runner",
        from_us(record.heartbeat_at),
        record.claimed_by_worker_id,
        record.worker_hostname,
        record.worker_pid,
    )
