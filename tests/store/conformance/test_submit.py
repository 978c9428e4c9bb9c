"""submit: how tasks come into being, and what a repeated send is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.core.errors import StoreError
from holdfast.core.identity import new_id
from holdfast.core.records import Edge, Submission, SubmitAnswer
from holdfast.core.status import TASK_TERMINAL_STATES, TaskStatus
from holdfast.store.verbs.inspect import tasks_by_id
from holdfast.store.verbs.submit import submit
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine
from tests.support.verbs import submission

HOUR = 3600 * SECOND


def test_everything_that_was_sent_is_stored(lab: Lab) -> None:
    sent = submission(
        task_name="mail.send",
        version=3,
        queue_name="mails",
        priority=7,
        args='["a",1]',
        kwargs='{"to":"b"}',
        enqueue_sha="0f" * 32,
        sent_at=1_234_567_890_123_456,
        task_options='{"timeout":9.0}',
        tags='["x","y"]',
        run_at=MORNING + HOUR,
        good_until=MORNING + 2 * HOUR,
        good_for_us=55,
        max_retries=4,
        unique_key="mail.send:b",
        unique_slot="mail.send:b",
        unique_until="started",
        workflow_id=new_id(),
        parent_id=new_id(),
        root_id=new_id(),
        schedule_name="nightly",
        schedule_tick=MORNING - HOUR,
        trace_context="00-abc-def-01",
    )
    lab.submit(sent)
    task = lab.task(sent.id)
    elsewhere = {"delay_us", "on_conflict", "depends_on", "deps_needed", "unique_period_us"}
    elsewhere |= {"is_routable"}
    for column in set(Submission._fields) - elsewhere:
        assert getattr(task, column) == getattr(sent, column), column
    assert task.expire_at == sent.good_until
    assert (task.attempt, task.retry_count, task.crash_count) == (0, 0, 0)
    assert task.dead is False


def test_a_plain_task_is_pending_from_now_on(lab: Lab) -> None:
    task = lab.task(lab.send())
    assert task.status is TaskStatus.PENDING
    assert task.created_at == task.updated_at == task.enqueued_at == MORNING
    assert task.run_at is None
    assert task.due_at is None


def test_a_delay_counts_from_the_databases_clock_not_from_the_callers(lab: Lab) -> None:
    task = lab.task(lab.send(delay_us=HOUR, sent_at=17))
    assert task.status is TaskStatus.SCHEDULED
    assert task.run_at == task.due_at == task.enqueued_at == MORNING + HOUR
    assert task.created_at == MORNING
    assert task.sent_at == 17


@pytest.mark.parametrize(
    "when", [{"run_at": MORNING - HOUR}, {"run_at": MORNING}, {"delay_us": 0}], ids=repr
)
def test_a_time_that_has_come_needs_no_scheduling(lab: Lab, when: dict[str, int]) -> None:
    task = lab.task(lab.send(**when))
    assert task.status is TaskStatus.PENDING
    assert task.due_at is None
    assert task.enqueued_at == MORNING


def test_nothing_is_submitted_by_an_empty_batch(lab: Lab) -> None:
    assert lab.submit() == []


def test_a_batch_is_answered_in_its_order(lab: Lab) -> None:
    old = lab.send()
    batch = [
        submission(),
        submission(id=old),
        submission(delay_us=5, tags='["t"]', unique_slot="s"),
        submission(id=old, enqueue_sha="other"),
        submission(),
    ]
    answers = lab.submit(*batch)
    assert [answer.id for answer in answers] == [sent.id for sent in batch]
    assert [answer.answer for answer in answers] == [
        SubmitAnswer.CREATED,
        SubmitAnswer.EXISTING,
        SubmitAnswer.CREATED,
        SubmitAnswer.MISMATCH,
        SubmitAnswer.CREATED,
    ]


@pytest.mark.parametrize("met", [(), (0,), (7,), (8, 19), (20,), tuple(range(21))])
def test_a_large_batch_is_answered_row_by_row(lab: Lab, met: tuple[int, ...]) -> None:
    """Many rows are written together; which of them met another must be known all the same."""
    batch = [submission(args=f"[{n}]") for n in range(21)]
    lab.submit(*(batch[n] for n in met))
    answers = lab.submit(*batch)
    assert [n for n, answer in enumerate(answers) if answer.answer is SubmitAnswer.EXISTING] == [
        *met
    ]
    assert {answer.answer for answer in answers} <= {SubmitAnswer.CREATED, SubmitAnswer.EXISTING}
    assert sorted(task.id for task in lab.claim(30).tasks) == sorted(sent.id for sent in batch)


KINDS: list[dict[str, object]] = [
    {},
    {"version": 3, "queue_name": "mails", "priority": 7, "max_retries": 4},
    {"args": '["a\\u0000é\U0001f600\\"\\\\",1,1e300]', "kwargs": '{"to":"b\\n"}'},
    {"task_options": '{"timeout":9.0}', "tags": '["x","y\u2028"]'},
    {"delay_us": HOUR},
    {"delay_us": 0},
    {"run_at": MORNING + HOUR, "good_until": MORNING + 2 * HOUR},
    {"run_at": MORNING - HOUR, "good_for_us": 55},
    {"good_for_us": 2**53 + 1, "sent_at": 1_234_567_890_123_456},
    {"workflow_id": new_id(), "parent_id": new_id(), "root_id": new_id()},
    {"schedule_name": "nightly", "schedule_tick": MORNING - HOUR, "trace_context": "00-abc-01"},
]


def test_a_task_is_stored_alike_whatever_is_sent_with_it(lab: Lab) -> None:
    """By itself, among others of its kind, or among others: three statements, the same rules."""
    single = [submission(**kind) for kind in KINDS]
    mixed = [submission(**kind) for kind in KINDS]
    for one in single:
        assert lab.run(submit([one])) == [(one.id, SubmitAnswer.CREATED)]
    assert lab.run(submit(mixed)) == [(sent.id, SubmitAnswer.CREATED) for sent in mixed]
    for kind, one, other in zip(KINDS, single, mixed, strict=True):
        assert replace(lab.task(one.id), id=other.id) == lab.task(other.id)
        several = [submission(**kind) for _ in range(3)]
        assert lab.run(submit(several)) == [(sent.id, SubmitAnswer.CREATED) for sent in several]
        for sent in several:
            assert replace(lab.task(one.id), id=sent.id) == lab.task(sent.id)


@pytest.mark.parametrize("number", [1, 3, 40])
def test_tasks_that_were_there_already_are_not_doubled(lab: Lab, number: int) -> None:
    """The answer to the commit of some was lost, so they are sent again among others."""
    batch = [submission(args=f"[{n}]") for n in range(number)]
    lab.run(submit(batch[::2]))
    answers = lab.run(submit(batch))
    assert [answer.id for answer in answers] == [sent.id for sent in batch]
    there = [SubmitAnswer.EXISTING, SubmitAnswer.CREATED]
    assert [answer.answer for answer in answers] == [there[n % 2] for n in range(number)]
    assert sorted(task.id for task in lab.claim(50).tasks) == sorted(sent.id for sent in batch)


def test_an_id_with_another_payload_does_not_touch_its_neighbours(lab: Lab) -> None:
    old = lab.send()
    batch = [submission(), submission(id=old, enqueue_sha="other")]
    answers = lab.run(submit(batch))
    assert answers[1].answer is SubmitAnswer.MISMATCH
    assert answers[0].answer is SubmitAnswer.CREATED
    assert lab.task(old).enqueue_sha != "other"


def test_a_batch_is_refused_as_a_whole(lab: Lab) -> None:
    batch = [submission(), submission(priority=0), submission()]
    with pytest.raises(StoreError):
        lab.run(submit(batch))
    assert lab.claim().tasks == []


def test_a_thousand_tasks_go_in_one_batch(lab: Lab) -> None:
    ids = lab.send_many(1000)
    assert set(lab.statuses(ids)) == {TaskStatus.PENDING}


@on_each_engine
@pytest.mark.parametrize("status", TaskStatus)
def test_a_repeated_send_is_one_task_whatever_became_of_it(lab: Lab, status: TaskStatus) -> None:
    sent = submission()
    lab.reach(status, id=sent.id)
    before = lab.contents()
    (answer,) = lab.submit(sent)
    assert (answer.id, answer.answer) == (sent.id, SubmitAnswer.EXISTING)
    assert lab.contents() == before


def test_a_completed_task_does_not_run_twice_because_its_send_was_repeated(lab: Lab) -> None:
    sent = submission()
    lab.submit(sent)
    lab.complete(lab.run_again(sent.id))
    lab.submit(sent)
    assert lab.claim().tasks == []
    assert lab.status(sent.id) in TASK_TERMINAL_STATES


def test_the_same_id_with_another_payload_is_a_mismatch_and_changes_nothing(lab: Lab) -> None:
    sent = submission()
    lab.submit(sent)
    before = lab.contents()
    (answer,) = lab.submit(sent._replace(args="[2]", enqueue_sha="sha-2"))
    assert (answer.id, answer.answer) == (sent.id, SubmitAnswer.MISMATCH)
    assert lab.contents() == before


def test_the_same_send_twice_in_one_batch_is_one_task(lab: Lab) -> None:
    sent = submission()
    answers = lab.submit(sent, sent, sent._replace(enqueue_sha="other"))
    assert [answer.answer for answer in answers] == [
        SubmitAnswer.CREATED,
        SubmitAnswer.EXISTING,
        SubmitAnswer.MISMATCH,
    ]
    assert len(lab.claim().tasks) == 1


def test_a_send_that_is_repeated_after_a_delete_makes_a_new_task(lab: Lab) -> None:
    case = lab.reach(TaskStatus.COMPLETED)
    lab.sql("DELETE FROM holdfast_tasks WHERE id = :id", id=case.id)
    (answer,) = lab.submit(submission(id=case.id))
    assert answer.answer is SubmitAnswer.CREATED


def test_good_for_counts_from_when_it_may_run_by_the_databases_clock(lab: Lab) -> None:
    now = submission(good_for_us=5_000_000, workflow_id=bytes(16))
    later = submission(good_for_us=5_000_000, delay_us=60_000_000)
    waiting = submission(
        good_for_us=5_000_000,
        workflow_id=bytes(16),
        depends_on=[Edge(now.id)],
    )
    lab.run(submit([now, later]))
    lab.run(submit([waiting]))
    found = lab.run(tasks_by_id([now.id, later.id, waiting.id]))
    at = found[now.id].created_at
    assert found[now.id].good_until == found[now.id].expire_at == at + 5_000_000
    assert found[later.id].good_until == found[later.id].expire_at == at + 65_000_000
    assert found[waiting.id].good_until is None
