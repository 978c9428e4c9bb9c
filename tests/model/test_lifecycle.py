"""Both engines do what the model does, whatever the order of events."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.operating import Operating
from tests.model.sending import Sending
from tests.model.side import Side
from tests.model.working import Working
from tests.support.stores import ENGINES, Labs


def test_both_engines_follow_the_model(labs: Labs) -> None:
    class Lifecycle(Sending, Working, Operating):
        @staticmethod
        def open_sides(closing: ExitStack) -> list[Side]:
            return [Side(closing.enter_context(labs.open(kind))) for kind in ENGINES]

    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
