"""Who gets the next task."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.supervisor.state.child_handle import (
    LEAST_US,
    WINDOW_US,
    Assignment,
    ChildHandle,
    ChildState,
)
from holdfast.runtime.supervisor.state.placement import Openings, Placement
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.shared_page import SharedPage

MakeMember = Callable[..., ChildHandle]
SHORT = LEAST_US


@pytest.fixture
def make_child() -> Iterator[MakeMember]:
    with ExitStack() as undo:

        def make(number: int, *loads: int, most: int | None = None) -> ChildHandle:
            ours, theirs = socket.socketpair()
            memory = shared_page.create(1)
            child = ChildHandle(
                number, "process", 1, ours, SharedPage(memory, 1), -1, bytes(16), lambda child: None
            )
            os.close(memory)
            undo.callback(theirs.close)
            undo.callback(child.close)
            child.most = most
            child.state = ChildState.READY
            for slot, load in enumerate(loads):
                child.take(assignment(slot, child, load), False)
            return child

        yield make


def assignment(slot: int, child: ChildHandle, cost_us: int) -> Assignment:
    task = ClaimedTask(
        slot, bytes(16), "t", 1, "q", 50, 0, "[]", "{}", None, 0, 0, 0, 0, None,
        None, None, None, None, None, None, None, bytes(16),
    )  # fmt: skip
    return Assignment(slot, task, Policy(), child, cost_us)


def hand_out(openings: Openings, cost_us: int, *, alone: bool = False) -> int | None:
    child = openings.find(cost_us, alone)
    if child is None:
        return None
    child.take(assignment(1000 + len(child.hand), child, cost_us), alone)
    openings.given(child)
    return child.number


def test_the_least_loaded_is_next(make_child: MakeMember) -> None:
    openings = Openings([make_child(1, 300), make_child(2, 100)])
    assert [hand_out(openings, 150) for _ in range(4)] == [2, 2, 1, 2]


def test_equals_take_turns(make_child: MakeMember) -> None:
    openings = Openings([make_child(1), make_child(2), make_child(3)])
    assert [hand_out(openings, SHORT) for _ in range(6)] == [1, 2, 3, 1, 2, 3]


def test_a_window_is_filled_and_no_more(make_child: MakeMember) -> None:
    openings = Openings([make_child(1, WINDOW_US - 2 * SHORT)])
    assert [hand_out(openings, SHORT) for _ in range(3)] == [1, 1, None]
    assert not openings


def test_what_is_too_long_for_all_leaves_room_for_what_is_short(make_child: MakeMember) -> None:
    openings = Openings([make_child(1, 5_000), make_child(2, 6_000)])
    assert hand_out(openings, 6_000) is None
    assert hand_out(openings, 5_000) == 1


def test_a_task_that_must_be_alone_gets_an_idle_child(make_child: MakeMember) -> None:
    openings = Openings([make_child(1, SHORT), make_child(2)])
    assert hand_out(openings, SHORT, alone=True) == 2
    assert hand_out(openings, SHORT, alone=True) is None
    # Nothing goes to a child that has such a one.
    assert [hand_out(openings, SHORT) for _ in range(2)] == [1, 1]


def test_a_child_at_the_end_of_its_life_is_passed_over(make_child: MakeMember) -> None:
    openings = Openings([make_child(1, SHORT, most=2), make_child(2, SHORT, SHORT, SHORT)])
    assert [hand_out(openings, SHORT) for _ in range(3)] == [1, 2, 2]


def test_children_that_take_nothing_are_none(make_child: MakeMember) -> None:
    leaving, stuck = make_child(1), make_child(2, SHORT)
    leaving.state = ChildState.LEAVING
    stuck.slow = True
    openings = Openings([leaving, stuck])
    assert not openings
    assert openings.find(SHORT, False) is None


def test_a_start_is_due_when_a_child_is_half_through(make_child: MakeMember) -> None:
    busy = make_child(1, WINDOW_US // 2, SHORT)
    assert not Openings([busy]).is_due
    assert Openings([busy, make_child(2, WINDOW_US // 2)]).is_due
    assert not Openings([]).is_due


def test_a_window_of_short_tasks_is_claimed_when_a_child_is_due(make_child: MakeMember) -> None:
    idle, half, full = make_child(0), make_child(1, WINDOW_US // 2), make_child(2, WINDOW_US)
    children = {child.number: child for child in (idle, half, full)}
    placement = Placement(children, {}, (), None)
    placement.costs.learn("t", [10] * 1000)
    placement.claimed("t", 1, 100)
    each = placement.costs.of("t")
    assert placement.short_room == WINDOW_US // each + WINDOW_US // 2 // each
    idle.slow = True
    assert placement.short_room == WINDOW_US // 2 // each
    del children[0], children[1]
    assert placement.short_room == 0
