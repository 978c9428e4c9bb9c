from __future__ import annotations

from xml.etree import ElementTree as ET

from bench.__main__ import BENCHMARKS
from tools import figures_chart, figures_page

SVG = "{http://www.w3.org/2000/svg}"


def test_what_is_missed_comes_first() -> None:
    page = figures_page.as_markdown()
    first, _, second = page.partition("\n## ")[2].partition("\n## ")
    assert first.startswith("Missed")
    for line in first.splitlines():
        if "**" in line:
            assert line in second


def test_every_table_is_of_a_benchmark_that_can_be_repeated() -> None:
    for name in figures_page.benchmarks():
        assert name in BENCHMARKS
        assert f"\n## {name}\n" in figures_page.as_markdown()


def test_rows_have_as_many_cells_as_heads() -> None:
    rows = [line for line in figures_page.as_markdown().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {6}


def test_the_chart_has_a_bar_for_everybody_who_was_measured() -> None:
    drawn = ET.fromstring(figures_chart.as_svg())
    bars = [one for one in drawn.iter(f"{SVG}rect") if "bar" in one.attrib["class"]]
    measured = [
        figure
        for ms in figures_chart.LENGTHS_MS
        for figure in figures_page.of(f"computing-{ms}ms")
        if ", by " in figure["name"] and figure["value"] is not None
    ]
    assert len(bars) == len(measured) > 0
    ours = [one for one in bars if "of-ours" in one.attrib["class"]]
    assert 0 < len(ours) == sum("Holdfast" in figure["name"] for figure in measured)


def test_the_chart_says_what_it_shows_in_words() -> None:
    drawn = ET.fromstring(figures_chart.as_svg())
    words = drawn.findtext(f"{SVG}desc") or ""
    for figure in figures_page.of("computing-10ms"):
        if figure["name"].endswith("by Holdfast"):
            assert f"{figure['value']:.2f} at 10 ms" in words
