"""Whose question is answered next."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from holdfast.runtime.supervisor.relay.turns import Turns
from tests.support.deadline import until


@pytest.fixture
def one() -> Iterator[Turns]:
    turns = Turns(1)
    yield turns
    turns.close()


def test_nobody_waits_behind_a_flood(one: Turns) -> None:
    gate = threading.Event()
    done: list[str] = []
    one.give("flood", lambda: gate.wait(20))
    for number in range(100):
        one.give("flood", lambda number=number: done.append(f"flood {number}"))  # type: ignore[misc]
    one.give("neighbour", lambda: done.append("neighbour"))
    one.give("neighbour", lambda: done.append("neighbour again"))
    gate.set()
    until(lambda: len(done) == 102)
    assert done.index("neighbour") <= 1
    assert done.index("neighbour again") <= 3
    assert [said for said in done if "flood" in said] == [f"flood {n}" for n in range(100)]


def test_who_holds_a_thread_waits_for_those_who_hold_none() -> None:
    turns = Turns(2)
    gates = [threading.Event(), threading.Event()]
    done: list[str] = []
    try:
        turns.give("holder", lambda: gates[0].wait(20))
        turns.give("other", lambda: gates[1].wait(20))
        until(lambda: not turns._waiting)
        turns.give("holder", lambda: done.append("holder"))
        turns.give("neighbour", lambda: done.append("neighbour"))
        gates[1].set()
        until(lambda: len(done) == 2)
        assert done == ["neighbour", "holder"]
    finally:
        for gate in gates:
            gate.set()
        turns.close()


def test_an_error_ends_no_thread(one: Turns, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    one.give("a", lambda: 1 // 0)
    one.give("a", done.set)
    assert done.wait(5)
    assert "could not be answered" in caplog.text
