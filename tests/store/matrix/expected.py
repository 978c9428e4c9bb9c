"""What a verb that landed has written: every column, from the rules of the lifecycle.

Written apart from the SQL, rule by rule, so that the two check each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.core.lifecycle import Verb
from holdfast.core.records import AttemptRecord, TaskRecord
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store.verbs.end_reasons import (
    CANCELLED,
    DROPPED,
    EXPIRED,
    UPSTREAM_FAILED,
    EndReason,
)
from tests.store.matrix.ways import HOUR, NEW_WORKER, REPLACEMENT, RESULT, Way
from tests.support.verbs import HOST, PID, PROCESS, WORKER

S = TaskStatus
Columns = dict[str, Any]

IN_FLIGHT = (S.CLAIMED, S.RUNNING)
MAY_EXPIRE = (S.WAITING, S.SCHEDULED, S.PENDING)
DEAD = (S.FAILED, S.STALLED, S.DROPPED)


class Deed(NamedTuple):
    """One verb that landed."""

    way: Way
    before: TaskRecord
    to: TaskStatus
    now: int
    token: bytes


def task_after(deed: Deed) -> TaskRecord:
    """The row of the task after the deed."""
    return replace(deed.before, **{**_by_state(deed), **_WRITES[deed.way.verb](deed)})


def _by_state(deed: Deed) -> Columns:
    """What follows from the new state alone, whichever verb led there."""
    before, to, now = deed.before, deed.to, deed.now
    columns: Columns = {
        "status": to,
        "updated_at": now,
        "due_at": before.due_at if to is S.SCHEDULED else None,
        "expire_at": before.good_until if to in MAY_EXPIRE else None,
        "claim_token": before.claim_token if to in IN_FLIGHT else None,
        "worker_pid": before.worker_pid if to is S.RUNNING else None,
    }
    if to.is_terminal:
        columns |= {
            "finished_at": now,
            "completed_at": now if to is S.COMPLETED else None,
            "failed_at": now if to in DEAD else None,
            "unique_slot": before.unique_slot if before.unique_until == "deleted" else None,
            "dead": to in DEAD,
        }
    return columns


def _nothing_more(deed: Deed) -> Columns:
    return {}


def _ended(ending: EndReason) -> Callable[[Deed], Columns]:
    columns = {
        "result": ending.error,
        "error_code": ending.code,
        "failed_reason": ending.reason,
    }
    return lambda deed: columns


def _reschedule(deed: Deed) -> Columns:
    at = deed.now + 2 * HOUR if deed.to is S.SCHEDULED else None
    return {
        "due_at": at,
        "run_at": at,
        "enqueued_at": at or deed.now,
        "queue_name": "b",
        "priority": 9,
    }


def _replace(deed: Deed) -> Columns:
    names = ("args", "kwargs", "version", "task_options", "tags", "max_retries", "good_until")
    columns = {name: getattr(REPLACEMENT, name) for name in names}
    return {**columns, "expire_at": REPLACEMENT.good_until}


def _unblock(deed: Deed) -> Columns:
    columns: Columns = {"deps_open": 0, "deps_needed": 0, "enqueued_at": deed.now}
    if deed.to is S.SCHEDULED:
        columns |= {"due_at": deed.before.run_at, "enqueued_at": deed.before.run_at}
    if deed.before.good_for_us is not None:
        until = deed.now + deed.before.good_for_us
        columns |= {"good_until": until, "expire_at": until}
    return columns


def _hold(deed: Deed) -> Columns:
    before = deed.before
    return {"deps_open": before.deps_open + 1, "deps_needed": before.deps_needed + 1}


def _claim(deed: Deed) -> Columns:
    return {
        "claim_token": deed.token,
        "claimed_at": deed.now,
        "claimed_by_worker_id": NEW_WORKER,
    }


def _start(deed: Deed) -> Columns:
    return {
        "attempt": deed.before.attempt + 1,
        "started_at": deed.now,
        "first_started_at": deed.before.first_started_at or deed.now,
        "heartbeat_at": deed.now,
        "worker_pid": PID,
        "worker_hostname": HOST,
        "worker_process_name": PROCESS,
        "next_retry_at": None,
        "unique_slot": None if deed.before.unique_until == "started" else deed.before.unique_slot,
    }


def _release(deed: Deed) -> Columns:
    return {"claimed_at": None, "claimed_by_worker_id": None}


def _complete(deed: Deed) -> Columns:
    return {"result": RESULT}


def _hand_over(deed: Deed) -> Columns:
    if deed.to is S.CANCELLED:
        return _ended(CANCELLED)(deed)
    return {"handed_over": True, "expire_at": None}


def _settle(deed: Deed) -> Columns:
    if deed.to is S.CANCELLED:
        return _ended(CANCELLED)(deed)
    if deed.to is S.COMPLETED:
        return {}
    return {
        "result": UPSTREAM_FAILED.error,
        "error_code": UPSTREAM_FAILED.code,
        "failed_reason": "added",
        "dead": False,
    }


def _end_of_run(deed: Deed) -> Columns:
    change, before, to = deed.way.change, deed.before, deed.to
    assert change is not None
    columns: Columns = {}
    if change.verb is Verb.RECOVER:
        columns["crash_count"] = before.crash_count + 1
    if to is S.CANCELLED:
        return columns | _ended(CANCELLED)(deed)
    if to.is_terminal:
        return columns | {
            "result": change.result,
            "error_code": change.error_code,
            "failed_reason": change.failed_reason,
        }
    columns |= _release(deed)
    at = deed.now + (change.delay_us or 0)
    if change.verb is Verb.RETRY:
        columns |= {"retry_count": before.retry_count + 1, "next_retry_at": at, "enqueued_at": at}
    if to is S.SCHEDULED:
        columns |= {"due_at": at, "run_at": at, "enqueued_at": at}
    return columns


def _request_cancel(deed: Deed) -> Columns:
    return {"cancel_requested_at": deed.before.cancel_requested_at or deed.now}


def _resubmit(deed: Deed) -> Columns:
    run_at = deed.now + HOUR if deed.to is S.SCHEDULED else None
    cleared = (
        "cancel_requested_at finished_at completed_at failed_at error_code failed_reason result "
        "progress stage stage_meta next_retry_at good_until expire_at claimed_at "
        "claimed_by_worker_id"
    )
    return {
        **dict.fromkeys(cleared.split()),
        "dead": False,
        "retry_count": 0,
        "crash_count": 0,
        "run_at": run_at,
        "due_at": run_at,
        "enqueued_at": run_at or deed.now,
        "unique_slot": deed.before.unique_key,
    }


_WRITES: dict[Verb, Callable[[Deed], Columns]] = {
    Verb.PROMOTE: _nothing_more,
    Verb.RESCHEDULE: _reschedule,
    Verb.REPLACE: _replace,
    Verb.UNBLOCK: _unblock,
    Verb.SKIP: _ended(UPSTREAM_FAILED),
    Verb.HOLD: _hold,
    Verb.CLAIM: _claim,
    Verb.START: _start,
    Verb.RELEASE: _release,
    Verb.COMPLETE: _complete,
    Verb.HAND_OVER: _hand_over,
    Verb.SETTLE: _settle,
    Verb.FAIL: _end_of_run,
    Verb.RETRY: _end_of_run,
    Verb.SNOOZE: _end_of_run,
    Verb.INTERRUPT: _end_of_run,
    Verb.STALL: _end_of_run,
    Verb.RECOVER: _end_of_run,
    Verb.ACK_CANCEL: _end_of_run,
    Verb.CANCEL: _ended(CANCELLED),
    Verb.REQUEST_CANCEL: _request_cancel,
    Verb.EXPIRE: _ended(EXPIRED),
    Verb.DROP: _ended(DROPPED),
    Verb.RESUBMIT: _resubmit,
}


def attempt_after(deed: Deed, outcome: AttemptOutcome) -> AttemptRecord:
    """The row that the deed adds to the attempts: what became of the code, in its own words."""
    before, change = deed.before, deed.way.change
    assert before.claim_token is not None
    assert before.started_at is not None
    plain = AttemptRecord(
        task_id=before.id,
        attempt=before.attempt,
        outcome=outcome,
        will_retry=False,
        claim_token=before.claim_token,
        started_at=before.started_at,
        finished_at=deed.now,
        error_code=None,
        error_message=None,
        failed_reason=None,
        error=None,
        worker_id=WORKER,
        worker_hostname=HOST,
        worker_pid=PID,
        worker_process_name=PROCESS,
        exit_code=None,
        exit_signal=None,
        peak_memory_kb=None,
        cpu_time_us=None,
        created_at=deed.now,
    )
    if change is None:
        return plain
    return replace(
        plain,
        will_retry=change.verb in (Verb.RETRY, Verb.RECOVER) and not deed.to.is_terminal,
        error_code=change.error_code,
        error_message=None if change.error is None else change.error.message,
        failed_reason=change.failed_reason,
        error=change.result,
        exit_code=change.exit_code,
        exit_signal=change.exit_signal,
    )
