"""retry, snooze, interrupt, recover: what leads to another run, and what bounds their number."""

from __future__ import annotations

from itertools import permutations

import pytest

from holdfast.core.decide import Change
from holdfast.core.lifecycle import Verb
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Crashed, Failed, NotBegun, RetryAsked, SnoozeAsked
from holdfast.core.records import Answer
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import operate, timing
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM

FAILED = Failed(BOOM, listed=True)
MINUTE = 60 * SECOND


def retrying(retries: int = 3, delay: float | None = 60) -> Policy:
    return Policy(retry=Retry(retries, delay=delay, backoff="constant"))


def test_a_retry_waits_out_its_delay_and_spends_one(lab: Lab) -> None:
    task = lab.running(max_retries=3)
    now = lab.clock.advance(5)
    landing = lab.end(task, FAILED, retrying())
    record = lab.task(task.id)
    assert (landing.answer, landing.status) == (Answer.LANDED, TaskStatus.SCHEDULED)
    assert record.retry_count == 1
    assert record.next_retry_at == record.due_at == record.run_at == now + MINUTE
    assert record.enqueued_at == now + MINUTE
    assert record.result is None
    assert record.error_code is None
    assert record.finished_at is None
    (attempt,) = lab.attempts(task.id)
    assert attempt.will_retry
    assert attempt.error_code == "BOOM"


def test_the_next_start_clears_the_time_of_the_retry(lab: Lab) -> None:
    task = lab.running(max_retries=3)
    lab.end(task, FAILED, retrying())
    lab.clock.advance(60)
    lab.run(timing.promote())
    assert lab.task(task.id).next_retry_at == MORNING + MINUTE
    lab.run_again(task.id)
    assert lab.task(task.id).next_retry_at is None


def test_without_a_delay_the_task_is_pending_at_once_behind_the_others(lab: Lab) -> None:
    task = lab.running(max_retries=3)
    other = lab.send()
    lab.clock.advance(1)
    assert lab.end(task, FAILED, retrying(delay=None)).status is TaskStatus.PENDING
    assert lab.task(task.id).next_retry_at == lab.clock.now
    assert [claimed.id for claimed in lab.claim().tasks] == [other, task.id]


def test_the_last_retry_that_fails_is_the_end(lab: Lab) -> None:
    id = lab.send(max_retries=2)
    for _ in range(3):
        lab.end(lab.run_again(id), FAILED, retrying(2, delay=None))
    record = lab.task(id)
    assert (record.status, record.retry_count, record.attempt) == (TaskStatus.FAILED, 2, 3)
    assert record.failed_reason is not None
    assert [row.will_retry for row in lab.attempts(id)] == [True, True, False]


def test_the_row_has_the_last_word_on_how_many_retries_are_left(lab: Lab) -> None:
    """A worker that decided from an old record asks for a retry that is not there any more."""
    task = lab.running(max_retries=1)
    stale_wish = Change(
        verb=Verb.RETRY,
        target=TaskStatus.SCHEDULED,
        delay_us=MINUTE,
        retries=1,
        retries_allowed=0,
        error=BOOM,
        failed_reason="it went wrong",
        result='{"error_code":"BOOM","message":"it went wrong"}',
    )
    landing = lab.write(task, stale_wish)
    record = lab.task(task.id)
    assert (landing.answer, landing.status) == (Answer.LANDED, TaskStatus.FAILED)
    assert (record.error_code, record.retry_count, record.dead) == ("BOOM", 0, True)
    assert [row.will_retry for row in lab.attempts(task.id)] == [False]


@pytest.mark.parametrize(
    ("good_for", "expected"),
    [(59, TaskStatus.FAILED), (60, TaskStatus.FAILED), (61, TaskStatus.SCHEDULED)],
)
def test_a_retry_that_would_come_too_late_is_a_failure_with_the_same_error(
    lab: Lab, good_for: int, expected: TaskStatus
) -> None:
    task = lab.running(max_retries=3, good_until=MORNING + good_for * SECOND)
    landing = lab.end(task, FAILED, retrying())
    record = lab.task(task.id)
    assert landing.status is record.status is expected
    if expected is TaskStatus.FAILED:
        assert (record.error_code, record.retry_count) == ("BOOM", 0)
        assert record.next_retry_at is None
    assert [row.will_retry for row in lab.attempts(task.id)] == [not expected.is_terminal]


def test_a_retry_can_expire_and_keeps_its_attempts(lab: Lab) -> None:
    task = lab.running(max_retries=3, good_until=MORNING + 61 * SECOND)
    lab.end(task, FAILED, retrying())
    assert lab.task(task.id).expire_at == MORNING + 61 * SECOND
    lab.clock.advance(61)
    assert lab.run(timing.expire()) == [task.id]
    record = lab.task(task.id)
    assert (record.status, record.error_code) == (TaskStatus.EXPIRED, "TASK_EXPIRED")
    assert len(lab.attempts(task.id)) == record.attempt == 1


def test_an_immediate_retry_after_good_until_is_a_failure_too(lab: Lab) -> None:
    task = lab.running(max_retries=3, good_until=MORNING + SECOND)
    lab.clock.advance(1)
    assert lab.end(task, FAILED, retrying(delay=None)).status is TaskStatus.FAILED


def test_the_task_may_ask_for_its_own_delay(lab: Lab) -> None:
    task = lab.running(max_retries=3)
    lab.end(task, RetryAsked(BOOM, delay_us=7 * SECOND), retrying())
    assert lab.task(task.id).due_at == MORNING + 7 * SECOND


def test_a_snooze_spends_nothing(lab: Lab) -> None:
    task = lab.running(max_retries=1)
    lab.end(task, SnoozeAsked(MINUTE))
    record = lab.task(task.id)
    assert record.status is TaskStatus.SCHEDULED
    assert record.run_at == record.due_at == record.enqueued_at == MORNING + MINUTE
    assert (record.retry_count, record.crash_count, record.attempt) == (0, 0, 1)
    assert record.next_retry_at is None


def test_an_interrupted_task_keeps_its_place_and_spends_nothing(lab: Lab) -> None:
    task = lab.running(max_retries=1)
    lab.send()
    lab.clock.advance(5)
    lab.end(task, NotBegun())
    record = lab.task(task.id)
    assert (record.status, record.enqueued_at) == (TaskStatus.PENDING, MORNING)
    assert (record.retry_count, record.crash_count, record.attempt) == (0, 0, 1)
    assert lab.claim(1).tasks[0].id == task.id


def test_another_run_leaves_no_trace_of_the_last_worker(lab: Lab) -> None:
    task = lab.running(max_retries=3)
    lab.end(task, FAILED, retrying())
    record = lab.task(task.id)
    assert record.worker_pid is None
    assert record.claimed_at is None
    assert record.claimed_by_worker_id is None


# Crashes.


def test_the_first_crash_is_forgiven_at_once_and_the_second_after_a_while(lab: Lab) -> None:
    id = lab.send()
    lab.end(lab.run_again(id), Crashed(exit_signal=9), Policy(max_crashes=9))
    assert lab.task(id).status is TaskStatus.PENDING
    lab.end(lab.run_again(id), Crashed(exit_signal=9), Policy(max_crashes=9))
    record = lab.task(id)
    assert (record.status, record.crash_count) == (TaskStatus.SCHEDULED, 2)
    assert record.due_at is not None
    assert record.due_at > lab.clock.now
    assert record.retry_count == 0
    assert record.next_retry_at is None


def test_the_crash_cap_ends_in_failed_with_the_code_of_the_crash(lab: Lab) -> None:
    id = lab.send()
    for _ in range(2):
        lab.end(lab.run_again(id), Crashed(exit_signal=9), Policy(max_crashes=2))
    record = lab.task(id)
    assert (record.status, record.error_code) == (TaskStatus.FAILED, "WORKER_CRASHED")
    assert (record.crash_count, record.dead) == (2, True)


def test_on_crash_stall_ends_in_stalled(lab: Lab) -> None:
    task = lab.running()
    lab.end(task, Crashed(), Policy(on_crash="stall"))
    record = lab.task(task.id)
    assert (record.status, record.error_code) == (TaskStatus.STALLED, "TASK_STALLED")
    assert record.finished_at == record.failed_at == MORNING
    assert lab.attempts(task.id)[0].outcome == "WORKER_FAILURE"


@on_each_engine
@pytest.mark.parametrize("order", sorted(set(permutations("rrccc"))), ids="".join)
def test_a_task_starts_at_most_max_retries_and_max_crashes_times(
    lab: Lab, order: tuple[str, ...]
) -> None:
    """Two retries and three crashes, in any order, and whatever comes after them."""
    policy = Policy(retry=Retry(2), max_crashes=3)
    id = lab.send(max_retries=2)
    starts = 0
    for outcome in (*order, "r", "c", "r"):
        if lab.status(id) is TaskStatus.FAILED:
            break
        lab.end(lab.run_again(id), FAILED if outcome == "r" else Crashed(), policy)
        lab.run(timing.promote_now([id]))
        starts += 1
    assert lab.status(id) is TaskStatus.FAILED
    assert starts == lab.task(id).attempt <= 2 + 3


def test_a_resubmit_grants_them_anew_and_goes_on_counting_attempts(lab: Lab) -> None:
    id = lab.send(max_retries=1)
    for _ in range(2):
        lab.end(lab.run_again(id), FAILED, retrying(1, delay=None))
    lab.run(operate.resubmit([id]))
    for _ in range(2):
        lab.end(lab.run_again(id), FAILED, retrying(1, delay=None))
    record = lab.task(id)
    assert (record.status, record.retry_count, record.attempt) == (TaskStatus.FAILED, 1, 4)
    assert [row.attempt for row in lab.attempts(id)] == [1, 2, 3, 4]
