"""cancel: an end for what has not begun, a wish that is never lost for what runs."""

from __future__ import annotations

import pytest

from holdfast.core.decide import Change, decide
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import (
    CancelAcknowledged,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    SnoozeAsked,
    StoppedByShutdown,
)
from holdfast.core.payload.failure import decode_error
from holdfast.core.records import LOST, Answer
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store.verbs import cancel, claims, leases, operate
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM, ENDED, LEASE_US

NOT_BEGUN = [
    TaskStatus.WAITING,
    TaskStatus.SCHEDULED,
    TaskStatus.PENDING,
    TaskStatus.CLAIMED,
]


@pytest.mark.parametrize("status", NOT_BEGUN)
def test_what_has_not_begun_ends_at_once(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    assert lab.cancel(case.id) == [TaskStatus.CANCELLED]
    record = lab.task(case.id)
    assert record.status is TaskStatus.CANCELLED
    assert record.error_code == "TASK_CANCELLED"
    assert record.result is not None
    assert decode_error(record.result).error_code == "TASK_CANCELLED"
    assert record.failed_reason
    assert record.dead is False
    assert record.cancel_requested_at is None
    assert lab.attempts(case.id) == []


def test_what_runs_is_asked_to_stop(lab: Lab) -> None:
    task = lab.running()
    now = lab.clock.advance(3)
    assert lab.run(cancel.cancel_requests([task.id])) == set()
    assert lab.cancel(task.id) == [TaskStatus.RUNNING]
    assert lab.task(task.id).cancel_requested_at == now
    assert lab.run(cancel.cancel_requests([task.id, new_id()])) == {task.id}


def test_the_first_wish_is_the_one_that_is_remembered(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    lab.clock.advance(3)
    lab.cancel(task.id)
    assert lab.task(task.id).cancel_requested_at == MORNING


@on_each_engine
@pytest.mark.parametrize("status", ENDED)
def test_what_has_ended_is_left_as_it_is(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    before = lab.contents()
    assert lab.cancel(case.id) == [status]
    assert lab.contents() == before


def test_a_batch_is_answered_id_by_id(lab: Lab) -> None:
    running, done = lab.running().id, lab.reach(TaskStatus.COMPLETED).id
    pending = lab.send()
    assert lab.cancel(done, new_id(), pending, running, pending) == [
        TaskStatus.COMPLETED,
        None,
        TaskStatus.CANCELLED,
        TaskStatus.RUNNING,
        TaskStatus.CANCELLED,
    ]
    assert lab.run(cancel.cancel([])) == {}


def test_a_claimed_task_that_was_cancelled_never_starts(lab: Lab) -> None:
    task = lab.claimed()
    lab.cancel(task.id)
    assert lab.start(task) == [LOST]
    assert lab.release(task) == [LOST]
    assert lab.complete(task) == LOST
    assert lab.task(task.id).attempt == 0


def test_the_worker_obeys(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    landing = lab.end(task, CancelAcknowledged())
    assert (landing.answer, landing.status) == (Answer.LANDED, TaskStatus.CANCELLED)
    assert [row.outcome for row in lab.attempts(task.id)] == [AttemptOutcome.CANCELLED]


def test_a_worker_cannot_obey_what_nobody_asked(lab: Lab) -> None:
    task = lab.running()
    before = lab.contents()
    assert lab.end(task, CancelAcknowledged()) == LOST
    assert lab.contents() == before


ANOTHER_RUN: list[tuple[Outcome, AttemptOutcome]] = [
    (Failed(BOOM, listed=True), AttemptOutcome.FAILED),
    (Failed(BOOM), AttemptOutcome.FAILED),
    (SnoozeAsked(SECOND), AttemptOutcome.SNOOZED),
    (NotBegun(), AttemptOutcome.INTERRUPTED),
    (Crashed(exit_signal=9), AttemptOutcome.WORKER_FAILURE),
]


@pytest.mark.parametrize(("outcome", "row"), ANOTHER_RUN, ids=lambda value: type(value).__name__)
def test_cancel_beats_another_run(lab: Lab, outcome: Outcome, row: AttemptOutcome) -> None:
    task = lab.running(max_retries=3)
    lab.cancel(task.id)
    landing = lab.end(task, outcome, Policy(retry=Retry(3, delay=5)))
    record = lab.task(task.id)
    assert (landing.answer, landing.status) == (Answer.CANCELLED, TaskStatus.CANCELLED)
    assert (record.status, record.error_code) == (TaskStatus.CANCELLED, "TASK_CANCELLED")
    assert record.retry_count == 0
    assert record.next_retry_at is None
    (attempt,) = lab.attempts(task.id)
    assert (attempt.outcome, attempt.will_retry) == (row, False)
    assert lab.claim().tasks == []


def test_cancel_beats_a_shutdown_that_would_stall(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    lab.end(task, StoppedByShutdown(), Policy(on_shutdown="stop"))
    record = lab.task(task.id)
    assert (record.status, record.dead) == (TaskStatus.CANCELLED, False)
    assert [row.outcome for row in lab.attempts(task.id)] == [AttemptOutcome.STALLED]


def test_a_value_returned_before_the_worker_obeyed_is_not_denied(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    landing = lab.complete(task, '"done"')
    assert (landing.answer, landing.status) == (Answer.LANDED, TaskStatus.COMPLETED)
    assert lab.task(task.id).result == '"done"'


def test_cancel_then_crash_ends_cancelled_and_never_runs_again(lab: Lab) -> None:
    """The worker is gone with its child; the reaper finds the wish on the row."""
    task = lab.running()
    lab.cancel(task.id)
    lab.clock.advance(LEASE_US / SECOND + 1)
    recovery = lab.run(leases.recover(_as_a_crash))
    assert recovery is not None
    assert recovery.recovered == 1
    assert lab.status(task.id) is TaskStatus.CANCELLED
    assert lab.task(task.id).crash_count == 1
    assert [row.outcome for row in lab.attempts(task.id)] == [AttemptOutcome.WORKER_FAILURE]
    lab.clock.advance(3600)
    assert lab.claim().tasks == []


def _as_a_crash(task: leases.Abandoned) -> Change:
    return decide(task, Crashed(), Policy(), lambda: 0.5)


def test_cancel_before_a_claim_that_was_lost_is_not_undone_by_its_release(lab: Lab) -> None:
    task = lab.claimed()
    lab.cancel(task.id)
    lab.run(claims.release_token(task.token, queue="q"))
    assert lab.status(task.id) is TaskStatus.CANCELLED


def test_a_resubmit_forgets_the_wish(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    lab.end(task, CancelAcknowledged())
    lab.run(operate.resubmit([task.id]))
    again = lab.run_again(task.id)
    assert lab.task(task.id).cancel_requested_at is None
    assert lab.end(again, NotBegun()).status is TaskStatus.PENDING
