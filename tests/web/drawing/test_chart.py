"""Where lines go, and what an axis reaches."""

from __future__ import annotations

import pytest

from holdfast.web.drawing.chart import plot, round_span, round_top, spark


@pytest.mark.parametrize(
    ("value", "top"),
    [(0, 1), (-3, 1), (1, 1), (7.8, 8), (14_206, 16_000), (1_037, 1_200), (0.48, 0.5), (9.7, 10)],
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert round_top(value) == pytest.approx(top)


def test_a_line_runs_from_edge_to_edge_below_the_top() -> None:
    drawn = plot([0, 5, 10])
    ((line,),) = drawn.series
    assert drawn.top == 10
    assert line.points == "0.0,96.0 150.0,48.0 300.0,0.0"
    assert line.area == "0.0,96 0.0,96.0 150.0,48.0 300.0,0.0 300.0,96"


def test_what_is_absent_is_a_gap() -> None:
    ((first, second),) = plot([1, 1, None, 1, 1]).series
    assert first.points.startswith("0.0,")
    assert second.points.startswith("225.0,")


def test_one_value_alone_can_be_seen() -> None:
    ((line,),) = plot([None, None, 3]).series
    assert line.points == "225.0,0.0 300.0,0.0"
    ((line,),) = plot([None, 3, None]).series
    assert len(line.points.split()) == 2


def test_no_values() -> None:
    assert plot([]).series == [[]]
    assert spark([None, None]) == []
    assert plot([], bars=True).bars == ()


def test_bars_stand_on_the_axis() -> None:
    bars = plot([0, 4, 2], bars=True).bars
    assert len(bars) == 2
    for _, y, _, height in bars:
        assert y + height == pytest.approx(96)
    assert bars[0][3] == 96


@pytest.mark.parametrize(
    ("seconds", "top"),
    [(0.0, 1), (0.3, 0.3), (7, 8), (11, 20), (45, 60), (700, 1_200), (1_800, 1_800), (5_000, 7_200),
     (90_000, 103_680)],
)  # fmt: skip
def test_the_axis_of_a_time_ends_at_a_round_one(seconds: float, top: float) -> None:
    assert round_span(seconds) == pytest.approx(top)
