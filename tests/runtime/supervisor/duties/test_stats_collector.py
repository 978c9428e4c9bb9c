"""The collector: one worker's turn counts for all."""

from __future__ import annotations

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor.duties.stats_collector import StatsCollector
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.verbs import statistics
from tests.support.stores import Lab, on_each_engine


@on_each_engine
def test_a_turn_folds_and_writes_down_depths(lab: Lab) -> None:
    lab.send()
    lab.run(statistics.add_tallies([statistics.Tally.of("w", "q", "t", completed=1)]))
    lab.clock.advance(90)
    collector, other = (StatsCollector(lab.store, Outage(1.0)) for _ in range(2))
    assert collector.tick() > 0
    assert lab.sql("SELECT count(*) FROM holdfast_stats") == [(0,)]
    depths = lab.sql("SELECT level, pending FROM holdfast_depths ORDER BY level")
    assert depths == [("hour", 1), ("minute", 1)]
    other.tick()
    assert lab.sql("SELECT count(*) FROM holdfast_depths") == [(2,)]


@on_each_engine
def test_it_rests_while_the_store_is_away(lab: Lab) -> None:
    outage = Outage(1.0)
    outage.noted(StoreUnavailable("away"))
    assert StatsCollector(lab.store, outage).tick() == 1.0
