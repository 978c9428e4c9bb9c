"""Both engines do what the model does, whatever the order of events."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.lifecycle import Lifecycle
from tests.model.side import Side
from tests.support.stores import ENGINES, Labs


def test_both_engines_follow_the_model(labs: Labs) -> None:
    class Here(Lifecycle):
        @staticmethod
        def open_sides(closing: ExitStack) -> list[Side]:
            return [Side(closing.enter_context(labs.open(kind))) for kind in ENGINES]

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
