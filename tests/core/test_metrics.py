"""What Prometheus is told: a text that its own parser reads, and never too much of it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from holdfast.core.metrics import (
    MOST_QUEUES,
    OTHER,
    DepthNow,
    Family,
    FleetReading,
    Sample,
    families,
    metrics_text,
)
from holdfast.core.statistics import BOUNDS, COUNTERS

NONE = dict.fromkeys(COUNTERS, 0)
EMPTY = FleetReading([], {}, {"alive": 0, "silent": 0}, 0, 0, 0, 0)


def parsed(found: FleetReading) -> dict[str, dict[tuple[str, ...], float]]:
    """The value of each series, as Prometheus reads them."""
    text = metrics_text(families(found))
    text.encode("utf-8")
    values: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = values.setdefault(sample.name, {})
            labels = tuple(sample.labels.values())
            assert labels not in series, f"{sample.name}{labels} is there twice"
            series[labels] = sample.value
    return values


def test_counters_histograms_and_gauges() -> None:
    counts = {**NONE, "sent": 9, "completed": 5, "cancelled": 1, "other": 1, "retried": 2}
    counts |= {"run_us": 2_500_000, "run_00": 3, "run_02": 1, "run_15": 2, "wait_us": 10}
    depth = DepthNow(7, 1, 2, 3, 4, oldest_us=1_500_000, paused=True)
    found = parsed(
        FleetReading(
            [("mail", "send", counts)],
            {"mail": depth},
            {"alive": 2, "silent": 1},
            4,
            5_000_000,
            1,
            250_000,
        )
    )
    key = ("mail", "send")
    assert found["holdfast_tasks_sent_total"] == {key: 9}
    assert found["holdfast_tasks_finished_total"] == {
        (*key, "completed"): 5,
        (*key, "failed"): 0,
        (*key, "cancelled"): 2,
    }
    buckets = found["holdfast_task_duration_seconds_bucket"]
    assert len(buckets) == len(BOUNDS) + 1
    assert buckets[(*key, "0.001")] == 3
    assert buckets[(*key, "0.01")] == 4
    assert buckets[(*key, "1800.0")] == 4
    assert buckets[(*key, "+Inf")] == found["holdfast_task_duration_seconds_count"][key] == 6
    assert found["holdfast_task_duration_seconds_sum"][key] == 2.5
    assert found["holdfast_queue_tasks"][("mail", "running")] == 3
    assert found["holdfast_queue_oldest_pending_seconds"] == {("mail",): 1.5}
    assert found["holdfast_queue_paused"] == {("mail",): 1}
    assert found["holdfast_dead_letters"] == {("mail",): 4}
    assert found["holdfast_workers"] == {("alive",): 2, ("silent",): 1}
    assert found["holdfast_lease_overdue_seconds"] == {(): 5}
    assert found["holdfast_schedule_lag_seconds"] == {(): 0.25}


def test_names_that_are_hostile_or_equal_when_cut() -> None:
    hostile = 'a"b\\c\nd\x00\x1b[31m\ud800é' + "x" * 1000
    sent = {**NONE, "sent": 1}
    deep = {hostile: DepthNow(pending=1), hostile + "y": DepthNow(pending=2, oldest_us=9)}
    found = parsed(
        FleetReading([(hostile, "t", sent), (hostile + "y", "t", sent)], deep, {}, 0, 0, 0, 0)
    )
    ((labels, number),) = found["holdfast_tasks_sent_total"].items()
    assert number == 2
    assert len(labels[0]) < 200
    assert labels[0].isprintable()
    assert found["holdfast_queue_tasks"][(labels[0], "pending")] == 3


def test_a_million_queues_are_told_as_a_thousand() -> None:
    deep = {f"q-{place}": DepthNow(pending=place) for place in range(MOST_QUEUES + 10)}
    series = parsed(FleetReading([], deep, {}, 0, 0, 0, 0))["holdfast_dead_letters"]
    assert len(series) == MOST_QUEUES + 1
    queues = parsed(FleetReading([], deep, {}, 0, 0, 0, 0))["holdfast_queue_tasks"]
    assert queues[(OTHER, "pending")] == sum(range(10))


def test_an_empty_store_and_a_number_with_a_fraction() -> None:
    assert parsed(EMPTY)["holdfast_workers"] == {("alive",): 0, ("silent",): 0}
    text = metrics_text([Family("x", "gauge", "X.", [Sample("", (), 0.1)])])
    assert text == "# HELP x X.\n# TYPE x gauge\nx 0.1\n"
