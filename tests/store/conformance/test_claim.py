"""claim and release: who gets which tasks, in what order, under which lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.core.decide import Change
from holdfast.core.errors import StoreError
from holdfast.core.identity import new_id
from holdfast.core.lifecycle import Verb
from holdfast.core.options.policy import BY_NAME, Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Failed
from holdfast.core.records import LOST, Answer, ClaimedTask, Position
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.verbs import claims, leases, queues, timing
from tests.support.locks import locked_rows
from tests.support.stores import MORNING, SECOND, Kind, Lab, Labs
from tests.support.verbs import (
    BOOM,
    HOST,
    KNOWN,
    LEASE_US,
    PID,
    PROCESS,
    WORKER,
    new_token,
    submission,
)

HOUR = 3600 * SECOND


def claimed_ids(lab: Lab, wanted: int = 100, **options: object) -> list[bytes]:
    return [task.id for task in lab.claim(wanted, **options).tasks]  # type: ignore[arg-type]


def test_the_order_is_priority_then_age_then_id(lab: Lab) -> None:
    scheduled = lab.send(priority=1, delay_us=HOUR)
    low = lab.send(priority=90)
    first, second = sorted([new_id(), new_id()])
    lab.submit(submission(id=second, priority=5), submission(id=first, priority=5))
    lab.clock.advance(1)
    later = lab.send(priority=5)
    assert lab.status(scheduled) is TaskStatus.SCHEDULED
    assert claimed_ids(lab) == [first, second, later, low]


def test_no_more_are_taken_than_wanted(lab: Lab) -> None:
    ids = lab.send_many(5)
    assert claimed_ids(lab, 2) == ids[:2]
    assert claimed_ids(lab, 2) == ids[2:4]
    assert claimed_ids(lab, 2) == ids[4:]
    assert claimed_ids(lab, 2) == []


def test_a_claim_stays_in_its_queue(lab: Lab) -> None:
    lab.send(queue_name="a")
    b = lab.send(queue_name="b")
    assert claimed_ids(lab, queue="b") == [b]


@pytest.mark.parametrize(
    "known", [[], ["t"], ["t@2"], ["T@1"], ["other@1"], ["t@1 "]], ids=lambda known: str(known)
)
def test_what_the_worker_does_not_know_is_left(lab: Lab, known: list[str]) -> None:
    lab.send()
    before = lab.contents()
    assert claimed_ids(lab, known=known) == []
    assert lab.contents() == before


def test_what_it_knows_behind_what_it_does_not_is_taken(lab: Lab) -> None:
    lab.send_many(3, task_name="unknown")
    lab.send(version=2)
    id = lab.send()
    assert claimed_ids(lab, known=["t@1", "x@1"]) == [id]


def test_names_with_odd_letters_are_matched_exactly(lab: Lab) -> None:
    id = lab.send(task_name="a.b:c-d_E", version=12)
    assert claimed_ids(lab, known=[claims.known_name("a.b:c-d_E", 12)]) == [id]


def test_a_paused_queue_gives_nothing_until_it_is_resumed(lab: Lab) -> None:
    id = lab.send()
    lab.run(queues.pause("q"))
    assert claimed_ids(lab) == []
    assert lab.run(leases.count()) == 0
    lab.run(queues.resume("q"))
    assert claimed_ids(lab) == [id]


@pytest.mark.parametrize(("left", "taken"), [(1, True), (0, False), (-1, False)])
def test_a_task_is_claimed_strictly_before_its_good_until(lab: Lab, left: int, taken: bool) -> None:
    id = lab.send(good_until=MORNING + HOUR)
    lab.clock.move_to(MORNING + HOUR - left)
    assert claimed_ids(lab) == ([id] if taken else [])


def test_one_claim_is_one_token_and_one_lease_row_that_names_its_tasks(lab: Lab) -> None:
    lab.send_many(3)
    token = new_token()
    claimed = lab.claim(2, token=token, worker="w-9", lease_us=5 * SECOND)
    assert claimed.token == token
    assert {task.token for task in claimed.tasks} == {token}
    ((stored, worker, expires_at, tasks),) = lab.sql(
        "SELECT token, worker_id, expires_at, task_ids FROM holdfast_leases"
    )
    assert rows.uuid(stored) == token
    assert (worker, expires_at) == ("w-9", MORNING + 5 * SECOND)
    assert set(rows.keys(tasks)) == {task.key for task in claimed.tasks}
    for task in claimed.tasks:
        record = lab.task(task.id)
        assert record.claim_token == token
        assert (record.claimed_at, record.claimed_by_worker_id) == (MORNING, "w-9")


def test_no_tasks_no_lease_row(lab: Lab) -> None:
    assert lab.claim().tasks == []
    assert lab.run(leases.count()) == 0


def test_a_claimed_task_brings_all_that_running_it_needs(lab: Lab) -> None:
    sent = submission(
        args="[1]",
        kwargs='{"a":2}',
        task_options='{"timeout":3.0}',
        max_retries=4,
        good_until=MORNING + HOUR,
        parent_id=new_id(),
        root_id=new_id(),
        workflow_id=new_id(),
        trace_context="trace",
    )
    lab.submit(sent)
    (task,) = lab.claim().tasks
    record = lab.task(sent.id)
    for name in set(ClaimedTask.__struct_fields__) - {"key", "token"}:
        assert getattr(task, name) == getattr(record, name), name


@pytest.mark.parametrize(
    ("policies", "rules"),
    [
        ({KNOWN: ('{"retry":{"max_retries":3}}', 3)}, ('{"retry":{"max_retries":3}}', 3)),
        ({"other@1": ("{}", 9)}, (None, 0)),
        ({}, (None, 0)),
    ],
)
def test_a_task_that_was_sent_by_name_gets_the_rules_of_its_definition(
    lab: Lab, policies: dict[str, claims.Rules], rules: claims.Rules
) -> None:
    """They stay with it: whoever recovers it may not know its definition."""
    named, own = lab.send(task_options=BY_NAME), lab.send(task_options='{"timeout":3.0}')
    first, second = lab.claim(policies=policies).tasks
    assert (first.id, first.task_options, first.max_retries) == (named, *rules)
    assert (second.id, second.task_options) == (own, '{"timeout":3.0}')
    stored = lab.task(named)
    assert (stored.task_options, stored.max_retries) == rules


CHILD = claims.ChildIdentity(HOST, PID, PROCESS)


def sent(lab: Lab) -> list[bytes]:
    return lab.send_many(2)


def retried(lab: Lab) -> list[bytes]:
    """Tasks that have run before, have failed, and may run again."""
    ids = lab.send_many(2, max_retries=3)
    for task in lab.claim().tasks:
        lab.end(lab.started(task), Failed(BOOM, listed=True), Policy(retry=Retry(3, delay=1.0)))
    lab.clock.advance(5)
    lab.run(timing.promote())
    return ids


def sent_by_name(lab: Lab) -> list[bytes]:
    return lab.send_many(2, task_options=BY_NAME, priority=3)


@pytest.mark.parametrize("make", [sent, retried, sent_by_name])
def test_a_claim_for_a_child_leaves_what_a_claim_and_a_start_leave(
    lab: Lab, make: Callable[[Lab], list[bytes]]
) -> None:
    policies = {KNOWN: ('{"timeout":9.0}', 4)}
    one, other = make(lab)
    lab.clock.advance(1)
    (first,) = lab.claim(1, policies=policies).tasks
    lab.started(first)
    (second,) = lab.claim(1, policies=policies, child=CHILD).tasks
    assert (first.id, second.id) == (one, other)
    begun = lab.task(other)
    assert begun.status is TaskStatus.RUNNING
    assert begun.attempt == second.attempt + 1
    assert second.attempt == first.attempt
    assert begun == replace(lab.task(one), id=other, claim_token=second.token)
    assert lab.complete(second).answer is Answer.LANDED
    assert [a.attempt for a in lab.attempts(other)][-1] == begun.attempt


@pytest.mark.parametrize("status", [s for s in TaskStatus if s is not TaskStatus.PENDING])
def test_a_claim_for_a_child_starts_only_what_is_pending(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    before = lab.contents()
    assert lab.claim(child=CHILD, queue=case.claimed.queue_name).tasks == []
    assert lab.contents() == before


def test_a_claim_for_a_child_whose_answer_was_lost_is_undone(lab: Lab) -> None:
    ids, token = lab.send_many(3), new_token()
    lab.claim(2, token=token, child=CHILD)
    interrupted = Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)
    lab.run(leases.hand_back(token, interrupted, keys=None))
    assert lab.statuses(ids) == [TaskStatus.PENDING] * 3
    assert {(lab.task(id).retry_count, lab.task(id).crash_count) for id in ids} == {(0, 0)}
    assert [task.id for task in lab.claim().tasks] == ids


def test_a_token_is_good_for_one_claim(lab: Lab) -> None:
    """Whoever repeats a claim that landed gets nothing by it, and harms nothing."""
    ids = lab.send_many(2)
    token = new_token()
    first, second = lab.claim(token=token).tasks
    lab.start(first, second)
    lab.complete(first)
    before = lab.contents()
    assert claimed_ids(lab, token=token) == []
    assert lab.contents() == before
    lab.send()
    with pytest.raises(StoreError):
        lab.claim(token=token)
    assert lab.statuses(ids) == [TaskStatus.COMPLETED, TaskStatus.RUNNING]


# At most a thousand entries.


def test_a_claim_looks_at_a_thousand_entries_and_the_next_goes_on_behind_them(lab: Lab) -> None:
    lab.send_many(1000, task_name="unknown", priority=1)
    id = lab.send(priority=2)
    assert claimed_ids(lab) == []
    stopped = lab.run(claims.horizon("q"))
    assert stopped is not None
    assert stopped.priority == 1
    assert claimed_ids(lab, after=stopped) == [id]
    assert lab.run(claims.horizon("q", stopped)) is None


def test_which_of_many_queues_have_something(lab: Lab) -> None:
    queues = [f"t{number}" for number in range(300)]
    assert lab.run(claims.ready_queues(queues)) == []
    lab.send(queue_name="t7")
    lab.send(queue_name="t299")
    lab.send(queue_name="elsewhere")
    lab.send(queue_name="t8", delay_us=60_000_000)
    found = lab.run(claims.ready_queues(queues))
    assert sorted(found) == ["t299", "t7"]


def test_a_short_queue_has_no_horizon(lab: Lab) -> None:
    lab.send_many(10)
    assert lab.run(claims.horizon("q")) is None


def test_a_claim_may_start_behind_the_last_one(lab: Lab) -> None:
    ids = lab.send_many(4)
    (task,) = lab.claim(1).tasks
    place = Position(task.priority, task.enqueued_at, task.id)
    assert lab.claim(0).last is None
    assert claimed_ids(lab, 2, after=place) == ids[1:3]


# Giving back.


def test_a_released_task_stands_where_it_stood_and_has_cost_nothing(lab: Lab) -> None:
    ids = lab.send_many(3)
    before = [lab.task(id) for id in ids]
    lab.clock.advance(3)
    landings = lab.release(*lab.claim(2).tasks)
    assert [landing.answer for landing in landings] == [Answer.LANDED] * 2
    for id, old in zip(ids, before, strict=True):
        task = lab.task(id)
        assert task.status is TaskStatus.PENDING
        assert (task.enqueued_at, task.attempt) == (old.enqueued_at, 0)
        assert (task.claimed_at, task.claimed_by_worker_id) == (None, None)
        assert lab.attempts(id) == []
    assert claimed_ids(lab) == ids


def test_release_answers_for_each_task(lab: Lab) -> None:
    lab.send_many(3)
    a, b, c = lab.claim().tasks
    lab.start(b)
    lab.cancel(c.id)
    answers = lab.release(a, b, c)
    assert [answer.answer for answer in answers] == [Answer.LANDED, Answer.LOST, Answer.LOST]
    assert lab.status(b.id) is TaskStatus.RUNNING


def test_a_claim_whose_answer_was_lost_is_undone_by_its_token(lab: Lab) -> None:
    ids = lab.send_many(3)
    token = new_token()
    lab.claim(2, token=token)
    assert lab.run(claims.release_token(token, queue="q")) == 2
    assert lab.run(leases.count()) == 0
    assert set(lab.statuses(ids)) == {TaskStatus.PENDING}
    assert claimed_ids(lab) == ids


def test_a_claim_that_never_landed_leaves_nothing_to_undo(lab: Lab) -> None:
    lab.send()
    before = lab.contents()
    assert lab.run(claims.release_token(new_token(), queue="q")) == 0
    assert lab.contents() == before


def test_the_undone_claims_answer_arriving_late_starts_nothing(lab: Lab) -> None:
    lab.send()
    late = lab.claim()
    lab.run(claims.release_token(late.token, queue="q"))
    lab.claim(worker="w-2")
    assert lab.start(*late.tasks) == [LOST]


def test_the_lease_of_a_claim_lasts_as_long_as_was_asked(lab: Lab) -> None:
    lab.claimed()
    assert lab.sql("SELECT worker_id, expires_at FROM holdfast_leases") == [
        (WORKER, MORNING + LEASE_US)
    ]


# Rows that another transaction holds (PostgreSQL; on SQLite the writer is alone).


def test_a_claim_takes_other_tasks_than_those_somebody_holds(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        ids = lab.send_many(3)
        with locked_rows(lab, ids[:2]):
            assert claimed_ids(lab) == ids[2:]
        assert claimed_ids(lab) == ids[:2]
