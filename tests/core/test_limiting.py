"""The arithmetic of limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.limiting import (
    PLENTY,
    Budget,
    Counter,
    LimitBook,
    free,
    next_at,
    queue_scope,
    scopes_of,
    taken,
    task_scope,
)
from holdfast.core.options.limit import Limit, Rate, Rule

NOW = 1_000_000_000


def test_nothing_is_limited_without_a_rule() -> None:
    assert free(Rule(), Counter(held=5), NOW) == PLENTY
    assert next_at(Rule(), Counter(), NOW) is None


def test_a_capacity_leaves_what_is_not_held() -> None:
    assert [free(Rule(3), Counter(held), NOW) for held in (0, 2, 3, 9)] == [3, 1, 0, 0]


@given(
    every=st.floats(1, 10_000_000),
    burst=st.integers(1, 50),
    steps=st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 20)), max_size=60),
)
def test_no_window_has_more_than_its_rate_and_burst(
    every: float, burst: int, steps: list[tuple[int, int]]
) -> None:
    rule, counter, now, begun = Rule(rates=(Rate(every, burst),)), Counter(), NOW, list[int]()
    for passed, wanted in steps:
        now += passed
        number = min(wanted, free(rule, counter, now))
        counter = taken(rule, counter, number, now)
        begun += [now] * number
    for first in range(len(begun)):
        for last in range(first, len(begun)):
            window = begun[last] - begun[first]
            assert last - first + 1 <= burst + window / every + 1e-6


@given(every=st.floats(1, 10_000_000), burst=st.integers(1, 50))
def test_the_next_one_may_begin_when_it_is_said(every: float, burst: int) -> None:
    rule = Rule(rates=(Rate(every, burst),))
    counter = taken(rule, Counter(), burst, NOW)
    assert free(rule, counter, NOW) == 0
    at = next_at(rule, counter, NOW)
    assert at is not None
    assert free(rule, counter, at) >= 1


def test_what_only_has_a_rate_holds_nothing() -> None:
    assert taken(Rule(rates=(Rate(10, 1),)), Counter(), 3, NOW).held == 0


def test_a_budget_counts_down_and_says_what_was_in_the_way() -> None:
    budget = Budget(NOW)
    budget.add("queue q", Rule(5), Counter(held=4), freed=1)
    budget.add("task t", Rule(1, (Rate(500_000, 1),)), Counter())
    assert budget.take(("queue q", "task t"))
    assert not budget.take(("queue q", "task t"))
    assert budget.blocked == {"task t"}
    assert budget.next_at() == NOW + 500_000
    assert budget.changed() == {
        "queue q": Counter(4, ()),
        "task t": Counter(1, (NOW + 500_000,)),
    }
    budget.give_back(("queue q", "task t"))
    assert budget.changed() == {"queue q": Counter(3, ())}


def test_a_task_counts_against_all_that_is_said_about_it() -> None:
    book = LimitBook.of(
        "1",
        {
            queue_scope("q"): (Limit(concurrency=5, per_key=Limit(concurrency=1)),),
            task_scope("t"): (Limit(per_key=Limit(rate="1/s")),),
        },
    )
    found = [(scope, bit) for scope, _, bit in scopes_of(book, "q", "t", "k")]
    assert found == [("queue q", 1), ("queue q k", 4), ("task t k", 8)]
    assert [scope for scope, *_ in scopes_of(book, "q", "t", None)] == ["queue q"]
    assert scopes_of(book, "other", "u", "k") == []
    assert book.limits_whole("q", "u")
    assert not book.limits_whole("other", "t")
