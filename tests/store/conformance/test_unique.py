"""Unique keys: one live task per key, and what a second send may do about it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import UniqueConflict
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Failed, NotBegun, Outcome, SnoozeAsked
from holdfast.core.records import OnConflict, SubmitAnswer, Submitted
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, operate
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import BOOM, ENDED, HOST, LIVE, PID, PROCESS, submission

SLOT = "t:key"


def send(lab: Lab, on_conflict: OnConflict = "return", **fields: Any) -> Submitted:
    (answer,) = lab.submit(submission(unique_slot=SLOT, on_conflict=on_conflict, **fields))
    return answer


@on_each_engine
@pytest.mark.parametrize("status", LIVE)
def test_a_live_task_holds_its_key(lab: Lab, status: TaskStatus) -> None:
    holder = lab.reach(status, unique_slot=SLOT)
    before = lab.contents()
    assert send(lab) == Submitted(holder.id, SubmitAnswer.EXISTING)
    assert lab.contents() == before


@on_each_engine
@pytest.mark.parametrize("status", ENDED)
def test_an_ended_task_has_freed_its_key(lab: Lab, status: TaskStatus) -> None:
    ended = lab.reach(status, unique_slot=SLOT)
    assert lab.task(ended.id).unique_slot is None
    assert lab.task(ended.id).unique_key == SLOT
    answer = send(lab)
    assert answer.answer is SubmitAnswer.CREATED
    assert answer.id != ended.id


def test_a_retry_keeps_the_key(lab: Lab) -> None:
    task = lab.running(unique_slot=SLOT, max_retries=1)
    lab.end(task, Failed(BOOM, listed=True), Policy(retry=Retry(1, delay=60)))
    assert send(lab) == Submitted(task.id, SubmitAnswer.EXISTING)


def test_other_keys_are_free(lab: Lab) -> None:
    send(lab)
    (answer,) = lab.submit(submission(unique_slot="t:other"))
    assert answer.answer is SubmitAnswer.CREATED


def test_a_repeated_send_of_the_holder_itself_is_a_repetition_not_a_conflict(lab: Lab) -> None:
    sent = submission(unique_slot=SLOT, on_conflict="raise")
    assert lab.submit(sent) == [Submitted(sent.id, SubmitAnswer.CREATED)]
    assert lab.submit(sent) == [Submitted(sent.id, SubmitAnswer.EXISTING)]


def test_raise_names_the_holder(lab: Lab) -> None:
    holder = send(lab)
    assert send(lab, "raise") == Submitted(holder.id, SubmitAnswer.CONFLICT)


def test_of_two_in_one_batch_the_second_meets_the_first(lab: Lab) -> None:
    batch = [submission(unique_slot=SLOT) for _ in range(3)]
    answers = lab.submit(*batch, submission())
    created = [answer for answer in answers[:3] if answer.answer is SubmitAnswer.CREATED]
    assert len(created) == 1
    assert {answer.id for answer in answers[:3]} == {created[0].id}
    assert answers[3].answer is SubmitAnswer.CREATED


# replace: another payload, same task, same place.


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.SCHEDULED])
def test_replace_gives_a_task_that_has_not_started_another_payload(
    lab: Lab, status: TaskStatus
) -> None:
    holder = lab.reach(status, unique_slot=SLOT, good_until=MORNING + 100 * SECOND)
    before = lab.task(holder.id)
    lab.clock.advance(5)
    until = MORNING + 200 * SECOND
    answer = send(
        lab,
        "replace",
        args="[2]",
        kwargs='{"k":2}',
        enqueue_sha="sha-2",
        tags='["b"]',
        max_retries=5,
        good_until=until,
    )
    after = lab.task(holder.id)
    assert answer == Submitted(holder.id, SubmitAnswer.REPLACED)
    assert (after.args, after.kwargs) == ("[2]", '{"k":2}')
    assert (after.tags, after.max_retries) == ('["b"]', 5)
    assert after.good_until == after.expire_at == until
    assert (after.status, after.enqueued_at) == (before.status, before.enqueued_at)


def test_replaced_arguments_come_with_their_version(lab: Lab) -> None:
    holder = send(lab, version=1, args="[1]")
    send(lab, "replace", version=2, args="[1, 2]")
    after = lab.task(holder.id)
    assert (after.version, after.args) == (2, "[1, 2]")


def test_a_send_whose_task_was_replaced_may_be_repeated(lab: Lab) -> None:
    first = submission(unique_slot=SLOT, enqueue_sha="sha-1")
    second = submission(unique_slot=SLOT, enqueue_sha="sha-2", args="[2]", on_conflict="replace")
    assert lab.submit(first) == [Submitted(first.id, SubmitAnswer.CREATED)]
    for _ in range(2):
        assert lab.submit(second) == [Submitted(first.id, SubmitAnswer.REPLACED)]
        # Its answer was lost, so it is sent again: it is the same send still.
        assert lab.submit(first) == [Submitted(first.id, SubmitAnswer.EXISTING)]
    assert lab.task(first.id).args == "[2]"
    other = first._replace(enqueue_sha="sha-3")
    assert lab.submit(other) == [Submitted(first.id, SubmitAnswer.MISMATCH)]


def test_replace_leaves_a_task_that_has_started_before(lab: Lab) -> None:
    task = lab.running(unique_slot=SLOT, max_retries=1)
    lab.end(task, Failed(BOOM, listed=True), Policy(retry=Retry(1)))
    assert lab.status(task.id) is TaskStatus.PENDING
    before = lab.contents()
    assert send(lab, "replace", args="[2]") == Submitted(task.id, SubmitAnswer.EXISTING)
    assert lab.contents() == before


# debounce: the same task, later.


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.SCHEDULED])
def test_debounce_moves_the_task_to_the_new_time(lab: Lab, status: TaskStatus) -> None:
    holder = lab.reach(status, unique_slot=SLOT, args="[1]")
    now = lab.clock.advance(5)
    answer = send(lab, "debounce", delay_us=30 * SECOND, args="[2]")
    after = lab.task(holder.id)
    assert answer == Submitted(holder.id, SubmitAnswer.DEBOUNCED)
    assert after.status is TaskStatus.SCHEDULED
    assert after.run_at == after.due_at == after.enqueued_at == now + 30 * SECOND
    assert after.args == "[1]"


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.SCHEDULED])
@pytest.mark.parametrize(
    ("fields", "until", "good_for"),
    [
        ({}, None, None),
        ({"good_until": MORNING + 99 * SECOND}, MORNING + 99 * SECOND, None),
        ({"good_for_us": 7 * SECOND}, MORNING + 12 * SECOND, 7 * SECOND),
        ({"good_for_us": 7 * SECOND, "delay_us": 30 * SECOND}, MORNING + 42 * SECOND, 7 * SECOND),
    ],
)
def test_debounce_takes_the_new_deadline(
    lab: Lab,
    status: TaskStatus,
    fields: dict[str, Any],
    until: int | None,
    good_for: int | None,
) -> None:
    """The old one may pass before the new time comes."""
    old = MORNING + 8 * SECOND
    holder = lab.reach(status, unique_slot=SLOT, good_until=old, good_for_us=3)
    lab.clock.advance(5)
    assert send(lab, "debounce", **fields) == Submitted(holder.id, SubmitAnswer.DEBOUNCED)
    after = lab.task(holder.id)
    assert (after.good_until, after.expire_at, after.good_for_us) == (until, until, good_for)
    lab.run(operate.reschedule([holder.id], move=True, delay_us=SECOND, priority=3))
    after = lab.task(holder.id)
    assert (after.good_until, after.expire_at, after.good_for_us) == (until, until, good_for)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Failed(BOOM, listed=True), TaskStatus.SCHEDULED),
        (SnoozeAsked(60 * SECOND), TaskStatus.SCHEDULED),
        (NotBegun(), TaskStatus.PENDING),
    ],
)
def test_debounce_leaves_a_task_that_waits_for_its_next_run(
    lab: Lab, outcome: Outcome, status: TaskStatus
) -> None:
    task = lab.running(unique_slot=SLOT, max_retries=1)
    lab.end(task, outcome, Policy(retry=Retry(1, delay=60)))
    assert lab.status(task.id) is status
    before = lab.contents()
    answer = send(lab, "debounce", delay_us=3600 * SECOND, good_for_us=SECOND)
    assert answer == Submitted(task.id, SubmitAnswer.EXISTING)
    assert lab.contents() == before


def test_debounce_to_a_fixed_time(lab: Lab) -> None:
    holder = send(lab, delay_us=SECOND)
    send(lab, "debounce", run_at=MORNING + 77 * SECOND)
    assert lab.task(holder.id).due_at == MORNING + 77 * SECOND


@pytest.mark.parametrize("on_conflict", ["replace", "debounce"])
@pytest.mark.parametrize("status", [TaskStatus.WAITING, TaskStatus.CLAIMED, TaskStatus.RUNNING])
def test_a_task_that_waits_or_runs_is_left_alone(
    lab: Lab, status: TaskStatus, on_conflict: OnConflict
) -> None:
    holder = lab.reach(status, unique_slot=SLOT)
    before = lab.contents()
    assert send(lab, on_conflict, delay_us=9).id == holder.id
    assert lab.contents() == before


# resubmit takes the key again.


def test_resubmit_takes_the_key_again(lab: Lab) -> None:
    ended = lab.reach(TaskStatus.FAILED, unique_slot=SLOT)
    lab.run(operate.resubmit([ended.id]))
    assert lab.task(ended.id).unique_slot == SLOT
    assert send(lab) == Submitted(ended.id, SubmitAnswer.EXISTING)


def test_resubmit_of_a_task_whose_key_is_taken_is_a_conflict_and_writes_nothing(lab: Lab) -> None:
    ended = lab.reach(TaskStatus.FAILED, unique_slot=SLOT)
    other = lab.reach(TaskStatus.FAILED)
    holder = send(lab)
    before = lab.contents()
    with pytest.raises(UniqueConflict) as caught:
        lab.run(operate.resubmit([other.id, ended.id]))
    assert caught.value.task_id.bytes == holder.id
    assert lab.contents() == before


def test_two_ended_tasks_of_one_key_cannot_both_be_resubmitted(lab: Lab) -> None:
    ended = [lab.reach(TaskStatus.CANCELLED, unique_slot=SLOT).id for _ in range(2)]
    with pytest.raises(UniqueConflict, match="only one of them can be live") as caught:
        lab.run(operate.resubmit(ended))
    assert caught.value.rival_id is not None
    assert {caught.value.task_id.bytes, caught.value.rival_id.bytes} == set(ended)
    assert lab.statuses(ended) == [TaskStatus.CANCELLED] * 2
    assert lab.run(operate.resubmit([ended[1], new_id()]))[ended[1]]


# until: when the key is free again.

TO_START = (TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING, TaskStatus.CLAIMED)


@on_each_engine
@pytest.mark.parametrize("status", TaskStatus)
def test_until_started_is_held_until_then(lab: Lab, status: TaskStatus) -> None:
    task = lab.reach(status, unique_slot=SLOT, unique_until="started")
    held = lab.task(task.id).unique_slot is not None
    assert held is (status in TO_START)
    assert (send(lab).id == task.id) is held


@on_each_engine
def test_a_claim_that_starts_at_once_frees_a_key_that_is_held_until_started(lab: Lab) -> None:
    (sent,) = lab.submit(submission(unique_slot=SLOT, unique_until="started"))
    (claimed,) = lab.claim(child=claims.ChildIdentity(HOST, PID, PROCESS)).tasks
    assert claimed.id == sent.id
    assert lab.status(sent.id) is TaskStatus.RUNNING
    assert send(lab).answer is SubmitAnswer.CREATED


@on_each_engine
def test_a_retry_leaves_a_key_free_that_was_held_until_started(lab: Lab) -> None:
    task = lab.running(unique_slot=SLOT, unique_until="started", max_retries=1)
    assert send(lab).answer is SubmitAnswer.CREATED
    lab.end(task, Failed(BOOM, listed=True), Policy(retry=Retry(1, delay=60)))
    assert lab.status(task.id) is TaskStatus.SCHEDULED
    assert lab.task(task.id).unique_slot is None


@on_each_engine
@pytest.mark.parametrize("status", ENDED)
def test_until_deleted_outlives_the_run(lab: Lab, status: TaskStatus) -> None:
    task = lab.reach(status, unique_slot=SLOT, unique_until="deleted")
    assert send(lab) == Submitted(task.id, SubmitAnswer.EXISTING)
    assert send(lab, "raise") == Submitted(task.id, SubmitAnswer.CONFLICT)
    assert send(lab, "replace") == Submitted(task.id, SubmitAnswer.EXISTING)
    assert send(lab, "debounce", delay_us=SECOND) == Submitted(task.id, SubmitAnswer.EXISTING)
    assert lab.run(operate.delete([task.id])) == {task.id: True}
    assert send(lab).answer is SubmitAnswer.CREATED


@on_each_engine
@pytest.mark.parametrize("until", ["started", "deleted"])
def test_a_resubmitted_task_has_its_key_again(lab: Lab, until: str) -> None:
    task = lab.reach(TaskStatus.FAILED, unique_slot=SLOT, unique_until=until)
    assert lab.run(operate.resubmit([task.id])) == {task.id: True}
    assert send(lab) == Submitted(task.id, SubmitAnswer.EXISTING)


@on_each_engine
def test_a_resubmit_meets_who_took_the_key_after_it_had_started(lab: Lab) -> None:
    task = lab.reach(TaskStatus.FAILED, unique_slot=SLOT, unique_until="started")
    rival = send(lab)
    with pytest.raises(UniqueConflict) as caught:
        lab.run(operate.resubmit([task.id]))
    assert caught.value.task_id.bytes == rival.id


# period: one for each key and period, by the database's clock.

MINUTE = 60 * SECOND


def in_a_minute(lab: Lab, **fields: Any) -> Submitted:
    return send(lab, unique_until="deleted", unique_period_us=MINUTE, **fields)


@on_each_engine
def test_one_for_each_period_however_the_first_has_ended(lab: Lab) -> None:
    lab.clock.advance((MINUTE - MORNING % MINUTE) / SECOND)
    first = in_a_minute(lab)
    assert first.answer is SubmitAnswer.CREATED
    lab.fail(lab.started(lab.claim_of(first.id)))
    lab.clock.advance(59)
    assert in_a_minute(lab, sent_at=1) == Submitted(first.id, SubmitAnswer.EXISTING)
    assert in_a_minute(lab, sent_at=1, delay_us=2 * SECOND).answer is SubmitAnswer.CREATED
    lab.clock.advance(1)
    assert in_a_minute(lab).answer is SubmitAnswer.EXISTING
    lab.clock.advance(60)
    assert in_a_minute(lab).answer is SubmitAnswer.CREATED


@on_each_engine
def test_a_period_of_another_length_is_another_key(lab: Lab) -> None:
    assert in_a_minute(lab).answer is SubmitAnswer.CREATED
    assert send(lab, unique_period_us=2 * MINUTE).answer is SubmitAnswer.CREATED
    assert send(lab).answer is SubmitAnswer.CREATED


@on_each_engine
def test_a_batch_has_one_for_each_period(lab: Lab) -> None:
    fields: dict[str, Any] = {"unique_slot": SLOT, "unique_period_us": MINUTE}
    batch = [submission(**fields) for _ in range(3)]
    later = [submission(**fields, run_at=MORNING + 5 * MINUTE) for _ in range(2)]
    answers = lab.submit(*batch, *later)
    created = [answer for answer in answers if answer.answer is SubmitAnswer.CREATED]
    assert len(created) == 2
    alike = lab.submit(*(submission(**fields) for _ in range(5)))
    assert {answer.answer for answer in alike} == {SubmitAnswer.EXISTING}
    assert {answer.id for answer in alike} == {created[0].id}
