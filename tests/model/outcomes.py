"""What may become of a run: the product's `Change` for it, and the model's own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.decide import Change, Counters, decide
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    CancelAcknowledged,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    RetryAsked,
    Returned,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
)
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from tests.model import verdict
from tests.model.verdict import SECOND, Verdict

BOOM = TaskError("BOOM", "it went wrong")
SNOOZE_US = 7 * SECOND
LATER_US = 3 * SECOND

_OUTCOMES: dict[str, Outcome] = {
    "complete": Returned('{"ok": "\\u0000 and ü"}'),
    "fail": Failed(BOOM, listed=False),
    "retry": Failed(BOOM, listed=True),
    "retry_later": RetryAsked(BOOM, LATER_US),
    "snooze": SnoozeAsked(SNOOZE_US),
    "not_begun": NotBegun(),
    "shutdown": StoppedByShutdown(),
    "silence": StalledBySilence(5),
    "crash": Crashed(exit_signal=9),
    "vanish": Crashed(),
    "ack_cancel": CancelAcknowledged(),
}
KINDS = tuple(kind for kind in _OUTCOMES if kind not in ("complete", "vanish"))
"""What ends a run otherwise than by success, as its worker reports it."""


def change_for(kind: str, task: Counters, policy: Policy) -> Change:
    """What the product decides."""
    return decide(task, _OUTCOMES[kind], policy, lambda: 0.5)


def verdict_for(kind: str, task: Mapping[str, Any], policy: Policy) -> Verdict:
    """What the lifecycle says."""
    dead_letter = policy.dead_letter
    match kind:
        case "fail" | "retry":
            return verdict.failed(task, policy, "BOOM", listed=kind == "retry")
        case "retry_later":
            allowed = task["max_retries"] if policy.retry else 3
            if task["retry_count"] >= allowed:
                return Verdict("fail", TaskStatus.FAILED, "BOOM", dead_letter=dead_letter)
            return Verdict("retry", TaskStatus.SCHEDULED, "BOOM", LATER_US, dead_letter)
        case "snooze":
            return Verdict("snooze", TaskStatus.SCHEDULED, delay_us=SNOOZE_US)
        case "shutdown" if policy.on_shutdown == "resubmit":
            return Verdict("interrupt", TaskStatus.PENDING)
        case "not_begun":
            return Verdict("interrupt", TaskStatus.PENDING)
        case "shutdown" | "silence":
            return Verdict("stall", TaskStatus.STALLED, "TASK_STALLED", dead_letter=dead_letter)
        case "crash" | "vanish":
            return verdict.crashed(task, policy)
        case "ack_cancel":
            return Verdict("ack_cancel", TaskStatus.CANCELLED, "TASK_CANCELLED")
        case _:
            raise AssertionError(kind)
