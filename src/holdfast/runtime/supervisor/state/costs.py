"""What tasks cost: how long they run, by their names, and what the next ones will be.

Owns the estimate behind every window: how many short tasks may be handed to a child at once. A task
that nobody has seen costs a whole window, so it gets one to itself. Changes under the ledger's lock
only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.runtime.supervisor.state.child_handle import LEAST_US, WINDOW_US

SHORT_US = WINDOW_US // 16
"""A task that costs no more is short: whichever of such tasks a child is given, it will soon be
through with them."""
_WEIGHT = 0.2
_TRUST = 8
"""A window holds at most so many times the runs that its guess is made of: the first runs of a
task may have been lucky."""


class Costs:
    """Mean run time per task name, recent runs counting most."""

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}
        self._seen: Counter[str] = Counter()

    def of(self, name: str, window_us: int = WINDOW_US) -> int:
        """The expected cost of one run in µs, never so little that a window of this size would
        hold too many."""
        mean = self._mean.get(name)
        if mean is None:
            return window_us
        return max(LEAST_US, window_us // (_TRUST * self._seen[name]), int(mean))

    def knows(self, name: str) -> bool:
        """Whether a task of this name has run."""
        return name in self._mean

    def are_short(self, names: Iterable[str]) -> bool:
        """Whether all these tasks, as far as they are known, are so short that it does not matter
        which of them a child is given."""
        known = [self._mean[name] for name in names if name in self._mean]
        return max(known, default=WINDOW_US) <= SHORT_US

    def learn(self, name: str, runs_us: Sequence[int]) -> None:
        """These runs, one after the other, took so long."""
        self._seen[name] += len(runs_us)
        mean = self._mean.get(name)
        if mean is None:
            mean = float(runs_us[0])
        for run_us in runs_us:
            seen = mean + _WEIGHT * (run_us - mean)
            # Raise the estimate at once, lower it gradually: one that is too low leaves tasks
            # waiting behind a long one.
            mean = run_us / 4 if seen < run_us / 4 else seen
        self._mean[name] = mean


class Mix:
    """Which tasks are being claimed, those of late counting most."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}

    def add(self, name: str, count: int) -> None:
        """So many of this name were claimed."""
        kept = 0.9**count
        shares = {other: share * kept for other, share in self._shares.items()}
        shares[name] = shares.get(name, 0.0) + 1.0 - kept
        # What has not been claimed for long tells nothing about what will be.
        self._shares = {other: share for other, share in shares.items() if share > 0.001}

    def typical(
        self, costs: Costs, window_us: int = WINDOW_US, *, most_us: float = math.inf
    ) -> float:
        """What the next tasks will cost on average, as far as can be told; none of them more than
        `most_us`."""
        if not self._shares:
            return float(window_us)
        weighed = sum(
            share * min(most_us, costs.of(name, window_us)) for name, share in self._shares.items()
        )
        return weighed / sum(self._shares.values())
