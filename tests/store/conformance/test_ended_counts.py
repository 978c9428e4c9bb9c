"""Ends without a run of some worker's: each is counted once, by the status that it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from holdfast.core.decide import Change, decide
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed, StoppedByShutdown
from holdfast.core.records import Refused
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import leases, operate, refusal, statistics, steering, timing
from holdfast.store.verbs.leases import Abandoned
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import HOST, LEASE_US, QUEUE, WORKER
from tests.support.workflows import begin, complete, fail, hand_over, plan_of, step

NOT_BEGUN = [TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING, TaskStatus.CLAIMED]


def counted(lab: Lab) -> dict[str, int]:
    """What was ever counted."""
    found: Counter[str] = Counter()
    for each in lab.run(statistics.totals()):
        found.update({name: number for name, number in each.counts.items() if number})
    return dict(found)


def crashed(task: Abandoned) -> Change:
    return decide(task, Crashed(), Policy.decode(task.task_options), lambda: 0.5)


@pytest.mark.parametrize("status", NOT_BEGUN)
def test_a_cancel_before_the_start_is_counted_once(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    before = counted(lab)
    lab.cancel(case.id, new_id())
    lab.cancel(case.id)
    assert counted(lab) == {**before, "cancelled": before.get("cancelled", 0) + 1}


def test_a_request_to_end_is_no_end(lab: Lab) -> None:
    task = lab.running()
    lab.cancel(task.id)
    assert counted(lab) == {}


def test_a_task_that_ends_twice_is_counted_twice(lab: Lab) -> None:
    id = lab.send()
    lab.cancel(id)
    assert lab.run(operate.resubmit([id]))[id]
    lab.cancel(id)
    lab.clock.advance(120)
    lab.run(statistics.fold(lab.clock.now))
    assert counted(lab) == {"cancelled": 2}


def test_expired_and_dropped_tasks_are_counted(lab: Lab) -> None:
    lab.send_many(3, good_until=lab.clock.now + SECOND)
    lab.send_many(2)
    lab.clock.advance(2)
    lab.run(timing.expire(batch=2))
    lab.run(timing.expire())
    lab.run(timing.expire())
    assert counted(lab) == {"expired": 3}
    lab.run(timing.drop(QUEUE, known=["u@1"], before=lab.clock.now))
    assert counted(lab) == {"expired": 3, "dropped": 2}


def test_steps_that_are_skipped_are_counted_as_cancelled(lab: Lab) -> None:
    plan = plan_of(step(), step(0), step(1), step(1))
    first, *_ = begin(lab, plan)
    fail(lab, first)
    # The run that failed is counted by the worker that made it.
    assert counted(lab) == {"cancelled": 3}


@pytest.mark.parametrize(("ends", "as_"), [(complete, "completed"), (fail, "failed")])
def test_a_step_that_has_handed_over_ends_with_what_it_added(
    ends: Callable[[Lab, bytes], None], as_: str, lab: Lab
) -> None:
    (first,) = begin(lab, plan_of(step()))
    (added,) = hand_over(lab, first, step())
    assert counted(lab) == {}
    ends(lab, added)
    assert counted(lab) == {as_: 1}


def test_what_a_vanished_worker_ran_is_counted_by_whoever_ends_it(lab: Lab) -> None:
    stalled = lab.running(task_options=Policy(on_crash="stall").encode())
    cancelled = lab.running()
    lab.running()
    lab.cancel(cancelled.id)
    lab.clock.advance(LEASE_US / SECOND + 1)
    while lab.run(leases.recover(crashed)) is not None:
        pass
    assert lab.status(stalled.id) is TaskStatus.STALLED
    assert counted(lab) == {"stalled": 1, "cancelled": 1}


def test_a_step_that_comes_back_to_a_whole_that_winds_down_is_counted_once(lab: Lab) -> None:
    plan = plan_of(step(), step(), step())
    begin(lab, plan)
    released, running, asked = lab.claim().tasks
    lab.start(running, asked)
    lab.run(steering.cancel(plan.id))
    lab.release(released)
    assert lab.status(released.id) is TaskStatus.CANCELLED
    assert counted(lab) == {"cancelled": 1}
    # By its worker: this one ends with its run.
    assert lab.end(running, StoppedByShutdown()).status is not TaskStatus.RUNNING
    assert counted(lab) == {"cancelled": 1}
    while lab.run(steering.stop_some(plan.id)):
        pass
    lab.clock.advance(LEASE_US / SECOND + 1)
    while lab.run(leases.recover(crashed)) is not None:
        pass
    assert lab.status(asked.id) is TaskStatus.CANCELLED
    assert counted(lab) == {"cancelled": 2}


def test_a_row_that_no_worker_can_read_is_counted_as_failed(lab: Lab) -> None:
    task = lab.claimed()
    refused = [Refused(task.key, "its arguments are no JSON")]
    assert lab.run(refusal.refuse(refused, token=task.token, hostname=HOST, worker_id=WORKER)) == 1
    assert counted(lab) == {"failed": 1}


def test_what_a_worker_ends_itself_is_left_to_its_own_counters(lab: Lab) -> None:
    lab.complete(lab.running())
    lab.fail(lab.running())
    assert counted(lab) == {}


@on_each_engine
def test_a_name_that_no_counter_can_hold_is_no_reason_to_refuse_the_end(lab: Lab) -> None:
    plain = lab.send()
    odd = lab.send(task_name="t" * 255, queue_name="q" * 100)
    lab.cancel(plain, odd)
    totals = lab.run(statistics.totals())
    assert sorted(each.counts["cancelled"] for each in totals) == [1, 1]


def test_ends_in_one_transaction_are_counted_by_queue_and_name(lab: Lab) -> None:
    ids = [lab.send(queue_name=queue) for queue in ("a", "a", "b")]
    lab.cancel(*ids)
    found = {each.queue_name: each.counts["cancelled"] for each in lab.run(statistics.totals())}
    assert found == {"a": 2, "b": 1}
