"""The values that cross between layers: what is sent, what is claimed, what is read.

Owns their shapes and nothing else. All are frozen. Times are integer microseconds
since 1970 UTC and ids are 16 bytes, as everywhere below the public API; `client`
turns them into `datetime` and `UUID` at the edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from holdfast.core.status import AttemptOutcome, TaskStatus

OnConflict: TypeAlias = Literal["return", "replace", "debounce", "raise"]
On: TypeAlias = Literal["success", "failure", "always"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency: the task that holds it waits for `parent_id`."""

    parent_id: bytes
    on: On = "success"


class Submission(NamedTuple):
    """One task to submit, complete and already checked."""

    id: bytes
    task_name: str
    version: int
    queue_name: str
    priority: int
    args: str
    kwargs: str
    enqueue_sha: str
    sent_at: int
    task_options: str | None = None
    tags: str | None = None
    delay_us: int | None = None
    """Held this long from now, by the database's clock."""
    run_at: int | None = None
    good_until: int | None = None
    good_for_us: int | None = None
    max_retries: int = 0
    unique_key: str | None = None
    unique_slot: str | None = None
    """Of a task that is unique for a period: without the period, which the database puts before."""
    unique_until: Literal["started", "deleted"] | None = None
    """When the slot is free again; None: when the task has ended."""
    unique_period_us: int | None = None
    on_conflict: OnConflict = "return"
    workflow_id: bytes | None = None
    depends_on: Sequence[Edge] = ()
    deps_needed: int | None = None
    """How many edges must be satisfied; None means all."""
    parent_id: bytes | None = None
    root_id: bytes | None = None
    schedule_name: str | None = None
    schedule_tick: int | None = None
    trace_context: str | None = None
    concurrency_key: str | None = None
    is_routable: bool = False
    """Whether routes choose its queue: the sender has not."""


class SubmitAnswer(StrEnum):
    """What became of one submission."""

    CREATED = "created"
    EXISTING = "existing"
    """A repeated send, or the live holder of the unique key."""
    REPLACED = "replaced"
    DEBOUNCED = "debounced"
    MISMATCH = "mismatch"
    """The id exists with another payload."""
    CONFLICT = "conflict"
    """The unique key is held and the caller asked to be told."""
    AGAIN = "again"
    """The holder of the unique key ended in between: submit once more."""


class Submitted(NamedTuple):
    """The answer to one submission: which task there is now, and why."""

    id: bytes
    answer: SubmitAnswer


class ClaimedTask(Struct, frozen=True, gc=False):
    """One task of a claim, with all that running it and deciding about it needs.

    A worker makes thousands of these a second; a struct is made in C, in a third of the time.
    """

    key: bytes | int
    id: bytes
    task_name: str
    version: int
    queue_name: str
    priority: int
    enqueued_at: int
    args: str
    kwargs: str
    task_options: str | None
    attempt: int
    retry_count: int
    max_retries: int
    crash_count: int
    good_until: int | None
    schedule_tick: int | None
    parent_id: bytes | None
    root_id: bytes | None
    workflow_id: bytes | None
    trace_context: str | None
    scope_id: bytes | None
    """Of a workflow's step: what its number is counted in."""
    inputs: str | None
    """Which of its arguments other steps give."""
    token: bytes


class Position(NamedTuple):
    """A place in a queue's order: priority, then age, then id. Compares in that order."""

    priority: int = 0
    enqueued_at: int = 0
    id: bytes = bytes(16)


HEAD = Position()


class Refused(NamedTuple):
    """A claimed task whose row cannot be read, so that nobody can run it."""

    key: bytes | int
    reason: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The tasks of one claim, in queue order, under one token."""

    token: bytes
    tasks: Sequence[ClaimedTask]
    refused: Sequence[Refused] = ()

    @property
    def last(self) -> Position | None:
        """Where the claim ended; the next one may start after it."""
        if not self.tasks:
            return None
        task = self.tasks[-1]
        return Position(task.priority, task.enqueued_at, task.id)


class Answer(StrEnum):
    """What a fenced write met."""

    LANDED = "landed"
    CANCELLED = "cancelled"
    """It landed, and a cancel that had been requested turned it into CANCELLED."""
    LOST = "lost"
    """The claim was no longer ours; nothing was written."""
    BUSY = "busy"
    """Another transaction holds the row; nothing was written, try again."""


class Landing(NamedTuple):
    """The answer to one fenced write, with the state it led to."""

    answer: Answer
    status: TaskStatus | None = None
    attempt: int | None = None
    at: int | None = None
    """When, by the database's clock, where the verb says so."""


LOST = Landing(Answer.LOST)
BUSY = Landing(Answer.BUSY)


class Usage(Struct, frozen=True, gc=False):
    """What one attempt cost."""

    peak_memory_kb: int | None = None
    cpu_time_us: int | None = None


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """Every column of a task, as stored."""

    id: bytes
    task_name: str
    version: int
    queue_name: str
    priority: int
    status: TaskStatus
    args: str
    kwargs: str
    task_options: str | None
    tags: str | None
    enqueue_sha: str
    sent_at: int
    created_at: int
    updated_at: int
    enqueued_at: int
    run_at: int | None
    due_at: int | None
    good_until: int | None
    good_for_us: int | None
    expire_at: int | None
    claim_token: bytes | None
    claimed_at: int | None
    claimed_by_worker_id: str | None
    started_at: int | None
    first_started_at: int | None
    retried_at: int | None
    heartbeat_at: int | None
    cancel_requested_at: int | None
    worker_pid: int | None
    worker_hostname: str | None
    worker_process_name: str | None
    attempt: int
    retry_count: int
    max_retries: int
    crash_count: int
    next_retry_at: int | None
    finished_at: int | None
    completed_at: int | None
    failed_at: int | None
    result: str | None
    error_code: str | None
    failed_reason: str | None
    dead: bool
    progress: str | None
    stage: str | None
    stage_meta: str | None
    output: str | None
    unique_key: str | None
    unique_slot: str | None
    unique_until: str | None
    concurrency_key: str | None
    workflow_id: bytes | None
    deps_needed: int
    deps_open: int
    parent_id: bytes | None
    root_id: bytes | None
    schedule_name: str | None
    schedule_tick: int | None
    trace_context: str | None
    scope_id: bytes | None = None
    """Of a workflow's step: what its number is counted in."""
    step_number: int | None = None
    step_name: str | None = None
    inputs: str | None = None
    """Which of its arguments other steps give."""
    handed_over: bool = False
    """Its code has run, and it waits for the steps that it added."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One execution that has ended."""

    task_id: bytes
    attempt: int
    outcome: AttemptOutcome
    will_retry: bool
    claim_token: bytes
    started_at: int
    finished_at: int
    error_code: str | None
    error_message: str | None
    failed_reason: str | None
    error: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    exit_code: int | None
    exit_signal: int | None
    peak_memory_kb: int | None
    cpu_time_us: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker as it registered, and when it was last seen."""

    worker_id: str
    hostname: str
    pid: int
    version: str
    started_at: int
    seen_at: int
    stopped_at: int | None
    lease_us: int
    queues: str
    known: str
    settings: str
    command: str | None = None
    children: str | None = None

    def is_alive(self, now: int) -> bool:
        """Whether it has not stopped, and its lease has not passed since it was last seen."""
        return self.stopped_at is None and self.seen_at + self.lease_us > now


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One snapshot of a worker: the time series behind the charts."""

    worker_id: str
    hostname: str
    pid: int
    processes: int
    queues: str
    tasks_running: int
    tasks_claimed: int
    worker_started_at: int
    memory_usage_mb: float | None = None
    memory_percent: float | None = None
    cpu_percent: float | None = None
    max_claim_batch: int | None = None
    max_claim_per_worker: int | None = None
    cluster_wide_cap: int | None = None
    queue_priorities: str | None = None
    queue_max_concurrency: str | None = None
    recovery_config: str | None = None
    snapshot_at: int = 0


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A queue: whether it is paused, and how much waits in it."""

    queue_name: str
    paused_at: int | None
    paused_by: str | None
    pending: int
    oldest_enqueued_at: int | None
    scheduled: int = 0


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a list shows; None means any."""

    status: frozenset[TaskStatus] = field(default_factory=frozenset)
    queue_name: str | None = None
    task_name: str | None = None
    tag: str | None = None
    worker_id: str | None = None
    error_code: str | None = None
    exception: str | None = None
    """The name of an exception's class; what failed so has the code UNHANDLED_EXCEPTION."""
    workflow_id: bytes | None = None
    parent_id: bytes | None = None
    """Sent by this task."""
    created_from: int | None = None
    created_until: int | None = None
    dead: bool | None = None
    text: str | None = None
    """Part of an id, a name or a key, in any case of the letters A to Z."""


@dataclass(frozen=True, slots=True)
class DeadLetterFilter(TaskFilter):
    """Which dead letters are meant; None means any. `text` may also be a part of the reason."""

    version: int | None = None
    ended_from: int | None = None
    ended_until: int | None = None
