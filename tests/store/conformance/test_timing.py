"""promote, expire, drop: what time alone does to tasks."""

from __future__ import annotations

import pytest

from holdfast.core.identity import new_id
from holdfast.core.payload.failure import decode_error
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, timing
from tests.support.locks import locked_rows
from tests.support.stores import MORNING, SECOND, Kind, Lab, Labs, on_each_engine

HOUR = 3600 * SECOND


# promote


@pytest.mark.parametrize(("passed", "promoted"), [(59, False), (60, True), (61, True)])
def test_a_task_is_promoted_when_its_time_has_come(lab: Lab, passed: int, promoted: bool) -> None:
    id = lab.send(delay_us=60 * SECOND)
    lab.clock.advance(passed)
    assert lab.run(timing.promote()) == ([id] if promoted else [])
    assert lab.status(id) is (TaskStatus.PENDING if promoted else TaskStatus.SCHEDULED)


def test_a_promoted_task_stands_where_its_time_puts_it(lab: Lab) -> None:
    late = lab.send(delay_us=20 * SECOND)
    early = lab.send(delay_us=10 * SECOND)
    now = lab.clock.advance(60)
    fresh = lab.send()
    promoted = lab.run(timing.promote())
    assert set(promoted) == {late, early}
    task = lab.task(early)
    assert (task.enqueued_at, task.run_at) == (MORNING + 10 * SECOND, MORNING + 10 * SECOND)
    assert (task.due_at, task.updated_at) == (None, now)
    assert [claimed.id for claimed in lab.claim().tasks] == [early, late, fresh]


def test_promotion_goes_in_batches_the_oldest_first(lab: Lab) -> None:
    ids = [lab.send(delay_us=seconds * SECOND) for seconds in (3, 1, 2)]
    lab.clock.advance(5)
    first = lab.run(timing.promote(2))
    assert set(first) == {ids[1], ids[2]}
    assert lab.run(timing.promote(2)) == [ids[0]]
    assert lab.run(timing.promote(2)) == []


def test_an_operator_promotes_at_once(lab: Lab) -> None:
    scheduled, pending = lab.send(delay_us=HOUR), lab.send()
    assert lab.run(timing.promote_now([scheduled, pending, new_id()])) == [scheduled]
    assert lab.status(scheduled) is TaskStatus.PENDING


def test_the_next_time_something_comes_due(lab: Lab) -> None:
    assert lab.run(timing.next_due()) == (None, MORNING)
    lab.send(delay_us=20 * SECOND)
    soon = lab.send(delay_us=10 * SECOND)
    now = lab.clock.advance(15)
    assert lab.run(timing.next_due()) == (MORNING + 10 * SECOND, now)
    lab.run(timing.promote_now([soon]))
    assert lab.run(timing.next_due()).at == MORNING + 20 * SECOND


# expire


@pytest.mark.parametrize("status", [TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING])
def test_what_was_not_claimed_in_time_expires(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status, good_until=MORNING + 10 * SECOND)
    lab.clock.advance(9.999_999)
    assert lab.run(timing.expire()) == []
    now = lab.clock.advance(0.000_001)
    assert lab.run(timing.expire()) == [case.id]
    record = lab.task(case.id)
    assert (record.status, record.error_code) == (TaskStatus.EXPIRED, "TASK_EXPIRED")
    assert record.finished_at == now
    assert record.result is not None
    assert decode_error(record.result).error_code == "TASK_EXPIRED"
    assert record.failed_reason
    assert (record.dead, record.failed_at, record.expire_at) == (False, None, None)


def test_claim_and_expire_agree_about_the_moment(lab: Lab) -> None:
    """At each moment exactly one of them takes the task."""
    for left in (1, 0):
        lab.send(good_until=lab.clock.now + SECOND)
        lab.clock.move_to(lab.clock.now + SECOND - left)
        claimed = lab.claim().tasks
        assert bool(claimed) != bool(lab.run(timing.expire()))


def test_what_is_in_flight_does_not_expire_but_what_comes_back_does(lab: Lab) -> None:
    lab.send_many(2, good_until=MORNING + 10 * SECOND)
    claimed, running = lab.claim().tasks
    lab.start(running)
    lab.clock.advance(20)
    assert lab.run(timing.expire()) == []
    lab.release(claimed)
    assert lab.run(timing.expire()) == [claimed.id]
    assert lab.complete(running).status is TaskStatus.COMPLETED


def test_tasks_without_a_deadline_never_expire(lab: Lab) -> None:
    lab.send()
    lab.clock.advance(10**9)
    assert lab.run(timing.expire()) == []


def test_expiry_goes_in_batches_the_oldest_first(lab: Lab) -> None:
    ids = [lab.send(good_until=MORNING + seconds * SECOND) for seconds in (3, 1, 2)]
    lab.clock.advance(5)
    first = lab.run(timing.expire(2))
    assert set(first) == {ids[1], ids[2]}
    assert lab.run(timing.expire(2)) == [ids[0]]


# drop


def test_what_no_worker_knows_is_dropped(lab: Lab) -> None:
    unknown, known = lab.send(task_name="gone"), lab.send()
    newer = lab.send(version=2)
    lab.clock.advance(60)
    dropped = lab.run(timing.drop("q", known=["t@1"], before=lab.clock.now))
    assert dropped == {unknown: "gone@1", newer: "t@2"}
    record = lab.task(unknown)
    assert (record.status, record.error_code) == (TaskStatus.DROPPED, "TASK_DROPPED")
    assert record.finished_at == record.failed_at == lab.clock.now
    assert record.result is not None
    assert decode_error(record.result).error_code == "TASK_DROPPED"
    assert (record.dead, record.attempt) == (True, 0)
    assert lab.status(known) is TaskStatus.PENDING


def test_what_has_not_waited_long_enough_is_not_dropped(lab: Lab) -> None:
    old = lab.send()
    lab.clock.advance(60)
    young = lab.send()
    assert lab.run(timing.drop("q", known=[], before=lab.clock.now)) == {old: "t@1"}
    assert lab.status(young) is TaskStatus.PENDING


@on_each_engine
def test_a_drop_examines_a_bounded_part_of_the_queue_and_can_go_on(lab: Lab) -> None:
    lab.send_many(1000)
    unknown = lab.send(task_name="unknown")
    later = lab.clock.now + 1
    beyond = lab.run(claims.horizon("q"))
    assert lab.run(timing.drop("q", known=["t@1"], before=later)) == {}
    assert beyond is not None
    dropped = lab.run(timing.drop("q", known=["t@1"], before=later, after=beyond))
    assert dropped == {unknown: "unknown@1"}
    assert lab.run(claims.horizon("q", beyond)) is None


def test_dropping_stays_in_its_queue_and_batch(lab: Lab) -> None:
    other = lab.send(queue_name="other")
    ids = lab.send_many(3)
    later = lab.clock.now + 1
    assert len(lab.run(timing.drop("q", known=[], before=later, batch=2))) == 2
    assert len(lab.run(timing.drop("q", known=[], before=later, batch=2))) == 1
    assert set(lab.statuses(ids)) == {TaskStatus.DROPPED}
    assert lab.status(other) is TaskStatus.PENDING


@pytest.mark.parametrize(
    ("options", "dead"),
    [(None, True), ("{}", True), ('{"dead_letter":true}', True), ('{"dead_letter":false}', False)],
)
def test_a_dropped_task_is_a_dead_letter_unless_it_has_none(
    lab: Lab, options: str | None, dead: bool
) -> None:
    id = lab.send(task_options=options)
    lab.run(timing.drop("q", known=[], before=lab.clock.now + 1))
    assert lab.task(id).dead is dead


# A row that somebody else is writing is left for the next pass (PostgreSQL).


def test_time_waits_for_nobody_who_holds_a_row(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        due, late, unknown = (
            [lab.send(delay_us=SECOND) for _ in range(2)],
            [lab.send(good_until=MORNING + SECOND) for _ in range(2)],
            [lab.send(task_name="gone") for _ in range(2)],
        )
        lab.clock.advance(2)
        with locked_rows(lab, [due[0], late[0], unknown[0]]):
            assert lab.run(timing.promote()) == [due[1]]
            assert lab.run(timing.expire()) == [late[1]]
            dropped = lab.run(timing.drop("q", known=["t@1"], before=lab.clock.now))
            assert dropped == {unknown[1]: "gone@1"}
        assert lab.run(timing.promote()) == [due[0]]
        assert lab.run(timing.expire()) == [late[0]]
