"""What the switchboard does while others are at work on the same child."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from holdfast.core.options.policy import Policy
from holdfast.runtime.supervisor.children.message_loop import Switchboard
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.wire.messages import Done, Outcome
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.hands import Hands
from tests.support.verbs import new_token

NOBODY = cast("Any", None)


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@pytest.fixture
def switchboard(hands: Hands) -> Switchboard:
    return Switchboard(
        hands.desk,
        evidence=NOBODY,
        relay=NOBODY,
        stacked=NOBODY,
        told=NOBODY,
        template_ended=NOBODY,
    )


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def assignments(hands: Hands, number: int, policy: Policy) -> list[Assignment]:
    token = new_token()
    return [
        Assignment(slot, claimed(slot, token), policy, hands.member, 10)
        for slot in range(1, number + 1)
    ]


@pytest.mark.usefixtures("restless")
def test_outcomes_are_heard_while_the_claimer_fills_the_same_hand(
    hands: Hands, switchboard: Switchboard
) -> None:
    stop = threading.Event()
    given = assignments(hands, 200, Policy(capture_output=False))

    def give_and_take() -> None:
        while not stop.is_set():
            with hands.desk.lock:
                for assignment in given:
                    hands.member.take(assignment, alone=False)
            with hands.desk.lock:
                for assignment in given:
                    hands.member.drop(assignment.slot)

    claimer = threading.Thread(target=give_and_take)
    claimer.start()
    try:
        for _ in range(3_000):
            switchboard._pass_on(hands.member, Done([Outcome(99_999, "returned")]))
    finally:
        stop.set()
        claimer.join(30)


def test_a_child_knows_how_many_of_its_tasks_are_captured(hands: Hands) -> None:
    kept, free = (
        assignments(hands, 2, Policy(capture_output=captured)) for captured in (True, False)
    )
    for assignment in (kept[0], free[1]):
        hands.member.take(assignment, alone=False)
    assert hands.member.captured == 1
    hands.member.drop(free[1].slot)
    assert hands.member.captured == 1
    hands.member.drop(kept[0].slot)
    hands.member.drop(kept[0].slot)
    assert hands.member.captured == 0
