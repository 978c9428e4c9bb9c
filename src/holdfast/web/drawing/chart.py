"""A chart as numbers: where its lines go in a fixed box, and what its axes say.

Every chart is 300 × 96, every spark 88 × 20, both stretched by the page; the y axis begins at 0,
with a round number at its top; an absent value ends a line and begins another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

__all__ = ["Line", "Plot", "bridged", "plot", "round_span", "round_top", "spark"]

Values: TypeAlias = "Sequence[float | None]"
WIDTH: Final = 300.0
HEIGHT: Final = 96.0
_SPARK: Final = (88.0, 20.0)
_MARGIN: Final = 1.8
_SPANS: Final = tuple(
    number * unit
    for unit, numbers in (
        (1, (10, 20, 30)),
        (60, (1, 2, 4, 6, 10, 20, 30)),
        (3_600, (1, 2, 4, 6, 12, 24)),
    )
    for number in numbers
)
"""Seconds, each of which has a half that is round, too."""
_TOPS: Final = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Line:
    """One stretch without a gap: the points of its line, and of the area below it."""

    points: str
    area: str


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn of some series, and the top of its axis."""

    top: float
    series: Sequence[Sequence[Line]]
    bars: Sequence[tuple[float, float, float, float]] = ()
    """Of a bar chart: x, y, width, height."""


def round_span(seconds: float) -> float:
    """The least length of time that is said in round words and is not below it."""
    if seconds <= 10:
        return round_top(seconds)
    return next((span for span in _SPANS if span >= seconds * 0.999), None) or (
        round_top(seconds / 86_400) * 86_400
    )


def round_top(value: float) -> float:
    """The least round number that is not below it; 1 for nothing."""
    if value <= 0:
        return 1.0
    unit = 1.0
    while unit * 10 < value:
        unit *= 10
    while unit > value:
        unit /= 10
    return next((unit * top for top in _TOPS if unit * top >= value * 0.999), unit * 10)


def plot(
    *series: Values,
    bars: bool = False,
    least: float = 0.0,
    rounded: Callable[[float], float] = round_top,
) -> Plot:
    """These series in one box; `bars`: the first as bars. The axis reaches `least` at least, up to
    a `rounded` number."""
    most = max((value for values in series for value in values if value is not None), default=0.0)
    top = rounded(max(most, least))
    if bars:
        return Plot(top, (), tuple(_bars(series[0], top)))
    return Plot(top, [_lines(values, top, WIDTH, HEIGHT, 0.0) for values in series])


def spark(values: Values) -> Sequence[Line]:
    """One series in a line of text."""
    most = max((value for value in values if value is not None), default=0.0)
    return _lines(values, most or 1.0, *_SPARK, _MARGIN)


def bridged(values: Values, most: int | None = None) -> list[float | None]:
    """The same, with what is absent on the line between those around it; gaps of more than `most`
    stay."""
    found: list[float | None] = list(values)
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    for (first, low), (second, high) in pairwise(known):
        gap = second - first
        if most is not None and gap > most:
            continue
        for place in range(first + 1, second):
            found[place] = low + (high - low) * (place - first) / gap
    return found


def _lines(values: Values, top: float, width: float, height: float, margin: float) -> list[Line]:
    step = width / max(1, len(values) - 1)
    found: list[Line] = []
    stretch: list[tuple[float, float]] = []
    for place, value in enumerate([*values, None]):
        if value is not None:
            y = height - min(1.0, max(0.0, value / top)) * (height - margin)
            stretch.append((place * step, y))
        elif stretch:
            if len(stretch) == 1:
                x, y = stretch[0]
                # The last one has no room but before it.
                other = x + step / 2 if x + step / 2 <= width else x - step / 2
                stretch = sorted([(x, y), (other, y)])
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in stretch)
            first, last = stretch[0][0], stretch[-1][0]
            area = f"{first:.1f},{height:g} {points} {last:.1f},{height:g}"
            found.append(Line(points, area))
            stretch = []
    return found


def _bars(values: Values, top: float) -> list[tuple[float, float, float, float]]:
    room = WIDTH / max(1, len(values))
    width = max(0.5, room * 0.76)
    return [
        (
            round(place * room + (room - width) / 2, 1),
            round(HEIGHT * (1 - value / top), 1),
            round(width, 2),
            round(HEIGHT * value / top, 1),
        )
        for place, value in enumerate(values)
        if value
    ]
