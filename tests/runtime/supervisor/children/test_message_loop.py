"""What the message loop does while others are at work on the same child."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from holdfast.core.options.policy import Policy
from holdfast.runtime.supervisor.children.listening import Listening
from holdfast.runtime.supervisor.children.message_loop import MessageLoop
from holdfast.runtime.supervisor.state.child_handle import Assignment, Pace
from holdfast.runtime.wire.framing import frame
from holdfast.runtime.wire.messages import Done, Reply, Said
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.deadline import passed, until
from tests.support.hands import Hands
from tests.support.verbs import new_token

NOBODY = cast("Any", None)


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@pytest.fixture
def message_loop(hands: Hands) -> MessageLoop:
    return MessageLoop(
        hands.ledger,
        Listening(),
        NOBODY,
        NOBODY,
        evidence=NOBODY,
        relay=NOBODY,
        stacked=NOBODY,
        told=NOBODY,
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
        Assignment(slot, claimed(slot, token), policy, hands.child, 10)
        for slot in range(1, number + 1)
    ]


@pytest.mark.usefixtures("restless")
def test_outcomes_are_heard_while_the_claimer_fills_the_same_hand(
    hands: Hands, message_loop: MessageLoop
) -> None:
    stop = threading.Event()
    given = assignments(hands, 200, Policy(capture_output=False))

    def give_and_take() -> None:
        while not stop.is_set():
            for assignment in given:
                hands.child.take(assignment, alone=False)
            hands.ledger.put_back(given)

    claimer = threading.Thread(target=give_and_take)
    claimer.start()
    try:
        for _ in range(3_000):
            message_loop._pass_on(hands.child, Done([]))
    finally:
        stop.set()
        claimer.join(30)


def test_a_child_knows_how_many_of_its_tasks_are_captured(hands: Hands) -> None:
    kept, free = (
        assignments(hands, 2, Policy(capture_output=captured)) for captured in (True, False)
    )
    for assignment in (kept[0], free[1]):
        hands.child.take(assignment, alone=False)
    assert hands.child.captured == 1
    hands.child.drop(free[1].slot)
    assert hands.child.captured == 1
    hands.child.drop(kept[0].slot)
    hands.child.drop(kept[0].slot)
    assert hands.child.captured == 0


def test_a_full_socket_is_waited_for_and_not_tried_over_and_over(hands: Hands) -> None:
    listening = Listening()
    loop = MessageLoop(
        hands.ledger,
        listening,
        NOBODY,
        NOBODY,
        evidence=NOBODY,
        relay=NOBODY,
        stacked=NOBODY,
        told=NOBODY,
    )
    hands.child.output, child_output = os.pipe()
    hands.child._stuck = listening.stuck
    hands.child.say(*[Reply(n, rows="x" * 100_000) for n in range(100)])
    stop = threading.Event()
    ticks = 0

    def run() -> None:
        nonlocal ticks
        while not stop.is_set():
            loop.tick()
            ticks += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        passed(0.3)
        assert ticks < 10
        heard: list[Reply] = []
        while len(heard) < 100:
            heard += until(lambda: hands.heard(Reply))
        assert [answer.ticket for answer in heard] == list(range(100))
    finally:
        stop.set()
        loop.wake()
        thread.join(5)
        listening.close()
        os.close(hands.child.output)
        os.close(child_output)


class Complaints:
    """Evidence that only counts what a child says of no task."""

    def __init__(self) -> None:
        self.number = 0

    def complained(self, child: object, data: bytes) -> None:
        self.number += 1


def test_a_child_that_floods_its_supervisor_is_heard_at_its_pace(hands: Hands) -> None:
    complaints, listening = Complaints(), Listening()
    loop = MessageLoop(
        hands.ledger,
        listening,
        NOBODY,
        NOBODY,
        evidence=cast("Any", complaints),
        relay=NOBODY,
        stacked=NOBODY,
        told=NOBODY,
    )
    hands.child.output, child_output = os.pipe()
    hands.child.sock.setblocking(False)
    hands.child.hearing = Pace(bytes_per_s=1e9, messages_per_s=100, burst_s=0.1)
    listening.joined(hands.child)
    at_once = 20
    flood = b"".join(frame(Said(0, b"x")) for _ in range(at_once))
    said, began = 0, time.monotonic()
    try:
        while time.monotonic() < began + 0.5:
            if said == complaints.number:
                hands._theirs.send(flood)
                said += at_once
            loop.tick()
        # What came in one piece is read in one piece.
        allowed = 100 * (time.monotonic() - began + 0.1) + at_once
        assert at_once <= complaints.number <= allowed
    finally:
        listening.close()
        os.close(hands.child.output)
        os.close(child_output)
