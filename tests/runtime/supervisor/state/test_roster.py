"""Which children are given tasks, and what one has to end with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.options.policy import Policy
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildState
from holdfast.runtime.supervisor.state.roster import Roster
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.hands import Hands
from tests.support.verbs import new_token


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo, "process")


@pytest.fixture
def roster(hands: Hands) -> Roster:
    return hands.ledger.roster


def give(hands: Hands, slot: int, *, started: bool = True) -> Assignment:
    run = Assignment(slot, claimed(slot, new_token()), Policy(), hands.child, 10, started=started)
    hands.child.take(run, alone=False)
    return run


@pytest.mark.parametrize("greeted_first", [True, False])
def test_a_child_is_ready_when_it_has_said_so_and_can_be_ended(
    hands: Hands, roster: Roster, greeted_first: bool
) -> None:
    hands.child.state, hands.child.pid = ChildState.STARTING, None
    steps: list[Callable[[], None]] = [
        lambda: roster.greeted(hands.child),
        lambda: roster.forked(hands.child, 17),
    ]
    for step in steps if greeted_first else reversed(steps):
        assert not roster.ready()
        step()
    assert roster.ready() == [hands.child]


def test_whoever_waits_for_a_child_is_woken(hands: Hands, roster: Roster) -> None:
    hands.child.state = ChildState.STARTING
    waiter = threading.Timer(0.05, roster.greeted, [hands.child])
    waiter.start()
    assert roster.wait_ready(10)
    waiter.join()


def test_only_what_is_idle_leaves_at_once(hands: Hands, roster: Roster) -> None:
    run = give(hands, 1)
    assert roster.let_go_idle([hands.child]) == []
    assert roster.ready() == [hands.child]
    assert not roster.let_go(hands.child)
    hands.child.drop(run.slot)
    assert roster.let_go(hands.child)
    assert hands.child.state is ChildState.LEAVING
    assert roster.let_go_idle([hands.child], 0) == []
    assert roster.let_go_idle([hands.child]) == [hands.child]


def test_what_was_handed_to_a_dead_child_has_to_end(hands: Hands, roster: Roster) -> None:
    handed = give(hands, 1)
    give(hands, 2, started=False)
    assert roster.died(hands.child) == [handed]
    assert roster.all() == []
    assert roster.mark_breach(hands.child, "is dead") is None


def test_a_breach_is_marked_once(hands: Hands, roster: Roster) -> None:
    assert roster.mark_breach(hands.child, "lied") == []
    assert roster.mark_breach(hands.child, "lied again") is None
    assert (hands.child.breach, hands.child.state) == ("lied", ChildState.LEAVING)


def test_what_waits_behind_a_long_task_is_taken_back(hands: Hands, roster: Roster) -> None:
    long = give(hands, 1)
    give(hands, 2)
    give(hands, 3, started=False)
    assert roster.found_slow(hands.child, [long.slot]) == [2]
    assert hands.child.slow
    hands.child.slow = False
    hands.child.drop(long.slot)
    assert roster.found_slow(hands.child, [long.slot]) == []
    assert not hands.child.slow, "what was long has ended meanwhile"
