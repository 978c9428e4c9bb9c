"""A task that may begin at once and has no key is written by a text of its own, in the same way."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.records import SubmitAnswer, TaskRecord
from holdfast.store.verbs.submit import PLAIN, submit
from tests.support.stores import Lab
from tests.support.verbs import submission


def but_for_id_and_times(task: TaskRecord) -> TaskRecord:
    return replace(task, id=b"", created_at=0, updated_at=0, enqueued_at=0)


def test_it_is_as_one_of_many(lab: Lab) -> None:
    """Two rows go the way of calls that are alike."""
    given = {
        "args": "[1]",
        "kwargs": '{"ü": "\\u0000"}',
        "version": 3,
        "priority": 7,
        "task_options": "{}",
        "tags": '["a"]',
        "max_retries": 2,
        "parent_id": bytes(range(16)),
        "root_id": bytes(range(1, 17)),
        "trace_context": "00-x",
        "concurrency_key": "k",
    }
    (alone,) = lab.run(submit([submission(**given)]))
    one, _ = lab.run(submit([submission(**given), submission(**given)]))
    assert (alone.answer, one.answer) == (SubmitAnswer.CREATED, SubmitAnswer.CREATED)
    assert but_for_id_and_times(lab.task(alone.id)) == but_for_id_and_times(lab.task(one.id))


def test_a_repeated_one_is_known(lab: Lab) -> None:
    sent = submission()
    assert lab.run(submit([sent]))[0].answer is SubmitAnswer.CREATED
    assert lab.run(submit([sent]))[0].answer is SubmitAnswer.EXISTING
    other = sent._replace(enqueue_sha="another")
    assert lab.run(submit([other]))[0].answer is SubmitAnswer.MISMATCH


def test_one_with_a_delay_of_nothing_is_not_plain(lab: Lab) -> None:
    (sent,) = lab.run(submit([submission(delay_us=0)]))
    assert lab.task(sent.id).run_at == lab.clock.now


def test_the_empty_columns_are_empty_by_themselves() -> None:
    assert set(PLAIN.empty) == {None, 0}
