"""Limits: what may be claimed at a time and in a time, whose turn it is, and that nothing leaks."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from holdfast.core.decide import decide
from holdfast.core.errors import UnreadableRow
from holdfast.core.limiting import LimitBook, queue_scope, task_scope
from holdfast.core.options.limit import Limit
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Crashed,
    Failed,
    NotBegun,
    Outcome,
    RetryAsked,
    SnoozeAsked,
    StalledBySilence,
    StoppedByShutdown,
)
from holdfast.core.records import ClaimedTask, Refused
from holdfast.store.op import At
from holdfast.store.verbs import claims, leases, limited_claims, limits, refusal
from holdfast.store.verbs.claims import Request
from holdfast.store.verbs.key_walk import KeyPlace
from holdfast.store.verbs.limited_claims import LimitedClaim
from tests.store.conformance.test_leases import crashed
from tests.support.stores import Lab
from tests.support.verbs import BOOM, LEASE_US, QUEUE, TASK, WORKER

HERE = queue_scope(QUEUE)


def choose(lab: Lab, scope: str, *given: Limit) -> LimitBook:
    lab.run(limits.choose(scope, given))
    return lab.run(limits.book())


def request(wanted: int, *names: str, queue: str = QUEUE, version: str | None = None) -> Request:
    known = [f"{name}@1" for name in names or (TASK,)]
    return Request(os.urandom(16), WORKER, queue, known, wanted, LEASE_US, limits_version=version)


def claim(lab: Lab, book: LimitBook, wanted: int = 100, *names: str) -> LimitedClaim:
    return lab.run(limited_claims.claim(request(wanted, *names), book))


def claim_keys(
    lab: Lab, book: LimitBook, wanted: int = 100, place: KeyPlace | str = "", *names: str
) -> LimitedClaim:
    placed = KeyPlace(place) if isinstance(place, str) else place
    return lab.run(limited_claims.claim_keys(request(wanted, *names), book, placed))


def keys(lab: Lab, found: LimitedClaim) -> list[str | None]:
    return [lab.task(task.id).concurrency_key for task in found.claimed.tasks]


def count(found: LimitedClaim) -> int:
    return len(found.claimed.tasks)


def held(lab: Lab) -> dict[str, int]:
    """What each counter holds, less what came free."""
    rows = lab.sql(
        "SELECT scope, held - (SELECT coalesce(sum(n), 0) FROM holdfast_freed AS f"
        " WHERE f.scope = c.scope) FROM holdfast_counters AS c WHERE place = 0"
    )
    return {scope: int(number) for scope, number in rows}


def test_a_queue_gives_no_more_than_its_limit(lab: Lab) -> None:
    lab.send_many(5)
    book = choose(lab, HERE, Limit(concurrency=3))
    first = claim(lab, book)
    assert (count(first), first.is_held_back, first.next_us) == (3, True, None)
    again = claim(lab, book)
    assert (count(again), again.is_held_back) == (0, True)
    assert held(lab) == {HERE: 3}


def test_a_task_that_ends_makes_room(lab: Lab) -> None:
    lab.send_many(5)
    book = choose(lab, HERE, Limit(concurrency=2))
    for task in claim(lab, book).claimed.tasks:
        lab.start(task)
        lab.complete(task)
    assert count(claim(lab, book)) == 2
    assert lab.run(limits.audit()) == []


def test_a_limit_of_a_task_holds_in_every_queue_and_for_that_task_only(lab: Lab) -> None:
    lab.send_many(3, task_name="a")
    lab.send_many(3, task_name="a", queue_name="other")
    lab.send_many(3, task_name="b")
    book = choose(lab, task_scope("a"), Limit(concurrency=2))
    found = claim(lab, book, 10, "a", "b")
    assert Counter(task.task_name for task in found.claimed.tasks) == {"a": 2, "b": 3}
    assert found.is_held_back
    elsewhere = lab.run(limited_claims.claim(request(10, "a", queue="other"), book))
    assert count(elsewhere) == 0


def test_who_does_not_know_the_limits_gets_nothing(lab: Lab) -> None:
    lab.send_many(2)
    old = lab.run(limits.book())
    new = choose(lab, HERE, Limit(concurrency=1))
    assert lab.claim().tasks == []
    stale = claim(lab, old)
    assert (count(stale), stale.is_stale) == (0, True)
    assert lab.run(claims.standing(QUEUE)).limits_version == new.version
    assert count(claim(lab, new)) == 1


def test_what_runs_already_counts_for_a_new_limit(lab: Lab) -> None:
    lab.send_many(4)
    lab.claim(2)
    book = choose(lab, HERE, Limit(concurrency=3))
    assert held(lab) == {HERE: 2}
    assert count(claim(lab, book)) == 1


def test_a_limit_that_is_lowered_below_what_runs_lets_nothing_begin(lab: Lab) -> None:
    lab.send_many(6)
    book = choose(lab, HERE, Limit(concurrency=4))
    running = claim(lab, book).claimed.tasks
    book = choose(lab, HERE, Limit(concurrency=2))
    assert count(claim(lab, book)) == 0
    for task in running[:3]:
        lab.start(task)
        lab.complete(task)
    assert count(claim(lab, book)) == 1


def test_a_limit_that_is_gone_limits_nothing(lab: Lab) -> None:
    lab.send_many(3)
    book = choose(lab, HERE, Limit(concurrency=1))
    first = claim(lab, book).claimed.tasks
    book = choose(lab, HERE)
    assert book.limits == {}
    found = lab.run(claims.claim(request(10, version=book.version)))
    assert len(found.tasks) == 2
    lab.start(first[0])
    lab.complete(first[0])
    book = choose(lab, HERE, Limit(concurrency=3))
    assert held(lab) == {HERE: 2}


def test_what_a_limit_that_is_gone_has_counted_is_no_drift(lab: Lab) -> None:
    lab.send_many(2, concurrency_key="a")
    book = choose(lab, HERE, Limit(concurrency=5, per_key=Limit(concurrency=5)))
    first, second = claim_keys(lab, book, 2).claimed.tasks
    choose(lab, HERE)
    assert lab.run(limits.audit()) == []
    lab.release(first)
    assert lab.run(limits.audit()) == []
    lab.run(limits.fold())
    # What is still in flight counts again as soon as it is limited again.
    choose(lab, HERE, Limit(per_key=Limit(concurrency=5)))
    assert held(lab)[f"{HERE} a"] == 1
    lab.release(second)
    assert held(lab)[f"{HERE} a"] == 0
    assert lab.run(limits.audit()) == []


def test_a_rate_is_smooth_and_has_its_burst(lab: Lab) -> None:
    lab.send_many(20)
    book = choose(lab, HERE, Limit(rate="10/s", burst=3))
    first = claim(lab, book)
    assert (count(first), first.next_us) == (3, 100_000)
    lab.clock.advance(0.05)
    waiting = claim(lab, book)
    assert (count(waiting), waiting.next_us) == (0, 50_000)
    lab.clock.advance(0.05)
    assert count(claim(lab, book)) == 1
    lab.clock.advance(0.25)
    assert count(claim(lab, book)) == 2
    lab.clock.advance(60)
    assert count(claim(lab, book)) == 3


def test_of_several_rates_each_holds(lab: Lab) -> None:
    lab.send_many(30)
    book = choose(lab, HERE, Limit(rate="10/s", burst=10), Limit(rate="60/m", burst=12))
    assert count(claim(lab, book)) == 10
    lab.clock.advance(1)
    assert count(claim(lab, book)) == 3


def test_a_rate_that_is_raised_holds_at_once(lab: Lab) -> None:
    lab.send_many(3)
    book = choose(lab, HERE, Limit(rate="1/day"))
    assert count(claim(lab, book)) == 1
    lab.clock.advance(1)
    assert count(claim(lab, book)) == 0
    book = choose(lab, HERE, Limit(rate="100/s"))
    lab.clock.advance(1)
    assert count(claim(lab, book)) == 1


def test_a_time_far_ahead_written_by_hand_does_not_stop_a_rate(lab: Lab) -> None:
    lab.send_many(3)
    book = choose(lab, HERE, Limit(rate="10/s"))
    assert count(claim(lab, book)) == 1
    lab.sql("UPDATE holdfast_counters SET paid_until = :at", at=At(lab.clock.now * 3))
    assert count(claim(lab, book)) == 1
    assert count(claim(lab, book)) == 0


OUTCOMES: dict[str, Outcome] = {
    "fail": Failed(BOOM),
    "retry": RetryAsked(BOOM, 1_000),
    "snooze": SnoozeAsked(1_000),
    "interrupt": NotBegun(),
    "stall": StalledBySilence(1.0),
    "crash": Crashed(exit_code=1),
    "shutdown": StoppedByShutdown(),
    "abort": AbortAsked(BOOM),
}
LEAVING = (
    *OUTCOMES,
    "complete",
    "release",
    "cancel",
    "acknowledge",
    "lease",
    "lease of one that ran",
    "hand back",
    "refuse",
    "lost claim",
)


def leave(lab: Lab, task: ClaimedTask, way: str) -> None:
    """Let a claimed task leave its claim."""
    if way == "release":
        lab.release(task)
    elif way == "cancel":
        lab.cancel(task.id)
    elif way == "refuse":
        refused = [Refused(task.key, "priority 0 is none")]
        lab.run(refusal.refuse(refused, token=task.token, hostname="host", worker_id=WORKER))
    elif way == "lost claim":
        lab.run(claims.release_token(task.token, queue=QUEUE))
    elif way.startswith("lease"):
        if way != "lease":
            lab.started(task)
        lab.clock.advance(2 * LEASE_US / 1_000_000)
        assert lab.run(leases.recover(crashed)) is not None
    elif way == "hand back":
        lab.started(task)
        change = decide(lab.task(task.id), NotBegun(), Policy(), lambda: 1.0)
        lab.run(leases.hand_back(task.token, change))
    elif way == "complete":
        lab.started(task)
        lab.complete(task)
    elif way == "acknowledge":
        lab.started(task)
        lab.cancel(task.id)
        lab.end(task, CancelAcknowledged())
    else:
        lab.started(task)
        lab.end(task, OUTCOMES[way])


@pytest.mark.parametrize("way", LEAVING)
def test_every_way_out_frees_the_slots(lab: Lab, way: str) -> None:
    lab.send_many(2, concurrency_key="k")
    each = Limit(concurrency=1)
    choose(lab, HERE, Limit(concurrency=5, per_key=each))
    book = choose(lab, task_scope(TASK), Limit(concurrency=5, per_key=each))
    (task,) = claim_keys(lab, book).claimed.tasks
    scopes = {HERE, f"{HERE} k", task_scope(TASK), f"{task_scope(TASK)} k"}
    assert held(lab) == dict.fromkeys(scopes, 1)
    leave(lab, task, way)
    assert held(lab) == dict.fromkeys(scopes, 0)
    assert lab.run(limits.audit()) == []
    lab.send(concurrency_key="k")
    assert count(claim_keys(lab, book)) == 1
    assert lab.run(limits.audit()) == []


def test_a_row_that_is_deleted_by_hand_frees_its_slots(lab: Lab) -> None:
    lab.send_many(2)
    book = choose(lab, HERE, Limit(concurrency=1))
    assert count(claim(lab, book)) == 1
    lab.sql("DELETE FROM holdfast_tasks WHERE claim_token IS NOT NULL")
    assert held(lab) == {HERE: 0}
    assert count(claim(lab, book)) == 1


def test_keys_take_turns(lab: Lab) -> None:
    lab.send_many(6, concurrency_key="big")
    lab.send(concurrency_key="small")
    lab.send(concurrency_key="tiny")
    book = lab.run(limits.book())
    first = claim_keys(lab, book, 2)
    assert keys(lab, first) == ["big", "small"]
    second = claim_keys(lab, book, 2, first.place)
    assert sorted(map(str, keys(lab, second))) == ["big", "tiny"]
    third = claim_keys(lab, book, 10, second.place)
    assert keys(lab, third) == ["big"] * 4


def test_one_child_at_a_time_keys_take_turns(lab: Lab) -> None:
    lab.send_many(5, concurrency_key="a")
    lab.send_many(2, concurrency_key="b")
    book, after, order = lab.run(limits.book()), KeyPlace(), list[str | None]()
    for _ in range(6):
        found = claim_keys(lab, book, 1, after)
        after, order = found.place, order + keys(lab, found)
    assert order == ["a", "b", "a", "b", "a", "a"]


@pytest.mark.parametrize(
    ("number", "wanted"), [(4, 3), (3, 2), (5, 2), (7, 7), (3, 5), (20, 3), (40, 9)]
)
def test_all_keys_get_as_many_turns_however_many_are_claimed_at_a_time(
    lab: Lab, number: int, wanted: int
) -> None:
    """Also those before and behind the place where the walk begins anew."""
    names = [f"k{place:02}" for place in range(number)]
    for name in names:
        lab.send_many(wanted + 6, concurrency_key=name)
    book, after, turns = lab.run(limits.book()), KeyPlace(), Counter[str | None]()
    for _ in range(2 * number // wanted + 4):
        found = claim_keys(lab, book, wanted, after)
        assert count(found) == wanted
        after = found.place
        turns.update(keys(lab, found))
        given = [turns[name] for name in names]
        assert max(given) - min(given) <= 1, turns


def test_a_key_that_is_gone_is_no_end_of_the_walk(lab: Lab) -> None:
    lab.send_many(2, concurrency_key="b")
    lab.send_many(2, concurrency_key="d")
    book = lab.run(limits.book())
    for after in ("a", "c", "e"):
        found = lab.run(limited_claims.claim_keys(request(2), book, KeyPlace(after)))
        assert sorted(map(str, keys(lab, found))) == ["b", "d"]
        for task in found.claimed.tasks:
            lab.release(task)


def test_without_turns_the_order_is_that_of_the_queue(lab: Lab) -> None:
    lab.send(concurrency_key="b", priority=90)
    lab.send_many(2, concurrency_key="c", priority=10)
    lab.send(concurrency_key="a", priority=50)
    lab.run(limits.set_fair(QUEUE, False))
    book = lab.run(limits.book())
    order = list[str | None]()
    for _ in range(4):
        order += keys(lab, claim_keys(lab, book, 1, "zzz"))
    assert order == ["c", "c", "a", "b"]


@pytest.mark.parametrize("rate", [None, "1/h"])
def test_what_came_free_is_counted_although_nothing_may_begin(lab: Lab, rate: str | None) -> None:
    lab.send_many(9, concurrency_key="a")
    book = choose(lab, HERE, Limit(concurrency=4))
    tasks = list(claim_keys(lab, book, 4).claimed.tasks)
    full = Limit(concurrency=3) if rate is None else Limit(concurrency=9, rate=rate)
    book = choose(lab, HERE, full)
    if rate is not None:
        tasks += claim_keys(lab, book, 1).claimed.tasks
    lab.release(tasks[0])
    for verb in (limited_claims.claim_keys, limited_claims.claim):
        assert count(lab.run(verb(request(1), book))) == 0
    assert held(lab)[HERE] == len(tasks) - 1
    assert lab.run(limits.audit()) == []


def test_each_key_has_its_own_limit(lab: Lab) -> None:
    for key in ("a", "b", "c"):
        lab.send_many(3, concurrency_key=key)
    book = choose(lab, HERE, Limit(concurrency=5, per_key=Limit(concurrency=2)))
    found = claim_keys(lab, book)
    assert Counter(keys(lab, found)) == {"a": 2, "b": 2, "c": 1}
    assert held(lab) == {HERE: 5, f"{HERE} a": 2, f"{HERE} b": 2, f"{HERE} c": 1}


def test_each_key_has_its_own_rate(lab: Lab) -> None:
    for key in ("a", "b"):
        lab.send_many(3, concurrency_key=key)
    book = choose(lab, HERE, Limit(per_key=Limit(rate="2/s")))
    assert sorted(map(str, keys(lab, claim_keys(lab, book)))) == ["a", "b"]
    blocked = claim_keys(lab, book)
    assert (count(blocked), blocked.is_held_back, blocked.next_us) == (0, True, 500_000)
    lab.clock.advance(0.5)
    assert sorted(map(str, keys(lab, claim_keys(lab, book)))) == ["a", "b"]


def test_full_keys_in_front_hide_nobody(lab: Lab) -> None:
    for number in range(40):
        lab.send_many(2, concurrency_key=f"k{number:02}")
    lab.send(concurrency_key="z")
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=1)))
    assert count(claim_keys(lab, book, 40)) == 40
    found = claim_keys(lab, book, 1, "")
    assert keys(lab, found) == ["z"]


def test_a_walk_goes_round_once(lab: Lab) -> None:
    for number in range(30):
        lab.send(concurrency_key=f"k{number:02}")
    book = lab.run(limits.book())
    found = claim_keys(lab, book, 100, "k20")
    assert count(found) == 30
    assert claim_keys(lab, book, 1, "k20").saw_all


def test_plain_claims_leave_tasks_with_keys_alone(lab: Lab) -> None:
    lab.send_many(3, concurrency_key="k")
    lab.send()
    found = lab.claim()
    assert len(found.tasks) == 1
    assert lab.run(claims.standing(QUEUE)).has_keys
    assert not lab.run(claims.standing("other")).has_keys


def test_a_rule_that_cannot_be_read_stops_nobody(lab: Lab) -> None:
    choose(lab, HERE, Limit(concurrency=1))
    book = choose(lab, task_scope("t"), Limit(concurrency=2))
    lab.sql(f"UPDATE holdfast_limits SET chosen = 'no json' WHERE scope = '{HERE}'")
    unreadable: list[UnreadableRow] = []
    found = lab.run(limits.book(unreadable))
    assert found.limits == {task_scope("t"): book.limits[task_scope("t")]}
    assert "holdfast_limits" in str(unreadable[0])


def test_a_counter_that_was_changed_by_hand_is_found_and_mended(lab: Lab) -> None:
    lab.send_many(5, concurrency_key="k")
    book = choose(lab, HERE, Limit(concurrency=3, per_key=Limit(concurrency=3)))
    claim_keys(lab, book, 2)
    lab.sql("UPDATE holdfast_counters SET held = 3")
    drifts = lab.run(limits.audit())
    assert {(each.scope, each.held, each.in_flight) for each in drifts} == {
        (HERE, 3, 2),
        (f"{HERE} k", 3, 2),
    }
    for rule in {limits.rule_of(each.scope) for each in drifts}:
        lab.run(limits.recount(rule))
    assert lab.run(limits.audit()) == []
    assert held(lab) == {HERE: 2, f"{HERE} k": 2}


def test_what_came_free_is_folded_and_idle_keys_are_forgotten(lab: Lab) -> None:
    lab.send_many(2, concurrency_key="k")
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=1, rate="1/s")))
    (task,) = claim_keys(lab, book).claimed.tasks
    lab.start(task)
    lab.complete(task)
    assert lab.run(limits.prune_counters()) == 0
    assert lab.run(limits.fold()) == 1
    assert lab.sql("SELECT scope FROM holdfast_freed") == []
    lab.clock.advance(5)
    assert lab.run(limits.prune_counters()) == 1
    assert count(claim_keys(lab, book)) == 1


def test_who_holds_a_limit_can_be_asked(lab: Lab) -> None:
    lab.send_many(3, concurrency_key="k")
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=2)))
    ids = [task.id for task in claim_keys(lab, book).claimed.tasks]
    holders = lab.run(limits.scope_holders(f"{HERE} k", 4))
    assert sorted(holders) == sorted(ids)
    assert lab.run(limits.scope_holders(f"{HERE} k", 4, most=1)) == ids[:1]
    assert lab.run(limits.scope_holders(f"{HERE} other", 4)) == []
