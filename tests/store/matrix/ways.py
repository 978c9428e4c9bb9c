"""How each verb is done to a task: one way for each state it may lead to.

A way brings about everything that the verb's guard asks for beyond state and token (a passed
`good_until`, a free unique slot, …), so that in the matrix state and token alone decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.core.decide import Change, decide
from holdfast.core.identity import new_id
from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import (
    CancelAcknowledged,
    Crashed,
    Failed,
    HandedOver,
    Outcome,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
)
from holdfast.core.records import Edge, Landing, Submission, SubmitAnswer
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.plan import AddedPlan, StepPlan
from holdfast.store.op import Mode, Op, Statement, Steps, Uuids
from holdfast.store.verbs import (
    cancel,
    claims,
    dependents,
    finish,
    inspect,
    operate,
    retention,
    timing,
)
from holdfast.store.verbs.end_reasons import CANCELLED, UPSTREAM_FAILED
from tests.support.stores import MORNING, SECOND, Lab
from tests.support.verbs import BOOM, HOST, PID, PROCESS, WORKER, Case, submission

S = TaskStatus
HOUR = 3600 * SECOND
RESULT = '{"answer":42}'
NEW_WORKER = "worker-2"
SLOT = "slot-1"
WORKFLOW, PARENT = new_id(), new_id()
FIELDS: dict[str, Any] = {
    "unique_slot": SLOT,
    "good_until": MORNING + 100 * HOUR,
    "max_retries": 3,
}
"""What every task of the matrix is submitted with, unless its way says otherwise."""
ADDED = AddedPlan(steps=(StepPlan("added", submission(queue_name="new")),))
REPLACEMENT = submission(
    version=2,
    args="[2]",
    kwargs='{"b":2}',
    enqueue_sha="sha-2",
    task_options='{"timeout":5.0}',
    tags='["new"]',
    max_retries=7,
    unique_slot=SLOT,
    on_conflict="replace",
)

Call = Callable[[Lab, Case, bytes], "bool | Landing"]
Prepare = Callable[[Lab, TaskStatus, dict[str, Any]], Case]


def _reach(lab: Lab, status: TaskStatus, fields: dict[str, Any]) -> Case:
    return lab.reach(status, **fields)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do a verb."""

    verb: Verb
    to: TaskStatus | None
    """Where it leads; None: the task is gone."""
    call: Call
    """Does it to the case, with this token if the verb is fenced; whether it did anything."""
    name: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    """What the task was submitted with."""
    sources: tuple[TaskStatus, ...] = ()
    """From where this way leads to `to`; all of the table's, if not said."""
    prepare: Prepare = _reach
    change: Change | None = None
    """What a verb that ends a run wishes to be written."""

    @property
    def starts_from(self) -> tuple[TaskStatus, ...]:
        return self.sources or TRANSITIONS[self.verb].sources

    def __str__(self) -> str:
        return "-".join(filter(None, (self.verb, self.name, f"to-{self.to or 'nothing'}")))


# Verbs that are nobody's claim.


def _submit(**wanted: Any) -> Call:
    """Submit the case's own id: for a task that exists it is a repetition."""

    def call(lab: Lab, case: Case, token: bytes) -> bool:
        (answer,) = lab.submit(new_task(case.id, **wanted))
        assert answer.id == case.id
        return answer.answer is SubmitAnswer.CREATED

    return call


def new_task(id: bytes, **wanted: Any) -> Submission:
    """What the ways of `submit` send."""
    return submission(id=id, queue_name="new", **wanted)


def _promote(lab: Lab, case: Case, token: bytes) -> bool:
    lab.clock.advance(2 * 3600)
    return case.id in lab.run(timing.promote())


def _promote_now(lab: Lab, case: Case, token: bytes) -> bool:
    return case.id in lab.run(timing.promote_now([case.id]))


def _reschedule(delay_us: int | None) -> Call:
    def call(lab: Lab, case: Case, token: bytes) -> bool:
        moved = lab.run(
            operate.reschedule([case.id], move=True, delay_us=delay_us, queue="b", priority=9)
        )
        return moved[case.id]

    return call


def _replace(lab: Lab, case: Case, token: bytes) -> bool:
    (answer,) = lab.submit(REPLACEMENT._replace(id=new_id()))
    return answer.id == case.id and answer.answer is SubmitAnswer.REPLACED


def _unblock(lab: Lab, case: Case, token: bytes) -> bool:
    before = lab.status(case.id)
    if before is S.WAITING:
        lab.run(dependents.resume(WORKFLOW))
    else:
        lab.run(Op(dependents.unblock([case.id], set()), Mode.WRITE, "unblock"))
    return lab.status(case.id) is not before


def _scheduled_and_held(lab: Lab, status: TaskStatus, fields: dict[str, Any]) -> Case:
    if status is not S.WAITING:
        return lab.reach(status, **fields)
    case = lab.reach(S.SCHEDULED, **fields)
    lab.run(dependents.hold(WORKFLOW))
    return case


def _without_hope(lab: Lab, status: TaskStatus, fields: dict[str, Any]) -> Case:
    """It needs more than is open, as after the end of a parent that was to succeed."""
    case = lab.reach(status, **fields)
    lab.run(Op(dependents.count({case.id: (-1, 0)}), Mode.WRITE, "count"))
    return case


def _skip(lab: Lab, case: Case, token: bytes) -> bool:
    def steps() -> Steps[bool]:
        ending = UPSTREAM_FAILED
        params = {"error": ending.error, "error_code": ending.code, "reason": ending.reason}
        return bool((yield Statement("skip", {"ids": Uuids([case.id]), **params})))

    return lab.run(Op(steps(), Mode.WRITE, "skip"))


def _hold(lab: Lab, case: Case, token: bytes) -> bool:
    return lab.run(dependents.hold(WORKFLOW)) > 0


def _claim(lab: Lab, case: Case, token: bytes) -> bool:
    found = lab.claim(queue=case.claimed.queue_name, token=token, worker=NEW_WORKER)
    return case.id in [task.id for task in found.tasks]


def _cancel(lab: Lab, case: Case, token: bytes) -> bool:
    before = lab.run(inspect.tasks_by_id([case.id]))
    answer = lab.run(cancel.cancel([case.id]))[case.id]
    assert answer is lab.status(case.id)
    return lab.run(inspect.tasks_by_id([case.id])) != before


def _expire(lab: Lab, case: Case, token: bytes) -> bool:
    lab.clock.advance(3600)
    return case.id in lab.run(timing.expire())


def _drop(lab: Lab, case: Case, token: bytes) -> bool:
    queue, before = case.claimed.queue_name, lab.clock.now + HOUR
    return case.id in lab.run(timing.drop(queue, known=["other@1"], before=before))


def _resubmit(delay_us: int | None = None) -> Call:
    def call(lab: Lab, case: Case, token: bytes) -> bool:
        run_at = None if delay_us is None else lab.clock.now + delay_us
        return lab.run(operate.resubmit([case.id], run_at=run_at))[case.id]

    return call


def _ended_while_held(lab: Lab, status: TaskStatus, fields: dict[str, Any]) -> Case:
    if status not in (S.CANCELLED, S.EXPIRED):
        return lab.reach(status, **fields)
    case = lab.reach(S.WAITING, **{**fields, "good_until": lab.clock.now + SECOND})
    if status is S.CANCELLED:
        lab.cancel(case.id)
    else:
        lab.clock.advance(1)
        lab.run(timing.expire())
    return case


def _delete(lab: Lab, case: Case, token: bytes) -> bool:
    return lab.run(operate.delete([case.id]))[case.id]


def _prune(lab: Lab, case: Case, token: bytes) -> bool:
    late = lab.clock.now + HOUR
    return lab.run(retention.prune(before=late, dead_before=late)).removed > 0


# Verbs of a claim.


def _start(lab: Lab, case: Case, token: bytes) -> Landing:
    begin = claims.Begin(case.key, token, PID, PROCESS)
    return lab.run(claims.start([begin], hostname=HOST))[case.key]


def _release(lab: Lab, case: Case, token: bytes) -> Landing:
    return lab.run(claims.release([claims.Hold(case.key, token)], queues=["q"]))[case.key]


def _complete(lab: Lab, case: Case, token: bytes) -> Landing:
    return lab.run(finish.complete([finish.Completion(case.key, token, RESULT, PID)]))[case.key]


def _ending(
    verb: Verb, to: TaskStatus, outcome: Outcome, policy: Policy | None = None, crashes: int = 0
) -> Way:
    change = decide(_Counters(crash_count=crashes), outcome, policy or Policy(), lambda: 0.5)
    assert (change.verb, change.target) == (verb, to)

    def call(lab: Lab, case: Case, token: bytes) -> Landing:
        ending = finish.RunChange(case.key, token, change, PID, WORKER)
        return lab.run(finish.end([ending]))[case.key]

    return Way(verb, to, call, change=change)


@dataclass(frozen=True, slots=True)
class _Counters:
    retry_count: int = 0
    max_retries: int = 3
    crash_count: int = 0
    workflow_id: bytes = b"w" * 16


def _handed_over(bad: bool = False, cancel: bool = False) -> Prepare:
    """A step that waits for the one that it added, which is counted as if it had ended."""

    def prepare(lab: Lab, status: TaskStatus, fields: dict[str, Any]) -> Case:
        if status is not S.WAITING:
            return lab.reach(status, **fields)
        case = lab.reach(S.RUNNING, **fields)
        lab.end(case.claimed, HandedOver(ADDED.encode()))
        lab.sql("UPDATE holdfast_step_counts SET open = 0, bad = :bad", bad=int(bad))
        if cancel:
            lab.sql(
                "UPDATE holdfast_tasks SET cancel_requested_at = updated_at WHERE id = :id",
                id=case.id,
            )
        return case

    return prepare


def _settle(lab: Lab, case: Case, token: bytes) -> bool:
    def steps() -> Steps[bool]:
        params = {
            "id": case.id,
            "error_id": None,
            "cancel_error": CANCELLED.error,
            "cancel_reason": CANCELLED.reason,
            "failed_error": UPSTREAM_FAILED.error,
            "failed_reason": "added",
        }
        return bool((yield Statement("settle", params)))

    return lab.run(Op(steps(), Mode.WRITE, "settle"))


WAYS: tuple[Way, ...] = (
    Way(Verb.SUBMIT, S.PENDING, _submit()),
    Way(Verb.SUBMIT, S.SCHEDULED, _submit(delay_us=HOUR)),
    Way(Verb.SUBMIT, S.WAITING, _submit(workflow_id=WORKFLOW, depends_on=[Edge(PARENT)])),
    Way(Verb.PROMOTE, S.PENDING, _promote),
    Way(Verb.PROMOTE, S.PENDING, _promote_now, name="at-once"),
    Way(Verb.RESCHEDULE, S.SCHEDULED, _reschedule(2 * HOUR)),
    Way(Verb.RESCHEDULE, S.PENDING, _reschedule(None)),
    Way(Verb.REPLACE, S.PENDING, _replace, sources=(S.PENDING,)),
    Way(Verb.REPLACE, S.SCHEDULED, _replace, sources=(S.SCHEDULED,)),
    Way(
        Verb.UNBLOCK,
        S.PENDING,
        _unblock,
        fields={"workflow_id": WORKFLOW, "good_until": None, "good_for_us": HOUR},
    ),
    Way(
        Verb.UNBLOCK,
        S.SCHEDULED,
        _unblock,
        fields={"workflow_id": WORKFLOW},
        prepare=_scheduled_and_held,
    ),
    Way(Verb.SKIP, S.CANCELLED, _skip, prepare=_without_hope),
    Way(Verb.HOLD, S.WAITING, _hold, fields={"workflow_id": WORKFLOW}),
    Way(Verb.CLAIM, S.CLAIMED, _claim),
    Way(Verb.START, S.RUNNING, _start),
    Way(Verb.RELEASE, S.PENDING, _release),
    Way(Verb.COMPLETE, S.COMPLETED, _complete),
    replace(
        _ending(Verb.HAND_OVER, S.WAITING, HandedOver(ADDED.encode())),
        fields={"workflow_id": WORKFLOW},
    ),
    Way(
        Verb.SETTLE,
        S.COMPLETED,
        _settle,
        fields={"workflow_id": WORKFLOW},
        prepare=_handed_over(),
    ),
    Way(
        Verb.SETTLE,
        S.FAILED,
        _settle,
        fields={"workflow_id": WORKFLOW},
        prepare=_handed_over(bad=True),
    ),
    Way(
        Verb.SETTLE,
        S.CANCELLED,
        _settle,
        fields={"workflow_id": WORKFLOW},
        prepare=_handed_over(bad=True, cancel=True),
    ),
    _ending(Verb.FAIL, S.FAILED, Failed(BOOM)),
    _ending(Verb.RETRY, S.SCHEDULED, Failed(BOOM, listed=True), Policy(retry=Retry(3, delay=60))),
    _ending(Verb.RETRY, S.PENDING, Failed(BOOM, listed=True), Policy(retry=Retry(3))),
    _ending(Verb.SNOOZE, S.SCHEDULED, SnoozeAsked(HOUR)),
    _ending(Verb.INTERRUPT, S.PENDING, StoppedByShutdown()),
    _ending(Verb.STALL, S.STALLED, StalledBySilence(5)),
    _ending(Verb.RECOVER, S.PENDING, Crashed(exit_signal=9)),
    _ending(Verb.RECOVER, S.SCHEDULED, Crashed(exit_signal=9), crashes=1),
    _ending(Verb.RECOVER, S.FAILED, Crashed(exit_code=3), Policy(max_crashes=1)),
    _ending(Verb.RECOVER, S.STALLED, Crashed(), Policy(on_crash="stall")),
    Way(Verb.CANCEL, S.CANCELLED, _cancel),
    Way(Verb.REQUEST_CANCEL, S.RUNNING, _cancel),
    _ending(Verb.ACK_CANCEL, S.CANCELLED, CancelAcknowledged()),
    # Good for an hour and a little, so that it can still be claimed on the way to its state.
    Way(Verb.EXPIRE, S.EXPIRED, _expire, fields={"good_until": MORNING + HOUR}),
    Way(Verb.DROP, S.DROPPED, _drop),
    Way(Verb.RESUBMIT, S.PENDING, _resubmit()),
    Way(Verb.RESUBMIT, S.SCHEDULED, _resubmit(HOUR)),
    Way(
        Verb.RESUBMIT,
        S.WAITING,
        _resubmit(),
        fields={"workflow_id": WORKFLOW},
        sources=(S.CANCELLED, S.EXPIRED),
        prepare=_ended_while_held,
    ),
    Way(Verb.DELETE, None, _delete),
    Way(Verb.PRUNE, None, _prune),
)
