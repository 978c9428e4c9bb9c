"""start and the ends of a run: fenced by each task's own token, one attempt row per start."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core.decide import decide
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Crashed, Failed, NotBegun, Outcome, SnoozeAsked, TimedOut
from holdfast.core.payload.failure import decode_error
from holdfast.core.records import BUSY, LOST, Answer, ClaimedTask, Landing, Usage
from holdfast.core.result import TaskError
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store.verbs import claims, finish, inspect, timing
from tests.support.locks import locked_rows
from tests.support.stores import MORNING, SECOND, Kind, Lab, Labs
from tests.support.verbs import BOOM, HOST, PID, PROCESS, WORKER

RETRY = Policy(retry=Retry(9))


def two_running(lab: Lab) -> tuple[ClaimedTask, ClaimedTask]:
    """Two running tasks, of two claims."""
    lab.send_many(2)
    first, second = lab.claim(1).tasks[0], lab.claim(1).tasks[0]
    lab.start(first, second)
    return first, second


def test_a_batch_may_hold_several_claims_and_each_task_needs_its_own(lab: Lab) -> None:
    first, second = two_running(lab)
    swapped = [replace(first, token=second.token), replace(second, token=first.token)]
    before = lab.contents()
    done = lab.run(
        finish.complete([finish.Completion(task.key, task.token, "1", PID) for task in swapped])
    )
    assert list(done.values()) == [LOST, LOST]
    ended = lab.run(
        finish.end(
            [
                finish.RunChange(
                    task.key, task.token, decide(task, Failed(BOOM), Policy(), lambda: 0.5)
                )
                for task in swapped
            ]
        )
    )
    assert list(ended.values()) == [LOST, LOST]
    assert lab.contents() == before


def test_start_needs_each_tasks_own_token_too(lab: Lab) -> None:
    lab.send_many(2)
    first, second = lab.claim(1).tasks[0], lab.claim(1).tasks[0]
    assert lab.start(replace(first, token=second.token), second)[0] == LOST
    assert lab.statuses([first.id, second.id]) == [TaskStatus.CLAIMED, TaskStatus.RUNNING]


@pytest.mark.parametrize("lost", [(), (1,), (0, 1, 2)])
def test_what_a_batch_lost_is_told_and_the_rest_written_once(
    lab: Lab, lost: tuple[int, ...]
) -> None:
    lab.send_many(3)
    tasks = lab.claim().tasks
    for place in lost:
        lab.cancel(tasks[place].id)
    answers = [Answer.LOST if place in lost else Answer.LANDED for place in range(3)]
    begins = [claims.Begin(t.key, t.token, PID, PROCESS) for t in tasks]
    begun = lab.run(claims.start(begins, hostname=HOST))
    assert [begun[task.key].answer for task in tasks] == answers
    assert [begun[task.key].attempt for task in tasks] == [
        None if place in lost else 1 for place in range(3)
    ]
    completions = [finish.Completion(task.key, task.token, "1", PID) for task in tasks]
    done = lab.run(finish.complete(completions))
    assert [done[task.key].answer for task in tasks] == answers
    assert [len(lab.attempts(task.id)) for task in tasks] == [
        0 if place in lost else 1 for place in range(3)
    ]
    assert lab.statuses([task.id for task in tasks]) == [
        TaskStatus.CANCELLED if place in lost else TaskStatus.COMPLETED for place in range(3)
    ]


def test_a_batch_is_answered_task_by_task(lab: Lab) -> None:
    first, second = two_running(lab)
    lab.complete(first)
    done = lab.run(
        finish.complete(
            [finish.Completion(task.key, task.token, "2", PID) for task in (first, second)]
        )
    )
    assert done[first.key] == LOST
    assert done[second.key].answer is Answer.LANDED


def test_an_empty_batch_is_no_work(lab: Lab) -> None:
    assert lab.run(finish.complete([])) == {}
    assert lab.run(finish.end([])) == {}
    assert lab.run(claims.start([], hostname=HOST)) == {}
    assert lab.run(claims.release([])) == {}


def test_start_says_which_attempt_it_is_and_when(lab: Lab) -> None:
    task = lab.claimed()
    now = lab.clock.advance(2)
    assert lab.start(task) == [Landing(Answer.LANDED, TaskStatus.RUNNING, 1, now)]


def test_a_task_starts_once_per_claim(lab: Lab) -> None:
    task = lab.running()
    assert lab.start(task) == [LOST]
    assert lab.task(task.id).attempt == 1


def test_only_the_first_end_of_a_run_counts(lab: Lab) -> None:
    task = lab.running()
    assert lab.complete(task, "1").status is TaskStatus.COMPLETED
    before = lab.contents()
    assert lab.complete(task, "2") == LOST
    assert lab.fail(task) == LOST
    assert lab.contents() == before


def test_completing_says_how_it_went_and_what_it_cost(lab: Lab) -> None:
    task = lab.running()
    now = lab.clock.advance(4)
    usage = Usage(peak_memory_kb=12_345, cpu_time_us=3_000_000_000)
    lab.run(finish.complete([finish.Completion(task.key, task.token, '"fine"', 99, usage)]))
    (attempt,) = lab.attempts(task.id)
    assert (attempt.outcome, attempt.attempt) == (AttemptOutcome.COMPLETED, 1)
    assert (attempt.started_at, attempt.finished_at) == (MORNING, now)
    assert (attempt.peak_memory_kb, attempt.cpu_time_us) == (12_345, 3_000_000_000)
    assert (attempt.worker_id, attempt.worker_hostname) == (WORKER, HOST)
    assert (attempt.worker_pid, attempt.worker_process_name) == (99, PROCESS)
    assert attempt.claim_token == task.token
    ending = lab.run(inspect.endings([task.id]))[task.id]
    assert ending[:5] == (TaskStatus.COMPLETED, '"fine"', None, None, now)


def test_a_lost_answer_of_a_finish_is_found_in_the_attempt_row(lab: Lab) -> None:
    landed, pending = two_running(lab)
    lab.complete(landed)
    assert [row.claim_token for row in lab.attempts(landed.id)] == [landed.token]
    assert lab.attempts(pending.id) == []


def test_every_start_has_one_attempt_row_and_none_is_missing(lab: Lab) -> None:
    id = lab.send(max_retries=9)
    ends: list[tuple[Outcome, AttemptOutcome]] = [
        (Failed(BOOM, listed=True), AttemptOutcome.FAILED),
        (SnoozeAsked(0), AttemptOutcome.SNOOZED),
        (NotBegun(), AttemptOutcome.INTERRUPTED),
        (Crashed(exit_signal=11), AttemptOutcome.WORKER_FAILURE),
        (Failed(BOOM), AttemptOutcome.FAILED),
    ]
    for outcome, _ in ends:
        lab.release(lab.claim_of(id))
        lab.end(lab.run_again(id), outcome, RETRY)
        lab.run(timing.promote())
    rows = lab.attempts(id)
    assert [row.attempt for row in rows] == [1, 2, 3, 4, 5]
    assert [row.outcome for row in rows] == [outcome for _, outcome in ends]
    assert [row.will_retry for row in rows] == [True, False, False, True, False]
    assert len({row.claim_token for row in rows}) == 5
    task = lab.task(id)
    assert (task.attempt, task.retry_count, task.crash_count) == (5, 1, 1)


def test_times_of_starts(lab: Lab) -> None:
    task = lab.running(max_retries=1)
    lab.clock.advance(10)
    lab.end(task, NotBegun())
    second = lab.clock.advance(10)
    task = lab.run_again(task.id)
    record = lab.task(task.id)
    assert (record.first_started_at, record.started_at) == (MORNING, second)
    assert record.retried_at is None
    assert record.heartbeat_at == second
    lab.end(task, Failed(BOOM, listed=True), RETRY)
    third = lab.clock.advance(10)
    lab.run_again(task.id)
    record = lab.task(task.id)
    assert (record.first_started_at, record.started_at, record.retried_at) == (
        MORNING,
        third,
        third,
    )


def test_an_ending_keeps_the_error_three_times(lab: Lab) -> None:
    """In `result` for the caller, in `error_code` for the index, in the attempt for the record."""
    task = lab.running()
    error = TaskError("OUT_OF_STOCK", "none left\nof these", data={"sku": 7})
    lab.fail(task, error)
    record = lab.task(task.id)
    assert record.result is not None
    assert decode_error(record.result) == error
    assert record.error_code == "OUT_OF_STOCK"
    assert record.failed_reason == "none left"
    assert record.finished_at == record.failed_at == MORNING
    assert record.completed_at is None
    (attempt,) = lab.attempts(task.id)
    assert (attempt.error_code, attempt.error_message) == ("OUT_OF_STOCK", "none left\nof these")
    assert attempt.error == record.result


def test_a_timeout_is_a_failure_with_its_own_code(lab: Lab) -> None:
    task = lab.running()
    lab.end(task, TimedOut(3600))
    record = lab.task(task.id)
    assert (record.status, record.error_code) == (TaskStatus.FAILED, "TASK_TIMEOUT")


@pytest.mark.parametrize("dead_letter", [True, False])
def test_a_failure_is_a_dead_letter_unless_the_task_has_none(lab: Lab, dead_letter: bool) -> None:
    task = lab.running()
    lab.end(task, Failed(BOOM), Policy(dead_letter=dead_letter))
    assert lab.task(task.id).dead is dead_letter


def test_the_exit_of_the_process_is_in_the_attempt(lab: Lab) -> None:
    lab.send_many(2)
    killed, exited = lab.claim().tasks
    lab.start(killed, exited)
    lab.end(killed, Crashed(exit_signal=9))
    lab.end(exited, Crashed(exit_code=3))
    (row,) = lab.attempts(killed.id)
    assert (row.exit_signal, row.exit_code) == (9, None)
    assert row.failed_reason is not None
    assert "SIGKILL" in row.failed_reason
    (row,) = lab.attempts(exited.id)
    assert (row.exit_signal, row.exit_code) == (None, 3)


def test_a_worker_that_lost_its_lease_cannot_write(lab: Lab) -> None:
    old = lab.running()
    lab.end(old, Crashed())
    new = lab.run_again(old.id)
    assert lab.complete(old, '"old"') == LOST
    assert lab.end(old, Failed(BOOM)) == LOST
    assert lab.complete(new, '"new"').answer is Answer.LANDED
    assert lab.task(new.id).result == '"new"'


def test_many_tasks_end_in_one_batch(lab: Lab) -> None:
    ids = lab.send_many(300)
    tasks = lab.claim(300).tasks
    lab.start(*tasks)
    done = lab.run(
        finish.complete([finish.Completion(t.key, t.token, "1", PID) for t in tasks[:150]])
    )
    ended = lab.run(
        finish.end(
            [
                finish.RunChange(t.key, t.token, decide(t, Failed(BOOM), Policy(), lambda: 0.5))
                for t in tasks[150:]
            ]
        )
    )
    assert {landing.answer for landing in (*done.values(), *ended.values())} == {Answer.LANDED}
    found = lab.statuses(ids)
    assert found.count(TaskStatus.COMPLETED) == found.count(TaskStatus.FAILED) == 150


# The second is as long as an id, and the third longer than what a row has room for.
RESULTS = ('"ä\U0001f980\\u0000\\" \x7f"', '"0123456789abcd"', f'"{"é" * 50_000}"', "17", '""')


def test_each_task_of_a_batch_has_its_own_result_to_the_letter(lab: Lab) -> None:
    lab.send_many(len(RESULTS))
    claimed = lab.claim(len(RESULTS)).tasks
    lab.start(*claimed)
    lab.run(
        finish.complete(
            [
                finish.Completion(task.key, task.token, result, PID)
                for task, result in zip(claimed, RESULTS, strict=True)
            ]
        )
    )
    endings = lab.run(inspect.endings([task.id for task in claimed]))
    assert [endings[task.id][1] for task in claimed] == [*RESULTS]


def test_a_row_that_somebody_holds_is_busy_and_does_not_delay_the_others(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        held, free = two_running(lab)
        done = [finish.Completion(task.key, task.token, "1", PID) for task in (held, free)]
        with locked_rows(lab, [held.id]):
            answers = lab.run(finish.complete(done, skip_locked=True))
        assert answers[held.key] == BUSY
        assert answers[free.key].answer is Answer.LANDED
        assert lab.status(held.id) is TaskStatus.RUNNING
        again = lab.run(finish.complete(done[:1], skip_locked=True))
        assert again[held.key].answer is Answer.LANDED


def test_an_end_that_skips_locked_rows(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        held, free = two_running(lab)
        change = decide(held, SnoozeAsked(SECOND), Policy(), lambda: 0.5)
        ends = [finish.RunChange(task.key, task.token, change, PID) for task in (held, free)]
        with locked_rows(lab, [held.id]):
            answers = lab.run(finish.end(ends, skip_locked=True))
        assert answers[held.key] == BUSY
        assert answers[free.key].status is TaskStatus.SCHEDULED
        assert lab.attempts(held.id) == []
