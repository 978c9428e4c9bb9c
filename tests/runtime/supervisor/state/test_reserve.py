"""How much children are given ahead, when they get more, and what moves between them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.supervisor.state import reserve
from holdfast.runtime.supervisor.state.child_handle import (
    WINDOW_US,
    Assignment,
    ChildHandle,
    ChildState,
)
from holdfast.runtime.supervisor.state.reserve import LATE_US, RESERVE_US
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.shared_page import SharedPage

MakeChild = Callable[..., ChildHandle]
MS = 1_000


@pytest.fixture
def make_child() -> Iterator[MakeChild]:
    with ExitStack() as undo:

        def make(number: int, *loads: int) -> ChildHandle:
            ours, theirs = socket.socketpair()
            memory = shared_page.create(1)
            child = ChildHandle(
                number, "process", 1, ours, SharedPage(memory, 1), -1, bytes(16), lambda child: None
            )
            os.close(memory)
            undo.callback(theirs.close)
            undo.callback(child.close)
            child.state = ChildState.READY
            child.window_us = RESERVE_US
            for load in loads:
                child.take(run(len(child.hand) + 100 * number, child, load), False)
            return child

        yield make


def run(slot: int, child: ChildHandle, cost_us: int) -> Assignment:
    task = ClaimedTask(
        slot, bytes(16), "t", 1, "q", 50, 0, "[]", "{}", None, 0, 0, 0, 0, None,
        None, None, None, None, None, None, None, bytes(16),
    )  # fmt: skip
    return Assignment(slot, task, Policy(), child, cost_us, started=True)


def slots(runs: list[Assignment]) -> list[int]:
    return [each.slot for each in runs]


@pytest.mark.parametrize(
    ("typical_us", "window_us"),
    [
        (10, WINDOW_US),
        (1 * MS, 64 * MS + 250),
        (10 * MS, RESERVE_US + 2_500),
        (50 * MS, RESERVE_US + 12_500),
        (150 * MS, 337 * MS + 500),
        # Long enough to be claimed and started one by one.
        (RESERVE_US, WINDOW_US),
        (3_600_000 * MS, WINDOW_US),
    ],
)
def test_the_size_of_a_reserve(typical_us: float, window_us: int) -> None:
    assert reserve.window_us(typical_us) == window_us


def test_a_child_is_due_at_half_of_it_or_with_one_task(make_child: MakeChild) -> None:
    half = RESERVE_US // 2
    assert not reserve.is_due(make_child(1, half, MS))
    assert reserve.is_due(make_child(2, half - MS, MS))
    assert reserve.is_due(make_child(3, RESERVE_US))
    assert reserve.is_due(make_child(4))


def test_nothing_is_missing_where_there_is_more_than_enough(make_child: MakeChild) -> None:
    full, half, idle = make_child(1, 2 * RESERVE_US), make_child(2, RESERVE_US // 2), make_child(3)
    assert reserve.missing([full, half], 30 * MS) == 3
    assert reserve.missing([idle], 2 * RESERVE_US) == 1


def test_a_child_with_enough_is_not_listened_to_for_a_beat(make_child: MakeChild) -> None:
    rich, poor, idle = make_child(1, *[MS] * 150), make_child(2, *[MS] * 20), make_child(3)
    assert 0.0 < reserve.rest_s(rich, [rich, poor]) <= 0.04
    assert reserve.rest_s(poor, [rich, poor]) == 0.0
    # What one that has nothing to do gets next may depend on what is heard.
    assert reserve.rest_s(rich, [rich, idle]) == 0.0
    next(iter(rich.hand.values())).is_urgent = True
    assert reserve.rest_s(rich, [rich, poor]) == 0.0


def test_without_a_reserve_every_word_is_heard(make_child: MakeChild) -> None:
    child = make_child(1, *[MS] * 10)
    child.window_us = WINDOW_US
    assert reserve.rest_s(child, [child]) == 0.0


def test_half_of_what_waits_goes_to_one_that_has_nothing_to_do(make_child: MakeChild) -> None:
    rich, poor, idle = make_child(1, *[10 * MS] * 9), make_child(2, *[10 * MS] * 3), make_child(3)
    begun = {rich: {100: 0.0}, poor: {200: 0.0}, idle: {}}
    found = reserve.to_move([rich, poor, idle], begun)
    assert found is not None
    child, runs = found
    assert child is rich
    assert slots(runs) == [105, 106, 107, 108]
    for each in runs:
        each.is_recalled = True
    # Not those that were asked for already.
    found = reserve.to_move([rich, poor, idle], begun)
    assert found is not None
    assert slots(found[1]) == [101, 102, 103, 104]


def test_nothing_moves_while_all_have_work(make_child: MakeChild) -> None:
    rich, poor = make_child(1, *[10 * MS] * 9), make_child(2, 10 * MS)
    assert reserve.to_move([rich, poor], {rich: {100: 0.0}, poor: {200: 0.0}}) is None


def test_what_begins_soon_stays(make_child: MakeChild) -> None:
    rich, idle = make_child(1, *[MS] * (LATE_US // MS)), make_child(2)
    assert reserve.to_move([rich, idle], {rich: {100: 0.0}, idle: {}}) is None


def test_all_moves_from_behind_one_that_takes_longer_than_expected(make_child: MakeChild) -> None:
    stuck, idle = make_child(1, MS, MS, MS), make_child(2)
    assert reserve.to_move([stuck, idle], {stuck: {100: 0.005}, idle: {}}) is None
    found = reserve.to_move([stuck, idle], {stuck: {100: 0.02}, idle: {}})
    assert found is not None
    assert found[0] is stuck


def test_urgent_ones_come_first(make_child: MakeChild) -> None:
    child = make_child(1, MS, MS, MS)
    runs = list(child.hand.values())
    runs[2].is_urgent = True
    assert slots(reserve.in_order(runs)) == [102, 100, 101]
