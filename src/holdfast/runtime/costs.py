"""What tasks have cost, to guess what the next ones will.

Owns the estimate behind every window: how many short tasks may be handed to a child at
once. A task that nobody has seen costs a whole window, so it gets one to itself.
"""

from __future__ import annotations

from collections.abc import Sequence

WINDOW_US = 10_000
"""How much work a child is given ahead, in microseconds of its time."""
MOST_TASKS = 256
LEAST_US = WINDOW_US // MOST_TASKS
"""No task is thought to cost less, or a window would hold too many."""
_WEIGHT = 0.2


class Costs:
    """Mean run time per task name, recent runs counting most."""

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}

    def of(self, name: str) -> int:
        """The expected cost of one run in µs, never so little that a window overflows."""
        mean = self._mean.get(name)
        return WINDOW_US if mean is None else max(LEAST_US, int(mean))

    def learn(self, name: str, runs_us: Sequence[int]) -> None:
        """These runs, one after the other, took so long."""
        mean = self._mean.get(name)
        if mean is None:
            mean = float(runs_us[0])
        for run_us in runs_us:
            seen = mean + _WEIGHT * (run_us - mean)
            # Believe in slowness at once and in speed slowly: a wrong guess towards speed
            # leaves tasks waiting behind a long one.
            mean = run_us / 4 if seen < run_us / 4 else seen
        self._mean[name] = mean
