"""Rounds: ours and the counterpart in turn, so that both meet the same noise.

Owns the arithmetic of a comparison. A ratio is taken within each round, and the median of
the rounds is the answer: whatever slowed the machine for a while slowed both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds per item of ours and of the counterpart, one of each a round."""

    ours: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def cost(self) -> float:
        """What ours costs, as a multiple of the other."""
        return median(mine / theirs for mine, theirs in zip(self.ours, self.other, strict=True))

    @property
    def rate(self) -> float:
        """How fast ours is, as a share of the other."""
        return 1 / self.cost

    def rates(self, other: str = "raw") -> str:
        """Both rates in words."""
        return f"{1 / median(self.ours):,.0f}/s against {1 / median(self.other):,.0f}/s {other}"

    def costs(self, other: str) -> str:
        """Both costs in words."""
        return f"{median(self.ours) * 1e3:.2f} ms against {median(self.other) * 1e3:.2f} ms {other}"


def compare(rounds: int, ours: Callable[[], int], other: Callable[[], int]) -> Comparison:
    """Run both in turn; each returns how many items it handled. The first round is not counted."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        # The other way round every second time: who comes first has no advantage.
        if number % 2:
            theirs.append(per_item(other))
            mine.append(per_item(ours))
        else:
            mine.append(per_item(ours))
            theirs.append(per_item(other))
    return Comparison(tuple(mine[1:]), tuple(theirs[1:]))


def per_item(work: Callable[[], int]) -> float:
    """Seconds per item of one run."""
    began = perf_counter()
    items = work()
    return (perf_counter() - began) / max(items, 1)


def quantile(values: list[float], share: float) -> float:
    """The value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
