"""The builders of the other tests: a task in any state, reached by real verbs."""

from __future__ import annotations

import pytest

from holdfast.core.status import TaskStatus
from holdfast.store.verbs import timing
from tests.support.stores import MORNING, Lab, on_each_engine


@on_each_engine
@pytest.mark.parametrize("status", list(TaskStatus))
def test_every_state_can_be_reached(lab: Lab, status: TaskStatus) -> None:
    case = lab.reach(status)
    assert lab.status(case.id) is status
    token = lab.task(case.id).claim_token
    assert token == (case.current if status in ("CLAIMED", "RUNNING") else None)
    assert case.stale != token


def test_the_clock_is_the_databases_and_moves_by_the_microsecond(lab: Lab) -> None:
    assert lab.run(timing.next_due()).now == MORNING
    lab.clock.advance(86_400.000_001)
    assert lab.run(timing.next_due()).now == lab.clock.now == MORNING + 86_400_000_001
