"""What happens to a task next, if nobody does anything.

Owns that one sentence. It is read from the record and the policy that travels with it, so
it holds for tasks whose code is not here.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.cli.render import times
from holdfast.client.info import TaskInfo
from holdfast.core.errors import PayloadError
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import retries_granted
from holdfast.core.payload.codec import to_json
from holdfast.core.status import TaskStatus


def next_step(info: TaskInfo, now: datetime) -> str:
    """The sentence."""
    match info.status:
        case TaskStatus.WAITING:
            return f"becomes claimable once {_dependencies(info.waits_for)} satisfied"
        case TaskStatus.SCHEDULED:
            return _scheduled(info, now)
        case TaskStatus.PENDING:
            text = f"a worker that serves queue {info.queue!r} and knows it takes it"
            return f"{text}{_or_expires(info, now)}"
        case TaskStatus.CLAIMED:
            return f"worker {info.claimed_by_worker_id} starts it as soon as a child is free"
        case TaskStatus.RUNNING:
            return _running(info, now)
        case TaskStatus.COMPLETED:
            return "nothing; it is deleted when its retention has passed"
        case _ if info.dead:
            return (
                "nothing by itself; it stays a dead letter until "
                f"`holdfast tasks resubmit {info.id}` or `delete`"
            )
        case _:
            return f"nothing by itself; `holdfast tasks resubmit {info.id}` runs it again"


def retries_left(info: TaskInfo) -> int:
    """How many failures it has to spare."""
    return max(0, info.max_retries - info.retry_count)


def retries_used(info: TaskInfo) -> str:
    """How many it has used and has left, for people."""
    granted = retries_granted(info.retry_count, info.max_retries)
    if granted > info.max_retries:
        return f"{info.retry_count} of {granted} RetryLater used; none after a failure"
    return f"{info.retry_count} of {granted} used, {retries_left(info)} left"


def policy_of(info: TaskInfo) -> Policy:
    """The policy that travels with it; the default one if it cannot be read."""
    try:
        return Policy.decode(to_json(info.options) if info.options else None)
    except PayloadError:
        return Policy()


def _dependencies(number: int) -> str:
    return "one more dependency is" if number == 1 else f"{number} more dependencies are"


def _scheduled(info: TaskInfo, now: datetime) -> str:
    at = info.next_retry_at or info.run_at or info.enqueued_at
    due = "at once" if at <= now else times.relative(at, now)
    if info.next_retry_at is not None and info.retry_count:
        granted = retries_granted(info.retry_count, info.max_retries)
        return f"retry {info.retry_count} of {granted}, {due}{_or_expires(info, now)}"
    return f"becomes claimable {due}{_or_expires(info, now)}"


def _or_expires(info: TaskInfo, now: datetime) -> str:
    if info.good_until is None:
        return ""
    if info.good_until <= now:
        return "; no: its good_until has passed, so it expires"
    return f", or it expires {times.relative(info.good_until, now)}"


def _running(info: TaskInfo, now: datetime) -> str:
    if info.cancel_requested_at is not None:
        return "its worker ends it, because a cancel was requested"
    left = retries_left(info)
    failing = "it fails for good" if not left else f"it is retried ({left} left)"
    timeout = policy_of(info).timeout
    if timeout is None or info.started_at is None:
        return f"runs until it ends, without a timeout; if it fails, {failing}"
    deadline = info.started_at + timedelta(seconds=timeout)
    ended = "any moment" if deadline <= now else times.relative(deadline, now)
    return f"runs until it ends, or is ended {ended} by its timeout; if it fails, {failing}"
