"""The state machine of a task, declared once, as data.

Owns every legal transition: which verb leads from which status to which, who may do it,
under what guard, and what it writes. The SQL of the store is checked against this table,
and the documentation is drawn from it. It decides nothing about a single task (that is
`core.decide`) and touches no database.

Rules that hold for every verb:

*   A fenced verb acts on behalf of a claim: it matches id, status and claim token, and a
    writer whose token is no longer on the row changes nothing.
*   Cancel beats another run. Once a cancel is requested, every verb in `CANCEL_REDIRECTS`
    leads to CANCELLED instead of its own target. `complete` is not among them: work done
    is not denied.
*   Whoever starts a task adds 1 to `attempt`; whichever verb ends that start writes the
    attempt row with the outcome named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from holdfast.core.status import TASK_TERMINAL_STATES, AttemptOutcome, TaskStatus

__all__ = [
    "CANCEL_REDIRECTS",
    "TRANSITIONS",
    "Transition",
    "Verb",
    "edges",
    "legal",
    "targets",
    "verbs_from",
]


class Verb(StrEnum):
    """What can be done to a task. One spelling everywhere: SQL file, event, CLI, URL."""

    SUBMIT = "submit"
    PROMOTE = "promote"
    RESCHEDULE = "reschedule"
    REPLACE = "replace"
    UNBLOCK = "unblock"
    SKIP = "skip"
    HOLD = "hold"
    CLAIM = "claim"
    START = "start"
    RELEASE = "release"
    COMPLETE = "complete"
    HAND_OVER = "hand_over"
    SETTLE = "settle"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    INTERRUPT = "interrupt"
    STALL = "stall"
    RECOVER = "recover"
    CANCEL = "cancel"
    REQUEST_CANCEL = "request_cancel"
    ACK_CANCEL = "ack_cancel"
    EXPIRE = "expire"
    DROP = "drop"
    RESUBMIT = "resubmit"
    DELETE = "delete"
    PRUNE = "prune"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One row of the table: everything that is true of a verb."""

    verb: Verb
    sources: tuple[TaskStatus, ...]
    """Statuses it may leave; empty when the task does not exist yet."""
    targets: tuple[TaskStatus, ...]
    """Statuses it may lead to by itself; empty when the task ceases to exist."""
    actor: str
    guard: str
    writes: str
    fenced: bool = False
    """True when the write must match the claim token."""
    keeps_status: bool = False
    """True when it leaves the status as it was."""
    attempt: AttemptOutcome | None = None
    """The outcome it writes in the attempt row, if it ends a start."""


WAITING, SCHEDULED, PENDING = TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING
CLAIMED, RUNNING = TaskStatus.CLAIMED, TaskStatus.RUNNING
COMPLETED, FAILED, CANCELLED = TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED
EXPIRED, STALLED, DROPPED = TaskStatus.EXPIRED, TaskStatus.STALLED, TaskStatus.DROPPED

_TERMINAL = tuple(status for status in TaskStatus if status in TASK_TERMINAL_STATES)

_TABLE: tuple[Transition, ...] = (
    Transition(
        verb=Verb.SUBMIT,
        sources=(),
        targets=(PENDING, SCHEDULED, WAITING),
        actor="client, schedule, workflow",
        guard="id is new; unique slot is free",
        writes="all send fields",
    ),
    Transition(
        verb=Verb.PROMOTE,
        sources=(SCHEDULED,),
        targets=(PENDING,),
        actor="worker when `run_at` ≤ now; operator at once",
        guard="status",
        writes="–",
    ),
    Transition(
        verb=Verb.RESCHEDULE,
        sources=(PENDING, SCHEDULED),
        targets=(PENDING, SCHEDULED),
        actor="operator; unique `debounce`",
        guard="status; `debounce`: `attempt` = 0",
        writes="`run_at`, `enqueued_at`, queue, priority; `debounce` also `good_until`",
    ),
    Transition(
        verb=Verb.REPLACE,
        sources=(PENDING, SCHEDULED),
        targets=(PENDING, SCHEDULED),
        actor="unique `replace`",
        guard="status; `attempt` = 0",
        writes="payload with its version, options",
        keeps_status=True,
    ),
    Transition(
        verb=Verb.UNBLOCK,
        sources=(WAITING,),
        targets=(PENDING, SCHEDULED),
        actor="the parent's ending; workflow resume",
        guard="no dependency needed any more",
        writes="`enqueued_at`, `good_until` from `good_for`",
    ),
    Transition(
        verb=Verb.SKIP,
        sources=(WAITING,),
        targets=(CANCELLED,),
        actor="the parent's ending",
        guard="more dependencies needed than open",
        writes="UPSTREAM_FAILED, UPSTREAM_CANCELLED or UPSTREAM_SUCCEEDED; cascades",
    ),
    Transition(
        verb=Verb.HOLD,
        sources=(PENDING, SCHEDULED),
        targets=(WAITING,),
        actor="workflow pause",
        guard="status",
        writes="one more dependency, which resume resolves",
    ),
    Transition(
        verb=Verb.CLAIM,
        sources=(PENDING,),
        targets=(CLAIMED,),
        actor="worker",
        guard=(
            "not locked; `good_until` not passed; name and version known; queue not paused; limits"
        ),
        writes="token, lease row, `claimed_at`, `claimed_by_worker_id`",
    ),
    Transition(
        verb=Verb.START,
        sources=(CLAIMED,),
        targets=(RUNNING,),
        actor="worker",
        guard="token",
        writes=(
            "`attempt` + 1, `started_at`, `heartbeat_at`, `worker_pid`, "
            "`worker_hostname`, `worker_process_name`"
        ),
        fenced=True,
    ),
    Transition(
        verb=Verb.RELEASE,
        sources=(CLAIMED,),
        targets=(PENDING,),
        actor="worker; reaper",
        guard="token; the reaper: its lease row locked and expired",
        writes="clears `claimed_at`, `claimed_by_worker_id`; no cost",
        fenced=True,
    ),
    Transition(
        verb=Verb.COMPLETE,
        sources=(RUNNING,),
        targets=(COMPLETED,),
        actor="worker, or the code itself (`complete_in`)",
        guard="token",
        writes="`result`",
        fenced=True,
        attempt=AttemptOutcome.COMPLETED,
    ),
    Transition(
        verb=Verb.HAND_OVER,
        sources=(RUNNING,),
        targets=(WAITING,),
        actor="worker, asked by the code of a workflow's step",
        guard="token; a workflow that winds down cancels it",
        writes="`handed_over`, and the steps that it adds",
        fenced=True,
        attempt=AttemptOutcome.COMPLETED,
    ),
    Transition(
        verb=Verb.SETTLE,
        sources=(WAITING,),
        targets=(COMPLETED, FAILED, CANCELLED),
        actor="the last of the steps that it added",
        guard="handed over; nothing that it added is open",
        writes="the first error; its value is read from what it added",
    ),
    Transition(
        verb=Verb.FAIL,
        sources=(RUNNING,),
        targets=(FAILED,),
        actor="worker",
        guard="token",
        writes="the error",
        fenced=True,
        attempt=AttemptOutcome.FAILED,
    ),
    Transition(
        verb=Verb.RETRY,
        sources=(RUNNING,),
        targets=(SCHEDULED, PENDING),
        actor="worker",
        guard=(
            "token; retries left; `next_retry_at` before `good_until` "
            "(else *fail* with the same error)"
        ),
        writes="`retry_count` + 1, `next_retry_at`, `will_retry`; PENDING when it has no delay",
        fenced=True,
        attempt=AttemptOutcome.FAILED,
    ),
    Transition(
        verb=Verb.SNOOZE,
        sources=(RUNNING,),
        targets=(SCHEDULED,),
        actor="worker, asked by the code",
        guard="token",
        writes="`run_at`; no retry spent",
        fenced=True,
        attempt=AttemptOutcome.SNOOZED,
    ),
    Transition(
        verb=Verb.INTERRUPT,
        sources=(RUNNING,),
        targets=(PENDING,),
        actor=("worker: shutdown with `resubmit`; or the child ended before this task began"),
        guard="token; not at-most-once once begun",
        writes="no retry, no crash spent",
        fenced=True,
        attempt=AttemptOutcome.INTERRUPTED,
    ),
    Transition(
        verb=Verb.STALL,
        sources=(RUNNING,),
        targets=(STALLED,),
        actor="worker: shutdown with `stop`; heartbeat silent",
        guard="token",
        writes="TASK_STALLED",
        fenced=True,
        attempt=AttemptOutcome.STALLED,
    ),
    Transition(
        verb=Verb.RECOVER,
        sources=(RUNNING,),
        targets=(PENDING, SCHEDULED, FAILED, STALLED),
        actor="the worker whose child died; reaper",
        guard="token; the reaper: its lease row locked and expired",
        writes=(
            '`crash_count` + 1; `on_crash="stall"` → STALLED; `crash_count` = `max_crashes` → '
            "FAILED with WORKER_CRASHED; first crash → PENDING; later → SCHEDULED after the "
            "retry delay or 1 s × 2ⁿ ≤ 60 s"
        ),
        fenced=True,
        attempt=AttemptOutcome.WORKER_FAILURE,
    ),
    Transition(
        verb=Verb.CANCEL,
        sources=(WAITING, SCHEDULED, PENDING, CLAIMED),
        targets=(CANCELLED,),
        actor="operator, workflow policy",
        guard="status",
        writes="TASK_CANCELLED",
    ),
    Transition(
        verb=Verb.REQUEST_CANCEL,
        sources=(RUNNING,),
        targets=(RUNNING,),
        actor="operator, workflow policy",
        guard="status",
        writes="`cancel_requested_at`, if null",
        keeps_status=True,
    ),
    Transition(
        verb=Verb.ACK_CANCEL,
        sources=(RUNNING,),
        targets=(CANCELLED,),
        actor="worker",
        guard="token; cancel requested",
        writes="TASK_CANCELLED",
        fenced=True,
        attempt=AttemptOutcome.CANCELLED,
    ),
    Transition(
        verb=Verb.EXPIRE,
        sources=(WAITING, SCHEDULED, PENDING),
        targets=(EXPIRED,),
        actor="any worker",
        guard="`good_until` passed",
        writes="TASK_EXPIRED; earlier attempts stay",
    ),
    Transition(
        verb=Verb.DROP,
        sources=(PENDING,),
        targets=(DROPPED,),
        actor="any worker",
        guard="name and version known to no live worker since `drop_unknown_after`",
        writes="TASK_DROPPED",
    ),
    Transition(
        verb=Verb.RESUBMIT,
        sources=(FAILED, CANCELLED, EXPIRED, STALLED, DROPPED),
        targets=(PENDING, SCHEDULED, WAITING),
        actor="operator",
        guard=(
            "status; unique slot free, else `UniqueConflict`; "
            "a step's parents can still give what it needs, else `UpstreamEnded`"
        ),
        writes=(
            "clears the ending; `retry_count` and `crash_count` to 0; "
            "keeps `attempt`, attempt rows, log and checkpoints"
        ),
    ),
    Transition(
        verb=Verb.DELETE,
        sources=_TERMINAL,
        targets=(),
        actor="operator",
        guard="status; not a step of a workflow",
        writes="–",
    ),
    Transition(
        verb=Verb.PRUNE,
        sources=_TERMINAL,
        targets=(),
        actor="any worker",
        guard="retention passed; not dead (own retention); not a step of a workflow",
        writes="–",
    ),
)

TRANSITIONS: Mapping[Verb, Transition] = MappingProxyType({row.verb: row for row in _TABLE})
"""The table, in its documented order."""

CANCEL_REDIRECTS: frozenset[Verb] = frozenset(
    {Verb.RETRY, Verb.SNOOZE, Verb.INTERRUPT, Verb.RECOVER, Verb.FAIL, Verb.STALL, Verb.HAND_OVER}
)
"""Verbs that lead to CANCELLED instead when a cancel was requested."""


def legal(verb: Verb, status: TaskStatus | None) -> bool:
    """Whether `verb` may be applied to a task in `status` (None: no such task yet)."""
    sources = TRANSITIONS[verb].sources
    return not sources if status is None else status in sources


def verbs_from(status: TaskStatus | None) -> tuple[Verb, ...]:
    """The verbs that may be applied to a task in `status`, in the order of the table."""
    return tuple(verb for verb in Verb if legal(verb, status))


def targets(
    verb: Verb, status: TaskStatus | None, *, cancel_requested: bool = False
) -> tuple[TaskStatus, ...]:
    """Where `verb` may lead a task in `status`; empty if illegal, or if the task is removed."""
    if not legal(verb, status):
        return ()
    row = TRANSITIONS[verb]
    if row.keeps_status and status is not None:
        return (status,)
    if cancel_requested and verb in CANCEL_REDIRECTS:
        return (CANCELLED,)
    return row.targets


def edges(
    verbs: Iterable[Verb] = Verb,
) -> Iterator[tuple[TaskStatus | None, TaskStatus | None, Verb]]:
    """Every (from, to, verb) of the graph, also to CANCELLED; None is "no task"."""
    for verb in verbs:
        row = TRANSITIONS[verb]
        for source in row.sources or (None,):
            reached = targets(verb, source)
            if verb in CANCEL_REDIRECTS:
                reached = (*reached, CANCELLED)
            for target in reached or (None,):
                yield source, target, verb
