"""How a worker was over time, by steps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.core.records import WorkerState
from holdfast.store.verbs import workers
from tests.client.conftest import Hands


def state(running: int, **said: Any) -> WorkerState:
    return WorkerState("w1", "host", 7, 2, "[]", running, running + 1, 0, **said)


def test_snapshots_are_put_together_by_steps(app: Holdfast, hands: Hands) -> None:
    for running, memory, cpu in ((1, 50.0, 10.0), (4, 90.0, 30.0), (1, 60.0, None)):
        hands.run(workers.snapshot(state(running, memory_usage_mb=memory, cpu_percent=cpu)))
    hands.run(workers.snapshot(WorkerState("w2", "host", 8, 1, "[]", 9, 9, 0)))
    found = app.control.workers.history("w1", last="7d", step="7d")
    assert found.step == timedelta(days=7)
    (point,) = found.points
    assert (point.at, list(found.times)) == (found.start, [found.start])
    assert (point.processes, point.tasks_running) == (2, 2.0)
    assert (point.most_running, point.most_claimed) == (4, 5)
    assert (point.memory_usage_mb, point.cpu_percent, point.most_cpu_percent) == (90.0, 20.0, 30.0)
    assert asyncio.run(app.control.workers.ahistory("w1", last="7d", step="7d")) == found


def test_the_range_and_its_steps(app: Holdfast, hands: Hands) -> None:
    hands.run(workers.snapshot(state(1)))
    hour = app.control.workers.history("w1")
    assert (hour.step, len(hour.times), len(hour.points)) == (timedelta(seconds=30), 120, 1)
    assert hour.points[0].at in hour.times
    assert app.control.workers.history("w1", last="30d").step == timedelta(hours=6)
    assert app.control.workers.history("w1", last="36500d").step == timedelta(days=305)
    before = app.control.workers.history("w1", until=datetime(2020, 1, 1, tzinfo=UTC))
    assert (before.until, before.points) == (datetime(2020, 1, 1, tzinfo=UTC), [])
    assert app.control.workers.history("nobody").points == []
    for at in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)):
        app.control.workers.history("w1", until=at)


@pytest.mark.parametrize(
    "options",
    [{"step": 0.5}, {"step": "1.5s"}, {"last": "30d", "step": 1}, {"last": "a day"}, {"by": 1}],
)
def test_what_makes_no_sense_is_refused(app: Holdfast, options: Any) -> None:
    with pytest.raises(ConfigError):
        app.control.workers.history("w1", **options)
