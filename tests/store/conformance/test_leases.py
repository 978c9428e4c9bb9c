"""Leases: the row is the right, recovery takes over what a vanished worker had."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from holdfast.core.decide import Change, decide
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed, Failed
from holdfast.core.records import LOST, Answer
from holdfast.core.status import AttemptOutcome, TaskStatus
from holdfast.store import rows
from holdfast.store.verbs import claims, leases
from holdfast.store.verbs.leases import Abandoned, Recovery
from tests.support.locks import locked_rows
from tests.support.stores import MORNING, SECOND, Kind, Lab, Labs
from tests.support.verbs import BOOM, HOST, LEASE_US, PID, WORKER, new_token

LEASE = LEASE_US / SECOND
GAP = 5 * SECOND


def crashed(task: Abandoned) -> Change:
    """What a reaper decides, by the policy that travels with the row."""
    return decide(task, Crashed(), Policy.decode(task.task_options), lambda: 0.5)


def recover(lab: Lab) -> Recovery:
    found = lab.run(leases.recover(crashed))
    assert found is not None, "no lease has expired"
    return found


def leased(lab: Lab) -> dict[bytes, set[object]]:
    """Token → keys of the tasks that its row names."""
    found = lab.sql("SELECT token, task_ids FROM holdfast_leases")
    return {rows.uuid(token): set(rows.keys(keys)) for token, keys in found}


# The row is the right.


def test_renewing_prolongs_what_is_still_there_and_tells_what_is_not(lab: Lab) -> None:
    a, b = lab.claimed(), lab.claimed()
    gone = new_token()
    now = lab.clock.advance(10)
    assert lab.run(claims.renew([a.token, gone], lease_us=LEASE_US)).kept == {a.token}
    expiries = {
        rows.uuid(token): at
        for token, at in lab.sql("SELECT token, expires_at FROM holdfast_leases")
    }
    assert expiries == {a.token: now + LEASE_US, b.token: MORNING + LEASE_US}


def test_a_lease_past_its_time_is_not_lost_while_its_row_is_there(lab: Lab) -> None:
    task = lab.running()
    lab.clock.advance(LEASE + 100)
    assert lab.run(claims.renew([task.token], lease_us=LEASE_US)).kept == {task.token}
    assert lab.run(leases.recover(crashed)) is None
    lab.clock.advance(LEASE + 100)
    assert lab.complete(task).answer is Answer.LANDED


def test_no_end_of_a_run_touches_the_lease_the_keeper_cleans_it(lab: Lab) -> None:
    lab.send_many(3)
    tasks = lab.claim().tasks
    before = lab.contents("leases")
    lab.start(*tasks[:2])
    lab.complete(tasks[0])
    lab.fail(tasks[1])
    lab.cancel(tasks[2].id)
    assert lab.contents("leases") == before
    assert lab.run(claims.clean([tasks[0].token, new_token()])) == 1
    assert lab.run(leases.count()) == 0


# Recovery.


def test_nothing_is_recovered_before_the_lease_has_expired(lab: Lab) -> None:
    lab.running()
    lab.clock.advance(LEASE)
    before = lab.contents()
    assert lab.run(leases.recover(crashed)) is None
    assert lab.contents() == before
    lab.clock.advance(0.000_001)
    assert lab.run(leases.recover(crashed)) is not None


def test_a_vanished_workers_tasks_go_on(lab: Lab) -> None:
    lab.send_many(4)
    claim = lab.claim()
    _, running, completed, cancelled = claim.tasks
    lab.start(running, completed)
    lab.complete(completed)
    lab.cancel(cancelled.id)
    now = lab.clock.advance(LEASE + 1)
    assert recover(lab) == Recovery(claim.token, WORKER, released=1, recovered=1, left=0)
    assert lab.run(leases.count()) == 0
    assert lab.statuses([task.id for task in claim.tasks]) == [
        TaskStatus.PENDING,
        TaskStatus.PENDING,
        TaskStatus.COMPLETED,
        TaskStatus.CANCELLED,
    ]
    record = lab.task(running.id)
    assert (record.crash_count, record.retry_count, record.attempt) == (1, 0, 1)
    (attempt,) = lab.attempts(running.id)
    assert attempt.outcome is AttemptOutcome.WORKER_FAILURE
    assert (attempt.error_code, attempt.will_retry) == ("WORKER_CRASHED", True)
    assert (attempt.worker_id, attempt.worker_hostname) == (WORKER, HOST)
    assert (attempt.worker_pid, attempt.claim_token) == (PID, running.token)
    assert attempt.finished_at == now


def test_a_claimed_task_comes_back_at_no_cost_and_at_its_place(lab: Lab) -> None:
    first = lab.claimed()
    second = lab.send()
    lab.clock.advance(LEASE + 1)
    recover(lab)
    record = lab.task(first.id)
    assert (record.attempt, record.crash_count, record.enqueued_at) == (0, 0, MORNING)
    assert lab.attempts(first.id) == []
    assert [task.id for task in lab.claim().tasks] == [first.id, second]


def test_the_reaper_decides_from_what_is_on_the_row(lab: Lab) -> None:
    options = Policy(on_crash="stall").encode()
    task = lab.running(task_options=options, max_retries=4, good_until=MORNING + 10**12)
    lab.clock.advance(LEASE + 1)
    seen: list[Abandoned] = []

    def decide_and_look(abandoned: Abandoned) -> Change:
        seen.append(abandoned)
        return crashed(abandoned)

    lab.run(leases.recover(decide_and_look))
    assert seen == [
        Abandoned(
            id=task.id,
            task_name="t",
            attempt=1,
            retry_count=0,
            max_retries=4,
            crash_count=0,
            good_until=MORNING + 10**12,
            task_options=options,
            worker_id=WORKER,
            worker_hostname=HOST,
        )
    ]
    assert lab.status(task.id) is TaskStatus.STALLED


def test_one_call_takes_one_lease_the_longest_expired_first(lab: Lab) -> None:
    tokens = []
    for lease_us in (3 * SECOND, SECOND, 2 * SECOND):
        lab.send()
        tokens.append(lab.claim(lease_us=lease_us).token)
    lab.clock.advance(10)
    assert [recover(lab).token for _ in range(3)] == [tokens[1], tokens[2], tokens[0]]
    assert lab.run(leases.recover(crashed)) is None


def test_a_lease_all_of_whose_tasks_have_ended_is_only_deleted(lab: Lab) -> None:
    task = lab.running()
    lab.complete(task)
    lab.clock.advance(LEASE + 1)
    before = lab.contents("tasks", "task_attempts")
    assert recover(lab) == Recovery(task.token, WORKER, released=0, recovered=0, left=0)
    assert lab.contents("tasks", "task_attempts") == before
    assert lab.run(leases.count()) == 0


def test_a_task_that_has_been_claimed_again_is_not_the_old_leases_any_more(lab: Lab) -> None:
    old = lab.running()
    lab.fail_and_resubmit(old)
    new = lab.run_again(old.id)
    lab.clock.advance(1)
    lab.run(claims.renew([new.token], lease_us=LEASE_US))
    lab.clock.advance(LEASE - 0.5)
    assert recover(lab) == Recovery(old.token, WORKER, released=0, recovered=0, left=0)
    assert lab.complete(new).answer is Answer.LANDED


def test_a_worker_that_comes_back_finds_its_lease_gone_and_cannot_write(lab: Lab) -> None:
    task = lab.running()
    lab.clock.advance(LEASE + 1)
    recover(lab)
    assert lab.run(claims.renew([task.token], lease_us=LEASE_US)).kept == set()
    before = lab.contents()
    assert lab.complete(task) == LOST
    assert lab.end(task, Failed(BOOM)) == LOST
    assert lab.contents() == before


def test_the_crash_cap_holds_across_recoveries(lab: Lab) -> None:
    id = lab.send(task_options=Policy(max_crashes=2).encode())
    for _ in range(2):
        lab.run_again(id)
        lab.clock.advance(LEASE + 1)
        recover(lab)
    record = lab.task(id)
    assert (record.status, record.error_code) == (TaskStatus.FAILED, "WORKER_CRASHED")
    assert (record.crash_count, record.dead) == (2, True)


# What cannot be recovered now.


def test_a_task_whose_decision_raises_is_set_aside_and_stops_nobody(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    lab.send_many(3)
    claim = lab.claim()
    lab.start(*claim.tasks)
    bad = claim.tasks[1]
    lab.send()
    other = lab.claim(lease_us=LEASE_US + SECOND)
    lab.clock.advance(LEASE + 2)

    def decide_or_fail(task: Abandoned) -> Change:
        if task.id == bad.id:
            raise ValueError("these options cannot be read")
        return crashed(task)

    with caplog.at_level(logging.ERROR, logger="holdfast.store"):
        first = lab.run(leases.recover(decide_or_fail))
    assert first == Recovery(claim.token, WORKER, released=0, recovered=2, left=1)
    assert str(UUID(bytes=bad.id)) in caplog.text
    assert leased(lab) == {claim.token: {bad.key}, other.token: {other.tasks[0].key}}
    assert lab.status(bad.id) is TaskStatus.RUNNING

    second = lab.run(leases.recover(decide_or_fail, tried=[claim.token]))
    assert second is not None
    assert second.token == other.token
    assert lab.run(leases.recover(decide_or_fail, tried=[claim.token])) is None

    # Once it can be decided, the next pass has it.
    assert recover(lab).recovered == 1
    assert leased(lab) == {}
    assert lab.status(bad.id) is TaskStatus.PENDING


def test_a_task_that_is_being_ended_this_instant_stays_in_the_lease(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        lab.send_many(2)
        claim = lab.claim()
        held, free = claim.tasks
        lab.start(held, free)
        lab.clock.advance(LEASE + 1)
        with locked_rows(lab, [held.id]):
            assert recover(lab) == Recovery(claim.token, WORKER, released=0, recovered=1, left=1)
            assert leased(lab) == {claim.token: {held.key}}
            assert lab.status(free.id) is TaskStatus.PENDING
        # Its worker did end it.
        lab.complete(held)
        assert recover(lab) == Recovery(claim.token, WORKER, released=0, recovered=0, left=0)
        assert lab.status(held.id) is TaskStatus.COMPLETED
        assert leased(lab) == {}


def test_a_lease_that_another_reaper_has_is_skipped(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        first, second = lab.running(), lab.running()
        lab.clock.advance(LEASE + 1)
        with locked_rows(lab, [first.token], table="leases", key="token"):
            assert recover(lab).token == second.token
            assert lab.run(leases.recover(crashed)) is None
        assert recover(lab).token == first.token


# The gap rule.


def maintained(lab: Lab) -> None:
    """The fleet has been looked after for a while."""
    for _ in range(3):
        lab.run(leases.may_recover(GAP))
        lab.clock.advance(GAP / SECOND / 2)
    assert lab.run(leases.may_recover(GAP))


def test_a_fleet_that_nobody_has_looked_after_yet_recovers_nothing(lab: Lab) -> None:
    assert not lab.run(leases.may_recover(GAP))
    lab.clock.advance(GAP / SECOND)
    assert lab.run(leases.may_recover(GAP))


def test_a_fleet_that_was_maintained_all_the_time_may_recover(lab: Lab) -> None:
    maintained(lab)
    for _ in range(5):
        lab.clock.advance(GAP / SECOND)
        assert lab.run(leases.may_recover(GAP))


def test_after_a_gap_live_workers_renew_first(lab: Lab) -> None:
    maintained(lab)
    lab.clock.advance(GAP / SECOND + 0.000_001)
    assert not lab.run(leases.may_recover(GAP))
    lab.clock.advance(GAP / SECOND / 2)
    assert not lab.run(leases.may_recover(GAP))
    lab.clock.advance(GAP / SECOND / 2)
    assert lab.run(leases.may_recover(GAP))


def test_a_reaper_that_was_let_in_before_the_gap_recovers_nothing_after_it(lab: Lab) -> None:
    maintained(lab)
    lab.running()
    # Here the store stands still, for everybody, and for longer than a lease.
    lab.clock.advance(LEASE + GAP / SECOND)
    assert lab.run(leases.recover(crashed, gap_us=GAP)) is None
    assert not lab.run(leases.may_recover(GAP))
    lab.clock.advance(GAP / SECOND)
    assert lab.run(leases.may_recover(GAP))
    assert lab.run(leases.recover(crashed, gap_us=GAP)) is not None


def test_a_clock_that_stepped_back_is_a_gap_too(labs: Labs) -> None:
    with labs.open(Kind.POSTGRES) as lab:
        lab.run(leases.may_recover(GAP))
        lab.clock.move_to(MORNING - 3600 * SECOND)
        assert not lab.run(leases.may_recover(GAP))
        lab.clock.advance(GAP / SECOND)
        assert lab.run(leases.may_recover(GAP))


def test_a_clock_that_stepped_back_stands_still_on_sqlite(labs: Labs) -> None:
    with labs.open(Kind.SQLITE_FILE) as lab:
        maintained(lab)
        now = lab.clock.advance(0)
        lab.clock.move_to(MORNING - 3600 * SECOND)
        assert lab.run(leases.may_recover(GAP))
        assert lab.task(lab.send()).created_at == now
