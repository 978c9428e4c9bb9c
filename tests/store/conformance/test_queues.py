"""Queues: pausing, resuming, and what waits in them."""

from __future__ import annotations

import pytest

from holdfast.core.records import QueueRecord
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import live_tasks, queues
from tests.store.plans.asked import record
from tests.support.stores import MORNING, SECOND, Lab


def test_no_tasks_no_queues(lab: Lab) -> None:
    assert lab.run(queues.list_queues()) == []


def test_queues_with_waiting_tasks_are_listed_by_name(lab: Lab) -> None:
    lab.send_many(2, queue_name="b")
    lab.clock.advance(1)
    lab.send(queue_name="a")
    lab.send(queue_name="b")
    assert lab.run(queues.list_queues()) == [
        QueueRecord("a", None, None, 1, MORNING + SECOND),
        QueueRecord("b", None, None, 3, MORNING),
    ]


def test_only_pending_and_scheduled_tasks_wait_in_a_queue(lab: Lab) -> None:
    later = lab.reach(TaskStatus.SCHEDULED)
    for status in set(TaskStatus) - {TaskStatus.PENDING, TaskStatus.SCHEDULED}:
        lab.reach(status)
    queue = lab.task(later.id).queue_name
    assert lab.run(queues.list_queues()) == [QueueRecord(queue, None, None, 0, None, 1)]


def test_the_oldest_is_the_oldest_whatever_its_priority(lab: Lab) -> None:
    lab.send(priority=90)
    lab.clock.advance(5)
    lab.send(priority=10)
    (queue,) = lab.run(queues.list_queues())
    assert queue.oldest_enqueued_at == MORNING


@pytest.mark.parametrize("oldest", [(50, None), (90, None), (10, "a"), (90, "b"), (50, "c")])
def test_the_oldest_is_found_among_keys_and_priorities(
    lab: Lab, oldest: tuple[int, str | None]
) -> None:
    every = [(50, None), (90, None), (10, "a"), (90, "b"), (50, "c")]
    for priority, key in [oldest, *(each for each in every if each != oldest)]:
        lab.send(priority=priority, concurrency_key=key)
        lab.clock.advance(1)
    lab.send(queue_name="other")
    for few in (1, 5, 6, 100):
        assert lab.run(queues.list_queues(few=few)) == [
            QueueRecord("other", None, None, 1, MORNING + 5 * SECOND),
            QueueRecord("q", None, None, 5, MORNING),
        ]


def test_no_more_heads_are_visited_than_ten_of_each_queue_and_so_many(lab: Lab) -> None:
    for number in reversed(range(20)):
        lab.send(priority=number + 1)
        lab.clock.advance(1)
    (queue,) = lab.run(queues.list_queues(few=20, heads=1))
    assert queue.oldest_enqueued_at == MORNING + 10 * SECOND
    (queue,) = lab.run(queues.list_queues(few=20, heads=19))
    assert queue.oldest_enqueued_at == MORNING + SECOND
    (queue,) = lab.run(queues.list_queues(few=20, heads=20))
    assert queue.oldest_enqueued_at == MORNING


def test_heads_are_shared_by_the_queues_that_have_many_tasks(lab: Lab) -> None:
    for number in reversed(range(20)):
        lab.send_many(1, queue_name="a", priority=number + 1)
        lab.send_many(1, queue_name="b", priority=number + 1)
        lab.clock.advance(1)
    lab.send(queue_name="c")
    found = lab.run(queues.list_queues(few=20, heads=30))
    assert [queue.oldest_enqueued_at for queue in found] == [
        MORNING + 5 * SECOND,
        MORNING + 5 * SECOND,
        MORNING + 20 * SECOND,
    ]


def test_of_many_queues_fewer_tasks_each_are_followed() -> None:
    def each(number: int) -> object:
        asked = live_tasks.live_tasks(most=1000, queues=[str(n) for n in range(number)])
        (_, statement) = record(asked, {"next_due": [(None, 0)]})
        return statement.params["each"]

    assert [each(number) for number in (0, 1, 10, 20, 1000, 5000)] == [
        1000,
        1000,
        1000,
        500,
        10,
        10,
    ]


def test_counting_stops_at_the_cap(lab: Lab) -> None:
    lab.send_many(5)
    (queue,) = lab.run(queues.list_queues(cap=3))
    assert queue.pending == 3


def test_a_paused_queue_is_listed_with_who_and_when_even_if_it_is_empty(lab: Lab) -> None:
    lab.clock.advance(1)
    lab.run(queues.pause("idle", by="ann"))
    assert lab.run(queues.list_queues()) == [QueueRecord("idle", MORNING + SECOND, "ann", 0, None)]


def test_pausing_twice_keeps_the_first(lab: Lab) -> None:
    lab.run(queues.pause("q", by="ann"))
    lab.clock.advance(1)
    lab.run(queues.pause("q", by="bob"))
    (queue,) = lab.run(queues.list_queues())
    assert (queue.paused_at, queue.paused_by) == (MORNING, "ann")


def test_resuming(lab: Lab) -> None:
    assert lab.run(queues.resume("q")) is False
    lab.run(queues.pause("q", by="ann"))
    assert lab.run(queues.resume("q")) is True
    assert lab.run(queues.resume("q")) is False
    (queue,) = lab.run(queues.list_queues())
    assert (queue.paused_at, queue.paused_by) == (None, None)


def test_a_second_pause_after_a_resume_is_a_new_one(lab: Lab) -> None:
    lab.run(queues.pause("q", by="ann"))
    lab.run(queues.resume("q"))
    now = lab.clock.advance(9)
    lab.run(queues.pause("q"))
    (queue,) = lab.run(queues.list_queues())
    assert (queue.paused_at, queue.paused_by) == (now, None)


def test_a_pause_stops_claims_of_its_queue_only(lab: Lab) -> None:
    lab.send(queue_name="a")
    b = lab.send(queue_name="b")
    lab.run(queues.pause("a"))
    assert lab.claim(queue="a").tasks == []
    assert [task.id for task in lab.claim(queue="b").tasks] == [b]


def test_what_was_claimed_before_the_pause_goes_on(lab: Lab) -> None:
    task = lab.claimed()
    lab.run(queues.pause("q"))
    lab.started(task)
    assert lab.complete(task).status is TaskStatus.COMPLETED


def test_a_queue_of_scheduled_tasks_is_listed_whatever_is_due_before_them(lab: Lab) -> None:
    for _ in range(5):
        lab.send(queue_name="a", delay_us=SECOND)
    lab.send(queue_name="b", delay_us=60 * SECOND)
    found = lab.run(queues.list_queues(cap=3))
    assert [(queue.queue_name, queue.pending, queue.scheduled) for queue in found] == [
        ("a", 0, 3),
        ("b", 0, 1),
    ]
