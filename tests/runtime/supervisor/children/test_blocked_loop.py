"""An event loop that one coroutine keeps to itself: its neighbours are not charged with that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic, monotonic_ns

import pytest

from holdfast.core.options.policy import Policy
from holdfast.runtime.supervisor.children.blocked_loop import MOST_EXCUSED, excuse
from holdfast.runtime.supervisor.state.child_handle import Assignment
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.hands import Hands
from tests.support.verbs import new_token


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo, "async")


def running(hands: Hands, slot: int) -> Assignment:
    run = Assignment(slot, claimed(slot, new_token()), Policy(), hands.child, 10)
    hands.child.take(run, alone=False)
    return run


def blocked(hands: Hands, seconds: float, slot: int) -> None:
    """The loop last came round so long ago, and this slot keeps it."""
    hands.child.page.turn(monotonic_ns() - round(seconds * 1e9))
    hands.child.page.block(slot)


def test_neighbours_are_excused_and_the_blocker_is_not(
    hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    blocker, neighbour, waiting = (running(hands, slot) for slot in (1, 2, 3))
    blocked(hands, 2.0, 1)
    now = monotonic()
    excuse(hands.child, {1, 2}, now)
    assert blocker.excused == 0
    assert neighbour.excused == pytest.approx(2.0, abs=0.5)
    assert waiting.excused == 0, "its code has not begun"
    assert "was blocked by" in neighbour.remark
    assert blocker.remark == ""
    assert "its 2 neighbour(s) wait" in caplog.text
    excuse(hands.child, {1, 2}, now + 0.5)
    assert neighbour.excused == pytest.approx(2.5, abs=0.5), "no time is excused twice"
    assert caplog.text.count("neighbour(s) wait") == 1


def test_a_loop_that_comes_round_excuses_nobody(hands: Hands) -> None:
    runs = [running(hands, slot) for slot in (1, 2)]
    blocked(hands, 0.0, 1)
    excuse(hands.child, {1, 2}, monotonic())
    assert [run.excused for run in runs] == [0, 0]


def test_excuses_have_an_end_and_a_nearer_one_if_nobody_can_be_named(hands: Hands) -> None:
    runs = [running(hands, slot) for slot in (1, 2)]
    blocked(hands, 2.0, 0)
    now = monotonic()
    for second in range(200):
        blocked(hands, 2.0, 0)
        excuse(hands.child, {1, 2}, now + second)
    unnamed = runs[1].excused
    assert unnamed < 20
    for second in range(200, 400):
        blocked(hands, 2.0, 1)
        excuse(hands.child, {1, 2}, now + second)
    assert unnamed < runs[1].excused < MOST_EXCUSED + 5
    assert runs[0].excused == pytest.approx(unnamed)
