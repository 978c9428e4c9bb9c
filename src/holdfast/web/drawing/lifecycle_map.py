"""The way of one task through the lifecycle, as a map on which every state keeps its place.

Derived from `core/lifecycle.py`: what is possible next is what the verbs allow that anybody may do
to the task now. How often a state was reached is told from what is stored: the number of starts,
of retries, and the times that were written on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.lifecycle import TRANSITIONS, Verb, targets, verbs_from
from holdfast.core.status import TaskStatus

__all__ = ["COLUMNS", "Reached", "StatePlace", "lifecycle_map"]

COLUMNS: Final[Sequence[Sequence[TaskStatus]]] = (
    (TaskStatus.WAITING, TaskStatus.SCHEDULED),
    (TaskStatus.PENDING,),
    (TaskStatus.CLAIMED,),
    (TaskStatus.RUNNING,),
    (
        TaskStatus.COMPLETED,
        TaskStatus.FAILED,
        TaskStatus.CANCELLED,
        TaskStatus.STALLED,
        TaskStatus.EXPIRED,
        TaskStatus.DROPPED,
    ),
)
"""Where each state stands, from left to right and from top to bottom."""

_BY: Final[Mapping[Verb, str]] = {
    Verb.SUBMIT: "when sent",
    Verb.PROMOTE: "when it is due",
    Verb.RESCHEDULE: "by Reschedule",
    Verb.UNBLOCK: "when its parents end",
    Verb.SKIP: "if it is skipped",
    Verb.HOLD: "if its workflow pauses",
    Verb.CLAIM: "when a worker is free",
    Verb.START: "when its turn comes",
    Verb.RELEASE: "if it is given back",
    Verb.COMPLETE: "when it returns",
    Verb.HAND_OVER: "if it adds steps",
    Verb.SETTLE: "with its steps",
    Verb.FAIL: "if not retried",
    Verb.RETRY: "on retry",
    Verb.SNOOZE: "if it snoozes",
    Verb.INTERRUPT: "on shutdown",
    Verb.STALL: "if it goes silent",
    Verb.RECOVER: "on a crash",
    Verb.CANCEL: "by Cancel",
    Verb.ACK_CANCEL: "by Cancel",
    Verb.EXPIRE: "if claimed too late",
    Verb.DROP: "if nobody knows it",
    Verb.RESUBMIT: "by Resubmit",
}
_FIRST: Final = (
    Verb.COMPLETE, Verb.FAIL, Verb.CANCEL, Verb.ACK_CANCEL, Verb.STALL, Verb.RETRY, Verb.START,
    Verb.CLAIM, Verb.PROMOTE, Verb.RESUBMIT, Verb.UNBLOCK, Verb.EXPIRE, Verb.DROP,
)  # fmt: skip
"""Which verb is named where several lead to a state."""
_UNSEEN: Final = frozenset({Verb.REPLACE, Verb.PRUNE, Verb.DELETE, Verb.REQUEST_CANCEL})


@dataclass(frozen=True, slots=True)
class Reached:
    """How often a state was reached, and what is said of it."""

    times: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class StatePlace:
    """One state on the map."""

    status: TaskStatus
    now: bool
    times: int
    """How often it was reached; 0: never, as far as is known."""
    next: bool
    """Whether the task can come here next."""
    text: str


def lifecycle_map(
    status: TaskStatus,
    reached: Mapping[TaskStatus, Reached],
    now_text: str = "",
    *,
    without: Collection[Verb] = (),
) -> list[list[StatePlace]]:
    """The columns of the map, for a task that is in `status`; `without` the verbs that cannot
    happen to it, such as those of workflows to a task that is no step."""
    possible = _possible(status, without)
    return [[_place(each, status, reached, possible, now_text) for each in c] for c in COLUMNS]


def _place(
    each: TaskStatus,
    status: TaskStatus,
    reached: Mapping[TaskStatus, Reached],
    possible: Mapping[TaskStatus, Verb],
    now_text: str,
) -> StatePlace:
    been = reached.get(each)
    times = 0 if been is None else been.times
    if each is status:
        return StatePlace(each, True, max(1, times), False, now_text)
    if each in possible:
        return StatePlace(each, False, times, True, _BY[possible[each]])
    return StatePlace(each, False, times, False, "" if been is None else been.text)


def _possible(status: TaskStatus, without: Collection[Verb]) -> dict[TaskStatus, Verb]:
    verbs = [verb for verb in verbs_from(status) if verb not in _UNSEEN and verb not in without]
    order = {verb: place for place, verb in enumerate(_FIRST)}
    found: dict[TaskStatus, Verb] = {}
    for verb in sorted(verbs, key=lambda verb: order.get(verb, len(order))):
        if TRANSITIONS[verb].keeps_status:
            continue
        for target in targets(verb, status):
            # A resubmit leads there with a delay only, which is not what its button gives.
            if target is status or (verb, target) == (Verb.RESUBMIT, TaskStatus.SCHEDULED):
                continue
            # What is no step of a workflow has nothing to wait for, whatever the verb.
            if target is not TaskStatus.WAITING or Verb.UNBLOCK not in without:
                found.setdefault(target, verb)
    return found
