"""Figures: what was measured, the bound it should keep, and how both are printed.

Owns the shape of a result. Never measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its bound. Most are ratios, because this machine is not yours."""

    name: str
    engine: str
    value: float
    bound: float | None
    """None: shown beside others, and promised by nobody."""
    at_least: bool
    """The bound is the least (a share of a rate), otherwise the most (a multiple of a cost)."""
    unit: str = ""
    detail: str = ""
    rounds: tuple[float, ...] = ()
    """What each round said, if the value is the middle of several."""

    @property
    def is_kept(self) -> bool:
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything: enough to trust, or just enough to see that it runs."""

    rounds: int
    sends: int
    bulk_batches: int
    batches: int
    small: int
    large: int
    unknown: int
    finished: int
    claims: int
    steady_batches: int
    senders: int
    sends_per_sender: int
    seconds: float
    imports: int
    drained: int
    drains: int
    pings: int
    deep: int
    mixed: int
    tail: int
    urgent: int
    peers: bool


FULL = Sizes(
    rounds=9,
    sends=300,
    bulk_batches=5,
    batches=40,
    small=10_000,
    large=1_000_000,
    unknown=300_000,
    finished=100_000,
    claims=15,
    steady_batches=1_000,
    senders=64,
    sends_per_sender=40,
    seconds=4.0,
    imports=15,
    drained=20_000,
    drains=5,
    pings=200,
    deep=60_000,
    mixed=2_000,
    tail=1_000,
    urgent=100,
    peers=True,
)

QUICK = Sizes(
    rounds=1,
    sends=5,
    bulk_batches=1,
    batches=2,
    small=1_000,
    large=3_000,
    unknown=2_500,
    finished=500,
    claims=2,
    steady_batches=5,
    senders=4,
    sends_per_sender=2,
    seconds=0.2,
    imports=1,
    drained=200,
    drains=1,
    pings=5,
    deep=300,
    mixed=100,
    tail=40,
    urgent=5,
    peers=False,
)


Measured = float | Sequence[float]
"""A number, or what each round said."""


def at_least(
    name: str,
    engine: str,
    value: Measured,
    bound: float | None,
    *,
    unit: str = "",
    detail: str = "",
) -> Figure:
    """A figure that should not be smaller than its bound."""
    return _figure(name, engine, value, bound, True, unit, detail)


def at_most(
    name: str,
    engine: str,
    value: Measured,
    bound: float | None,
    *,
    unit: str = "",
    detail: str = "",
) -> Figure:
    """A figure that should not be larger than its bound."""
    return _figure(name, engine, value, bound, False, unit, detail)


def _figure(
    name: str,
    engine: str,
    value: Measured,
    bound: float | None,
    at_least: bool,
    unit: str,
    detail: str,
) -> Figure:
    if isinstance(value, Sequence):
        rounds = tuple(value)
        spread = f"{min(rounds):.3g} to {max(rounds):.3g}" if len(rounds) > 1 else ""
        words = "; ".join(words for words in (detail, spread) if words)
        return Figure(name, engine, median(rounds), bound, at_least, unit, words, rounds)
    return Figure(name, engine, value, bound, at_least, unit, detail)


def absent(name: str, engine: str, bound: float | None, reason: str) -> Figure:
    """A figure that could not be taken: there was nothing to compare with."""
    return Figure(name, engine, nan, bound, True, detail=f"not measured: {reason}")


HEADING = f"{'':<5}{'figure':<52}{'engine':<12}{'value':>9}  {'bound':<9}{'detail'}"


def line(figure: Figure, *, judged: bool = True) -> str:
    """One figure as one line of the table; without a verdict where the sizes allow none."""
    kept = "none" if isnan(figure.value) else "ok" if figure.is_kept else "MISS"
    verdict = kept if judged and figure.bound is not None else ""
    sign = "≥" if figure.at_least else "≤"
    bound = "" if figure.bound is None else f"{sign} {figure.bound:g}{figure.unit}"
    value = f"{figure.value:.3g}{figure.unit}"
    return f"{verdict:<5}{figure.name:<52}{figure.engine:<12}{value:>9}  {bound:<9}{figure.detail}"
