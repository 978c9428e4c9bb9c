"""What charts say in words, and which stretch of time they show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from starlette.requests import Request

from holdfast.client.worker_history import WorkerHistory, WorkerPoint
from holdfast.web.drawing.chart import bridged
from holdfast.web.pages.chart_look import ChartLook, table_of
from holdfast.web.pages.chart_range import ChartRange
from holdfast.web.pages.charts import said_at, times_of
from holdfast.web.pages.words import number
from holdfast.web.pages.worker_charts import worker_charts

NOW = datetime(2026, 11, 16, 14, 32, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def asked(query: str) -> ChartRange:
    scope = {"type": "http", "query_string": query.encode(), "headers": []}
    return ChartRange.read(Request(scope), NOW)


def test_a_range_ends_now_unless_it_is_said() -> None:
    usual = asked("")
    assert (usual.chosen, usual.last, usual.until) == ("1h", 3600, None)
    assert usual.options == {"last": 3600}
    assert usual.query() == {"r": None, "until": None}
    assert usual.later(NOW) is None
    day = asked("r=24h&until=2026-11-15T12:00")
    assert day.options == {"last": 86_400, "until": datetime(2026, 11, 15, 12, tzinfo=UTC)}
    assert day.query("15m") == {"r": "15m", "until": "2026-11-15T12:00"}


def test_earlier_and_later_are_half_of_it() -> None:
    assert asked("r=6h").earlier(NOW) == {"r": "6h", "until": "2026-11-16T11:32"}
    hour = asked("r=1h&until=2026-11-16T13:00")
    assert hour.later(NOW) == {"r": "1h", "until": "2026-11-16T13:30"}
    assert asked("r=1h&until=2026-11-16T14:10").later(NOW) == {"r": "1h", "until": None}
    assert (hour.closer, hour.half_closer, asked("r=15m").closer) == ("15m", 450, None)


@pytest.mark.parametrize(
    "query",
    ["r=1y", "until=soon", "until=2026-11-16T14:33", "until=9999-12-31T23:59", "until=0001"],
)
def test_what_makes_no_sense_is_as_if_it_was_not_said(query: str) -> None:
    assert asked(query) == asked("")


def test_each_step_says_its_time_and_every_line() -> None:
    times = [NOW, NOW + MINUTE]
    lines = [("p95", [2.0, None], number), ("p50", [1.0, None], number)]
    assert said_at(times, lines, short=True) == [
        ("14:32 UTC", "p95 2, p50 1"),
        ("14:33 UTC", "–"),
    ]
    assert said_at(times[:1], [("", [3.0], number)], short=False) == [("16 Nov 14:32 UTC", "3")]
    assert times_of(NOW, NOW + 2 * MINUTE) == ["14:32", "14:33", "14:34"]


def test_gaps_are_bridged_up_to_a_length() -> None:
    assert bridged([1, None, 3, None, None, None, 3]) == [1, 2, 3, 3, 3, 3, 3]
    assert bridged([1, None, 3, None, None, None, 3], 2) == [1, 2, 3, None, None, None, 3]
    assert bridged([None, 1, None]) == [None, 1, None]


def test_the_charts_of_a_worker() -> None:
    points = [WorkerPoint(NOW, 4, 2.5, 4, 1, 800.0, 55.0, 90.0)]
    history = WorkerHistory(NOW, NOW + 2 * MINUTE, MINUTE, points)
    busy, cpu, used = worker_charts(history, 4)
    assert (busy.figure, busy.unit, busy.plot.top) == ("2.5", "of 4", 4)
    assert busy.values[0] == ("14:32 UTC", "at most 4, on average 2.5")
    assert (cpu.figure, used.figure) == ("55 %", "800 MB")
    nothing = worker_charts(WorkerHistory(NOW, NOW + MINUTE, MINUTE, []), 0)
    assert all(chart.empty and chart.values_json == "[]" for chart in nothing)


def test_the_table_says_of_each_step_what_the_charts_say() -> None:
    points = [WorkerPoint(NOW, 4, 1.5, 2, 0, 30.0, 10.0, 20.0)]
    charts = worker_charts(WorkerHistory(NOW, NOW + 2 * MINUTE, MINUTE, points), 4)
    assert [(time, said[0]) for time, said in table_of(charts)] == [
        ("14:33 UTC", "–"),
        ("14:32 UTC", "at most 2, on average 1.5"),
    ]
    assert table_of([]) == []


def test_links_from_charts_to_the_table_keep_the_rest() -> None:
    look = ChartLook(run_time=True)
    assert look.turned == {"chart": "run", "table": 1}
    assert ChartLook(run_time=True, table=True).other == {"chart": None, "table": 1}
