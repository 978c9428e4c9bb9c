"""Figures: what was measured, the bound it should keep, and how both are printed.

Owns the shape of a result. Never measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its bound. Most are ratios, because this machine is not yours."""

    name: str
    engine: str
    value: float
    bound: float
    at_least: bool
    """The bound is the least (a share of a rate), otherwise the most (a multiple of a cost)."""
    unit: str = ""
    detail: str = ""

    @property
    def is_kept(self) -> bool:
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
    peers=False,
)


def at_least(
    name: str, engine: str, value: float, bound: float, *, unit: str = "", detail: str = ""
) -> Figure:
    """A figure that should not be smaller than its bound."""
    return Figure(name, engine, value, bound, True, unit, detail)


def at_most(
    name: str, engine: str, value: float, bound: float, *, unit: str = "", detail: str = ""
) -> Figure:
    """A figure that should not be larger than its bound."""
    return Figure(name, engine, value, bound, False, unit, detail)


def absent(name: str, engine: str, bound: float, reason: str) -> Figure:
    """A figure that could not be taken: there was nothing to compare with."""
    return Figure(name, engine, nan, bound, True, detail=f"not measured: {reason}")


HEADING = f"{'':<5}{'figure':<48}{'engine':<12}{'value':>9}  {'bound':<9}{'detail'}"


def line(figure: Figure, *, judged: bool = True) -> str:
    """One figure as one line of the table; without a verdict where the sizes allow none."""
    kept = "none" if isnan(figure.value) else "ok" if figure.is_kept else "MISS"
    verdict = kept if judged else ""
    sign = "≥" if figure.at_least else "≤"
    bound = f"{sign} {figure.bound:g}{figure.unit}"
    value = f"{figure.value:.3g}{figure.unit}"
    return f"{verdict:<5}{figure.name:<48}{figure.engine:<12}{value:>9}  {bound:<9}{figure.detail}"
