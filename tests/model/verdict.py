"""What a run's ending should lead to, worked out from the lifecycle's table alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.options.policy import Policy
from holdfast.core.status import TaskStatus

RUN_AGAIN = (TaskStatus.PENDING, TaskStatus.SCHEDULED)
SECOND = 1_000_000

_OUTCOMES = {
    "complete": "COMPLETED",
    "fail": "FAILED",
    "retry": "FAILED",
    "snooze": "SNOOZED",
    "interrupt": "INTERRUPTED",
    "stall": "STALLED",
    "recover": "WORKER_FAILURE",
    "ack_cancel": "CANCELLED",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verb that leaves RUNNING, and where it leads if no cancel was requested."""

    verb: str
    status: TaskStatus
    code: str | None = None
    delay_us: int | None = None
    dead_letter: bool = True

    @property
    def outcome(self) -> str:
        return _OUTCOMES[self.verb]

    @property
    def is_failure(self) -> bool:
        return self.verb in ("retry", "recover")

    def status_for(self, task: Mapping[str, Any], now: int) -> TaskStatus:
        """A retry that would come too late for its task is a failure."""
        until = task["good_until"]
        late = until is not None and now + (self.delay_us or 0) >= until
        return TaskStatus.FAILED if late and self.verb == "retry" else self.status


def failed(task: Mapping[str, Any], policy: Policy, code: str, *, listed: bool) -> Verdict:
    """The code raised."""
    retry = policy.retry
    if not listed or retry is None or task["retry_count"] >= task["max_retries"]:
        return Verdict("fail", TaskStatus.FAILED, code, dead_letter=policy.dead_letter)
    assert retry.backoff == "exponential"
    delay = None if retry.delay is None else retry.delay * 2 ** task["retry_count"]
    return _again("retry", policy, code, delay)


def crashed(task: Mapping[str, Any], policy: Policy) -> Verdict:
    """The process of the code died, or its worker vanished."""
    crashes = task["crash_count"] + 1
    if policy.on_crash == "stall":
        return Verdict(
            "recover", TaskStatus.STALLED, "TASK_STALLED", dead_letter=policy.dead_letter
        )
    if crashes >= policy.max_crashes:
        return Verdict(
            "recover", TaskStatus.FAILED, "WORKER_CRASHED", dead_letter=policy.dead_letter
        )
    delay: float | None = None
    if crashes > 1:
        delay = min(2.0 ** (crashes - 1), 60.0)
        if policy.retry is not None and policy.retry.delay is not None:
            delay = policy.retry.delay * 2 ** (crashes - 2)
    return _again("recover", policy, "WORKER_CRASHED", delay)


def _again(verb: str, policy: Policy, code: str | None, delay: float | None) -> Verdict:
    status = TaskStatus.SCHEDULED if delay else TaskStatus.PENDING
    delay_us = round(delay * SECOND) if delay else None
    return Verdict(verb, status, code, delay_us, policy.dead_letter)
