"""The keeper gives back what carries our token and is known nowhere, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.outcome import Returned
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.duties.lease_keeper import LeaseKeeper
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import Assignment
from tests.support.hands import Hands
from tests.support.stores import Lab, on_each_engine


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def keep(lab: Lab, hands: Hands) -> list[Assignment]:
    """Renew and look around, three times; whose code was stopped."""
    outage = Outage(1.0)
    keeper = LeaseKeeper(lab.store, hands.ledger, outage)
    for _ in range(3):
        # While the store is thought to be away, every tick renews.
        outage.noted(StoreUnavailable("away"))
        keeper.tick()
    return [run for run in hands.ledger.assignments() if run.told_to_end is not None]


@on_each_engine
def test_what_is_being_written_is_ours(lab: Lab, hands: Hands) -> None:
    """The write may last: its connection may have to be made anew after an outage."""
    held, ended, written = lab.claimed(), lab.running(), lab.running()
    hands.hold(held)
    hands.ended(written, Returned("1"))
    assert hands.ledger.outcomes.take(1, 0)[0]
    hands.ended(ended, Returned("2"))
    assert keep(lab, hands) == []
    assert lab.statuses([held.id, ended.id, written.id]) == [
        TaskStatus.CLAIMED,
        TaskStatus.RUNNING,
        TaskStatus.RUNNING,
    ]


@on_each_engine
def test_what_nobody_here_knows_is_given_back(
    lab: Lab, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    unknown, held = lab.claimed(), lab.claimed()
    hands.hold(held)
    hands.ledger._claimed([unknown])
    assert keep(lab, hands) == []
    assert lab.statuses([unknown.id, held.id]) == [TaskStatus.PENDING, TaskStatus.CLAIMED]
    assert "1 task(s) are ours but unknown here" in caplog.text
