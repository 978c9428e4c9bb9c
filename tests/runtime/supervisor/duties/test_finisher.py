"""The finisher: what is counted of ended runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any, cast

import pytest

from holdfast.core.outcome import Returned
from holdfast.core.statistics import RUN
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.verbs import statistics
from tests.support.deadline import until
from tests.support.hands import Hands
from tests.support.stores import SECOND, Lab, on_each_engine
from tests.support.verbs import WORKER


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@on_each_engine
def test_how_long_tasks_waited_is_counted(lab: Lab, hands: Hands) -> None:
    """From when they could have been claimed, by the store's clock, whatever ours says."""
    finisher = Finisher(
        lab.store,
        hands.ledger,
        Outage(1.0),
        cast("Any", None),
        worker_id=WORKER,
        kill=lambda child: None,
        put_off=lambda: None,
    )
    for waited in (5, 7):
        id = lab.send()
        lab.clock.advance(waited)
        task = lab.started(lab.claim_of(id))
        hands.ledger.learn_time(lab.clock.now)
        hands.ended(task, Returned("1"), given_at=monotonic())
        finisher.tick()
    until(lambda: finisher.tick() == 0.0 and lab.run(statistics.totals()), within=5)
    (ever,) = lab.run(statistics.totals())
    assert ever.counts["completed"] == 2
    assert ever.counts["wait_11"] == 2, "between 5 and 15 s"
    assert sum(ever.counts[name] for name in RUN) == 2
    assert ever.counts["wait_us"] == pytest.approx(12 * SECOND, abs=0.1 * SECOND)
