"""Both engines do what the model does, whatever the order of events.

`make test` plays the same examples each time; `make test-full` plays others, and says how to
repeat one that failed.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import ExitStack
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.core.lifecycle import Verb, edges
from holdfast.core.status import TaskStatus
from tests.model.lifecycle import Lifecycle
from tests.model.machine import Move
from tests.model.side import Side
from tests.support.stores import ENGINES, Labs

COMMON = settings(
    stateful_step_count=40,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)
QUICK = settings(COMMON, max_examples=100, derandomize=True)
LONG = settings(COMMON, max_examples=2000)

# A task that has been claimable once needs nothing more, and its edges are not opened again.
UNREACHABLE = {
    (status, TaskStatus.WAITING)
    for status in (TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED)
}


def play(labs: Labs, how: settings) -> Counter[Move]:
    """Run the machine on both engines; the moves that tasks have made."""

    class Here(Lifecycle):
        seen: ClassVar[Counter[Move]] = Counter()

        @staticmethod
        def open_sides(closing: ExitStack) -> list[Side]:
            return [Side(closing.enter_context(labs.open(kind))) for kind in ENGINES]

    run_state_machine_as_test(Here, settings=how)
    return Here.seen


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be decided is logged, thousands of times here."""
    caplog.set_level(logging.CRITICAL, "holdfast.store")


def unseen(seen: Counter[Move]) -> set[Move]:
    """The moves of the lifecycle that no example has made."""
    return (
        {(source, target) for source, target, _ in edges(set(Verb) - {Verb.HAND_OVER, Verb.SETTLE})}
        - seen.keys()
        - UNREACHABLE
    )


@pytest.mark.timeout(600)
def test_both_engines_follow_the_model(labs: Labs) -> None:
    missing = unseen(play(labs, QUICK))
    assert len(missing) <= 6, f"the examples have to make nearly every move, not {missing}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_both_engines_follow_the_model_for_long(labs: Labs) -> None:
    missing = unseen(play(labs, LONG))
    assert not missing, f"the examples have to make every move, also {missing}"
