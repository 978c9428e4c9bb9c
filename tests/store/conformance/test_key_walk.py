"""The way from key to key: over more keys than one claim looks at, and deep enough into each."""

from __future__ import annotations

import pytest

from holdfast.core.options.limit import Limit
from holdfast.store.verbs import key_walk, limits
from holdfast.store.verbs.key_walk import KeyPlace
from tests.store.conformance.test_limits import HERE, choose, claim_keys, count, keys
from tests.support.stores import Lab
from tests.support.verbs import QUEUE


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_walk, "MOST_KEYS", 8)


def test_a_round_over_many_full_keys_comes_to_an_end(lab: Lab) -> None:
    for number in range(30):
        lab.send_many(2, concurrency_key=f"k{number:02}")
    book = choose(lab, HERE, Limit(per_key=Limit(rate="1/d")))
    place, taken = KeyPlace(), 0
    while taken < 30:
        found = claim_keys(lab, book, 5, place)
        place, taken = found.place, taken + count(found)
    place = KeyPlace("k12")
    for _ in range(3):
        found = claim_keys(lab, book, 5, place)
        assert (count(found), found.is_held_back, found.saw_all) == (0, True, False)
        assert found.next_us is not None
        place = found.place
        assert place.round_from == "k12"
    assert place.has_wrapped
    # What comes in behind where the round stands is found by it.
    lab.send(concurrency_key="k10+")
    found = claim_keys(lab, book, 5, place)
    assert keys(lab, found) == ["k10+"]
    place = found.place.anew()
    looks = 0
    while not found.saw_all or count(found):
        found = claim_keys(lab, book, 5, place)
        place, looks = found.place, looks + 1
    assert looks == 4


def test_a_key_that_stands_behind_many_full_ones_is_found_in_one_round(lab: Lab) -> None:
    for number in range(30):
        lab.send_many(2, concurrency_key=f"k{number:02}")
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=1)))
    place, taken = KeyPlace(), 0
    while taken < 30:
        found = claim_keys(lab, book, 8, place)
        place, taken = found.place, taken + count(found)
    lab.send(concurrency_key="z")
    place, got = KeyPlace(), list[str | None]()
    for _ in range(4):
        found = claim_keys(lab, book, 1, place)
        place, got = found.place, got + keys(lab, found)
    assert got == ["z"]


def test_a_single_key_gives_as_many_as_are_wanted(lab: Lab) -> None:
    lab.send_many(300, concurrency_key="one")
    book, place = lab.run(limits.book()), KeyPlace()
    got: list[int] = []
    for _ in range(8):
        found = claim_keys(lab, book, 40, place)
        assert not found.saw_all or count(found) == 40
        got.append(count(found))
        place = found.place
    assert got == sorted(got)
    assert got[-1] == 40


def test_who_has_taken_all_that_was_read_of_a_key_knows_that_there_may_be_more(lab: Lab) -> None:
    lab.send_many(20, concurrency_key="one")
    book = lab.run(limits.book())
    found = claim_keys(lab, book, 19)
    assert 0 < count(found) < 19
    assert not found.saw_all
    rest = claim_keys(lab, book, 40, found.place)
    while not rest.saw_all:
        rest = claim_keys(lab, book, 40, rest.place)
    assert count(claim_keys(lab, book, 40)) == 0


def test_the_order_of_the_queue_holds_for_as_many_as_are_wanted(lab: Lab) -> None:
    lab.run(limits.set_fair(QUEUE, False))
    lab.send_many(30, concurrency_key="b")
    lab.send_many(30, concurrency_key="a")
    book, place, order = lab.run(limits.book()), KeyPlace(), list[str | None]()
    while len(order) < 60:
        found = claim_keys(lab, book, 25, place)
        assert count(found)
        place, order = found.place, order + keys(lab, found)
    assert order == ["b"] * 30 + ["a"] * 30


def test_without_turns_nobody_is_passed_over_for_ever(lab: Lab) -> None:
    """Of more keys than one claim compares, each claim compares the next."""
    lab.run(limits.set_fair(QUEUE, False))
    for number in range(20):
        lab.send_many(3, concurrency_key=f"k{number:02}")
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=1)))
    place, taken = KeyPlace(), set[str | None]()
    for _ in range(12):
        found = claim_keys(lab, book, 4, place)
        place = found.place
        taken.update(keys(lab, found))
    assert len(taken) == 20


@pytest.mark.parametrize("has_others", [False, True])
def test_what_stands_behind_tasks_that_a_worker_does_not_know_is_found(
    lab: Lab, has_others: bool
) -> None:
    """Of its key, and deeper than one look goes; also while others are there to be claimed."""
    lab.send_many(2500, concurrency_key="k", task_name="unknown")
    known = lab.send(concurrency_key="k")
    if has_others:
        lab.send_many(60, concurrency_key="m")
    book, place = lab.run(limits.book()), KeyPlace()
    got: list[bytes] = []
    for _ in range(12):
        found = claim_keys(lab, book, 4, place)
        got += [task.id for task in found.claimed.tasks]
        place = found.place
        if known in got or found.saw_all:
            break
    assert known in got


def test_a_round_over_keys_of_which_nothing_is_known_comes_to_an_end(lab: Lab) -> None:
    for number in range(10):
        lab.send_many(2, concurrency_key=f"k{number}", task_name="unknown")
    book, place, claims = lab.run(limits.book()), KeyPlace(), 0
    found = claim_keys(lab, book, 4, place)
    while not found.saw_all:
        assert count(found) == 0
        found, claims = claim_keys(lab, book, 4, found.place), claims + 1
        assert claims < 20
    assert not found.is_held_back
