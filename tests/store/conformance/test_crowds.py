"""Many tasks of some keys: others pay nothing for them, and wait for nobody's backlog."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest

from holdfast.core.limiting import LimitBook
from holdfast.core.options.limit import Limit
from holdfast.store.verbs.key_walk import KeyPlace
from tests.store.conformance.test_limits import HERE, choose, claim_keys, count, keys
from tests.support.stores import Lab

FULL = 300_000
FULL_KEYS = 50
ONE_TENANT = 100_000
_AT_ONCE = 5_000
_CLAIMS = 15


def crowd(lab: Lab, key: str, number: int) -> None:
    for _ in range(number // _AT_ONCE):
        lab.send_many(_AT_ONCE, concurrency_key=key)
    if number % _AT_ONCE:
        lab.send_many(number % _AT_ONCE, concurrency_key=key)


def usual(lab: Lab, book: LimitBook) -> float:
    """Seconds of a claim of ten, in the middle of several; the turns of keys go on from one to the
    next, as a worker does it. The first one, which looks from the very first key on, is among them.
    """
    took, after = [], KeyPlace()
    for _ in range(_CLAIMS):
        began = perf_counter()
        found = claim_keys(lab, book, 10, after)
        took.append(perf_counter() - began)
        after = found.place
        assert count(found) == 10
    return median(took)


@pytest.mark.slow
@pytest.mark.alone
def test_full_keys_in_front_do_not_hold_up_a_claim_of_others(lab: Lab) -> None:
    book = choose(lab, HERE, Limit(per_key=Limit(concurrency=1)))
    for number in range(2 * _CLAIMS * 10):
        lab.send_many(1, concurrency_key=f"other-{number:04}")
    normal = usual(lab, book)
    for number in range(FULL_KEYS):
        crowd(lab, f"full-{number:02}", FULL // FULL_KEYS)
    full = claim_keys(lab, book, FULL_KEYS)
    assert set(keys(lab, full)) == {f"full-{number:02}" for number in range(FULL_KEYS)}
    assert usual(lab, book) <= 5 * max(normal, 0.001)


@pytest.mark.slow
def test_a_tenant_with_one_task_is_served_beside_one_with_very_many(lab: Lab) -> None:
    crowd(lab, "large", ONE_TENANT)
    book = choose(lab, HERE)
    first = claim_keys(lab, book, 2)
    assert keys(lab, first) == ["large", "large"]
    lab.send_many(1, concurrency_key="small")
    assert sorted(map(str, keys(lab, claim_keys(lab, book, 2, first.place)))) == [
        "large",
        "small",
    ]
