"""Every benchmark still runs, at sizes whose figures mean nothing. No test asserts a speed."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

import pytest

from bench.__main__ import BENCHMARKS, main
from bench.figure import QUICK, at_least, at_most, line
from bench.place import Places, open_places


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with open_places(durable=False) as places:
        yield places


LONG = (
    *("worker-latency", "worker-upkeep", "worker-start", "tasks", "computing", "sleeping"),
    *("awaiting", "mixed", "urgent", "tail", "drain-deep"),
)
"""How the names begin of those that wait, or start many workers, however small the sizes are."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n.startswith(LONG) else n for n in BENCHMARKS],
)
def test_it_runs(places: Places, name: str) -> None:
    figures = list(BENCHMARKS[name](places, QUICK))
    assert figures
    for figure in figures:
        # Peers are not installed for a test.
        assert not isnan(figure.value) or "no peers this time" in figure.detail, figure
        assert figure.name in line(figure)


def test_a_figure_says_whether_it_keeps_its_bound() -> None:
    assert line(at_least("share", "sqlite", 0.5, 0.6)).startswith("MISS")
    assert line(at_least("share", "sqlite", 0.6, 0.6)).startswith("ok")
    assert line(at_most("cost", "sqlite", 1.6, 1.5)).startswith("MISS")
    assert line(at_most("cost", "sqlite", 1.5, 1.5)).startswith("ok")
    assert not line(at_most("cost", "sqlite", 1.5, 1.5), judged=False).strip().startswith("ok")


def test_the_command_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "claim"]) == 0
    assert capsys.readouterr().out.split() == [name for name in BENCHMARKS if "claim" in name]
