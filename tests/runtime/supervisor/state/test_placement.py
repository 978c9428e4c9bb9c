"""Who gets the next task."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.options.policy import Policy
from holdfast.core.records import ClaimedTask
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import Member, State
from holdfast.runtime.supervisor.state.costs import LEAST_US, WINDOW_US
from holdfast.runtime.supervisor.state.placement import Openings
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.shared_page import Board

MakeMember = Callable[..., Member]
SHORT = LEAST_US


@pytest.fixture
def make_member() -> Iterator[MakeMember]:
    with ExitStack() as undo:

        def make(number: int, *loads: int, most: int | None = None) -> Member:
            ours, theirs = socket.socketpair()
            memory = shared_page.create(1)
            member = Member(
                number, "process", 1, ours, Board(memory, 1), -1, bytes(16), lambda member: None
            )
            os.close(memory)
            undo.callback(theirs.close)
            undo.callback(member.close)
            member.most = most
            member.state = State.READY
            for slot, load in enumerate(loads):
                member.take(assignment(slot, member, load), False)
            return member

        yield make


def assignment(slot: int, member: Member, cost_us: int) -> Assignment:
    task = ClaimedTask(
        slot, bytes(16), "t", 1, "q", 50, 0, "[]", "{}", None, 0, 0, 0, 0, None,
        None, None, None, None, bytes(16),
    )  # fmt: skip
    return Assignment(slot, task, Policy(), member, cost_us)


def hand_out(openings: Openings, cost_us: int, *, alone: bool = False) -> int | None:
    member = openings.find(cost_us, alone)
    if member is None:
        return None
    member.take(assignment(1000 + len(member.hand), member, cost_us), alone)
    openings.given(member)
    return member.number


def test_the_least_loaded_is_next(make_member: MakeMember) -> None:
    openings = Openings([make_member(1, 300), make_member(2, 100)])
    assert [hand_out(openings, 150) for _ in range(4)] == [2, 2, 1, 2]


def test_equals_take_turns(make_member: MakeMember) -> None:
    openings = Openings([make_member(1), make_member(2), make_member(3)])
    assert [hand_out(openings, SHORT) for _ in range(6)] == [1, 2, 3, 1, 2, 3]


def test_a_window_is_filled_and_no_more(make_member: MakeMember) -> None:
    openings = Openings([make_member(1, WINDOW_US - 2 * SHORT)])
    assert [hand_out(openings, SHORT) for _ in range(3)] == [1, 1, None]
    assert not openings


def test_what_is_too_long_for_all_leaves_room_for_what_is_short(make_member: MakeMember) -> None:
    openings = Openings([make_member(1, 5_000), make_member(2, 6_000)])
    assert hand_out(openings, 6_000) is None
    assert hand_out(openings, 5_000) == 1


def test_a_task_that_must_be_alone_gets_an_idle_child(make_member: MakeMember) -> None:
    openings = Openings([make_member(1, SHORT), make_member(2)])
    assert hand_out(openings, SHORT, alone=True) == 2
    assert hand_out(openings, SHORT, alone=True) is None
    # Nothing goes to a child that has such a one.
    assert [hand_out(openings, SHORT) for _ in range(2)] == [1, 1]


def test_a_child_at_the_end_of_its_life_is_passed_over(make_member: MakeMember) -> None:
    openings = Openings([make_member(1, SHORT, most=2), make_member(2, SHORT, SHORT, SHORT)])
    assert [hand_out(openings, SHORT) for _ in range(3)] == [1, 2, 2]


def test_children_that_take_nothing_are_none(make_member: MakeMember) -> None:
    leaving, stuck = make_member(1), make_member(2, SHORT)
    leaving.state = State.LEAVING
    stuck.slow = True
    openings = Openings([leaving, stuck])
    assert not openings
    assert openings.find(SHORT, False) is None


def test_a_start_is_due_when_a_child_is_half_through(make_member: MakeMember) -> None:
    busy = make_member(1, WINDOW_US // 2, SHORT)
    assert not Openings([busy]).is_due
    assert Openings([busy, make_member(2, WINDOW_US // 2)]).is_due
    assert not Openings([]).is_due
