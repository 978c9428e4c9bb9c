"""Counters, buckets and percentiles."""

from __future__ import annotations

import pytest

from holdfast.core.statistics import (
    BOUNDS,
    COUNTERS,
    RUN,
    WAIT,
    level_for,
    percentile,
    run_column,
    wait_column,
)

HOUR = 3_600_000_000


def test_a_value_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    assert wait_column(0) == wait_column(1000) == "wait_00"
    assert wait_column(1001) == "wait_01"
    assert run_column(1_000_000) == "run_08"
    assert run_column(10**15) == RUN[-1] == f"run_{len(BOUNDS):02d}"
    assert len(set(COUNTERS)) == len(COUNTERS)


def test_percentiles_are_as_exact_as_the_buckets() -> None:
    buckets = [0] * len(WAIT)
    assert percentile(buckets, 0.5) is None
    buckets[8], buckets[9] = 90, 10
    assert percentile(buckets, 0.5) == pytest.approx(0.5 + 0.5 * 50 / 90)
    assert percentile(buckets, 0.95) == pytest.approx(1.75)
    assert percentile(buckets, 1.0) == 2.5
    buckets = [0] * len(WAIT)
    buckets[-1] = 3
    assert percentile(buckets, 0.5) == BOUNDS[-1]


def test_the_level_of_a_series() -> None:
    assert level_for(60_000_000) == level_for(90 * 60_000_000) == "minute"
    assert level_for(HOUR) == level_for(6 * HOUR) == "hour"
    assert level_for(24 * HOUR) == "day"
