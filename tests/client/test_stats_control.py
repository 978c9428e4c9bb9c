"""What was done over time, from Python."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.store import statement
from holdfast.store.verbs import statistics
from holdfast.store.verbs.statistics import Tally
from tests.client.conftest import Hands
from tests.web.pages.budget import asked


def test_a_series_and_what_is_in_it(app: Holdfast, hands: Hands) -> None:
    counts = {"completed": 3, "failed": 1, "stalled": 1, "sent": 9, "retried": 2}
    tally = Tally.of("w", "mail", "t", wait_us=5_000_000, wait_08=5, run_us=10, run_00=5, **counts)
    hands.run(statistics.add_tallies([tally, Tally.of("w", "bulk", "u", cancelled=1)]))
    series = app.control.stats.series(queue="mail")
    assert (series.step, len(series.times)) == (timedelta(minutes=1), 60)
    (point,) = series.points
    assert point.at in series.times
    assert (point.queue, point.task) == (None, None)
    assert (point.counted.sent, point.counted.ended, point.counted.failures) == (9, 5, 2)
    assert point.counted.wait.p50 == pytest.approx(0.75)
    assert point.counted.wait.mean == 1.0
    by_task = asyncio.run(app.control.stats.aseries(last="7d", step="1d", by="task"))
    assert [(p.queue, p.task) for p in by_task.points] == [("bulk", "u"), ("mail", "t")]
    summary = app.control.stats.summary(last=300, by="queue")
    assert [(p.queue, p.counted.ended) for p in summary] == [("bulk", 1), ("mail", 5)]
    assert [p.counted.sent for p in app.control.stats.totals()] == [0, 9]


def test_depths_now_and_before(app: Holdfast, hands: Hands) -> None:
    app.send("any")
    (depth,) = app.control.stats.depths()
    assert (depth.queue, depth.pending, depth.running) == ("default", 1, 0)
    assert asyncio.run(app.control.stats.adepths())[0].oldest >= depth.oldest
    found = hands.run(statistics.depths())
    hands.run(statistics.add_depths(found))
    (point,) = app.control.stats.series().depth
    assert point.depth.pending == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 30},
        {"step": "90s"},
        {"last": -1},
        {"last": "9d", "step": 60},
        {"by": "x"},
        {"q": 1},
    ],
)
def test_wrong_questions(app: Holdfast, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        app.control.stats.series(**wrong)  # type: ignore[arg-type]


def test_rates_are_read_from_counters_and_never_from_tasks(app: Holdfast) -> None:
    app.options(queue="mail").send("a")
    for ask in (
        lambda: app.control.stats.series(last="6h", by="queue"),
        lambda: app.control.stats.series(last="7d", by="task"),
        lambda: app.control.stats.summary(last="15m", by="task"),
        lambda: app.control.stats.totals(),
    ):
        with asked() as seen:
            ask()
        assert seen.names
        for name in seen.names:
            text = statement.text(name, "sqlite") + statement.text(name, "postgresql")
            assert "holdfast_tasks" not in text or name == "next_due", name


def test_what_is_deep_now_is_counted_by_indexes_and_few_rows(app: Holdfast) -> None:
    task = app.task("many")(lambda: None)
    task.options(queue="mail").send_many([()] * 3_000)
    for ask in (app.control.stats.depths, app.control.stats.prometheus):
        with asked() as seen:
            ask()
        assert seen.rows < 60, seen
        assert len(seen.names) <= 14, seen
