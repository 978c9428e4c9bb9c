"""The chart of the README: what a queue takes of the processors that tasks compute on.

Reads a run's figures (`bench/figures.json`) and draws one panel for each length of task, with a bar
for everybody who was measured in that run and a line from its worst turn to its best. An SVG by
hand: it needs no library, is the same for the same figures, and follows the reader's theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from tools import figures_page

LENGTHS_MS = (1, 3, 10, 50)
_WIDTH, _LABELS, _GAP = 880, 150, 22
_TOP, _ROW, _BAR = 64, 24, 12
_ENGINES = {"postgresql": "PostgreSQL", "sqlite": "SQLite", "redis": "Redis"}
_SAID = 'role="img" aria-labelledby="title about"'
_TITLE = "Tasks that compute, on two processors"
_ABOUT = "Processor time that tasks get, of what bare processes get; the line is the range of turns"
_STYLE = """
  text { font: 12px Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif; fill: #4d5158 }
  .title { font-size: 14px; font-weight: 600; fill: #191a1c }
  .ours { font-weight: 600; fill: #191a1c }
  .value { font-variant-numeric: tabular-nums }
  .bar { fill: #b9b9b4 } .bar.of-ours { fill: #4a45b8 }
  .axis { stroke: #d2d2cd } .range { stroke: #191a1c; stroke-width: 1.5; opacity: .55 }
  @media (prefers-color-scheme: dark) {
    text { fill: #b0b5bc } .title, .ours { fill: #e9eaec }
    .bar { fill: #565d66 } .bar.of-ours { fill: #aba6ff }
    .axis { stroke: #383e45 } .range { stroke: #e9eaec }
  }
"""


class Bar(NamedTuple):
    """Somebody's share at one length."""

    share: float
    worst: float
    best: float


def as_svg() -> str:
    """The chart as a document."""
    found = _found()
    names = list(found)
    lengths = [ms for ms in LENGTHS_MS if any(ms in of for of in found.values())]
    panel = (_WIDTH - _LABELS) / max(1, len(lengths))
    height = _TOP + _ROW * len(names) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_SAID}>',
        f'<title id="title">{_TITLE}</title>',
        f'<desc id="about">{escape(_in_words(found))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="0" y="16">{_TITLE}</text>',
        f'<text x="0" y="34">{_ABOUT}</text>',
    ]
    for row, (name, engine) in enumerate(names):
        kind = ' class="ours"' if name == "Holdfast" else ""
        label = escape(f"{name}, {_ENGINES[engine]}")
        lines.append(f'<text{kind} x="0" y="{_middle(row) + 4}">{label}</text>')
    for at, ms in enumerate(lengths):
        bars = {key: of[ms] for key, of in found.items() if ms in of}
        left = _LABELS + at * panel
        lines += _panel(left, panel - _GAP, f"{ms} ms", bars, names)
    return "\n".join([*lines, "</svg>", ""])


def _found() -> dict[tuple[str, str], dict[int, Bar]]:
    """Who was measured, and by length; ours first, then by the share at the longest."""
    found: dict[tuple[str, str], dict[int, Bar]] = {}
    for ms in LENGTHS_MS:
        for figure in figures_page.of(f"computing-{ms}ms"):
            title, by, name = str(figure["name"]).partition(", by ")
            if by and title and figure["value"] is not None:
                rounds = figure.get("rounds") or [figure["value"]]
                bar = Bar(figure["value"], min(rounds), max(rounds))
                found.setdefault((name, figure["engine"]), {})[ms] = bar

    def place(key: tuple[str, str]) -> tuple[bool, float]:
        return key[0] != "Holdfast", -sum(bar.share for bar in found[key].values())

    return {key: found[key] for key in sorted(found, key=place)}


def _panel(
    left: float,
    width: float,
    title: str,
    bars: dict[tuple[str, str], Bar],
    names: list[tuple[str, str]],
) -> Iterator[str]:
    scale = width - 30  # Room for the number behind a bar of full length.
    bottom = _TOP + _ROW * len(names)
    yield f'<text class="title" x="{left:.1f}" y="{_TOP - 8}">{title}</text>'
    yield _line("axis", left, _TOP - 2, left, bottom)
    yield _line("axis", left + scale, _TOP - 2, left + scale, bottom)
    for row, key in enumerate(names):
        bar = bars.get(key)
        if bar is None:
            continue
        middle, kind = _middle(row), " of-ours" if key[0] == "Holdfast" else ""
        yield (
            f'<rect class="bar{kind}" x="{left:.1f}" y="{middle - _BAR / 2:g}" '
            f'width="{scale * min(bar.share, 1):.1f}" height="{_BAR}" rx="2"/>'
        )
        worst, best = (left + scale * min(share, 1) for share in (bar.worst, bar.best))
        yield _line("range", worst, middle, best, middle)
        after = max(best, left + scale * min(bar.share, 1)) + 5
        yield f'<text class="value" x="{after:.1f}" y="{middle + 4}">{bar.share:.2f}</text>'


def _middle(row: int) -> float:
    return _TOP + _ROW * row + _ROW // 2


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}"/>'


def _in_words(found: dict[tuple[str, str], dict[int, Bar]]) -> str:
    """The same for who cannot see it."""
    return "; ".join(
        f"{name} on {_ENGINES[engine]}: "
        + ", ".join(f"{bar.share:.2f} at {ms} ms" for ms, bar in of.items())
        for (name, engine), of in found.items()
    )
