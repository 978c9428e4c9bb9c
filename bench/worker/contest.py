"""Turns of everybody at the same work, and what each did in them.

Ours on both databases, each peer, and what is possible take turns; a share or a ratio is taken
within a turn, and the figure is the middle of the turns. The first turn is short, is not counted,
and says how many tasks each is given, so that all work for as long. What is possible is measured
twice a turn, at its beginning and in its middle: everything else is held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import mean, median
from typing import NamedTuple

from bench.figure import Figure, Sizes, absent, at_least
from bench.peers.mark import Mark
from bench.peers.roster import Peer
from bench.worker.field import FAILURES, rate

ROUNDS = 3
_LEAST_TASKS = 20
_FIRST = 0.25
"""The part of a turn that the first one takes."""

Drain = Callable[[int], list[Mark]]
"""Have so many tasks run."""
Possible = Callable[[float], float]
"""What is possible, measured for so many seconds if it has to be."""
Measure = Callable[[list[Mark], int], float]
"""What a drain came to, in what is possible: tasks a second, or processors."""


class Runner(NamedTuple):
    """Somebody whose worker is measured."""

    name: str
    engine: str
    drain: Drain
    at_once: int
    """How many tasks it has begun at a time."""
    peer: Peer | None = None


class Contest:
    """Use `hold()` first, then `figures()`."""

    def __init__(
        self,
        title: str,
        runners: Iterable[Runner],
        possible: Possible,
        sizes: Sizes,
        *,
        measure: Measure = rate,
    ) -> None:
        self._title = title
        self._measure = measure
        self._runners = list(runners)
        self._measure_possible = possible
        self._turns = min(ROUNDS, sizes.drains)
        self._seconds = sizes.seconds / 2
        self._possible: list[float] = []
        self._rates: dict[Runner, list[float]] = {runner: [] for runner in self._runners}
        self._found: dict[Runner, list[float]] = {runner: [] for runner in self._runners}
        self._failed: dict[Runner, str] = {}

    def hold(self, guess: float) -> None:
        """All turns; everybody is guessed to do so many tasks a second."""
        found = dict.fromkeys(self._runners, guess)
        for number in range(1 + self._turns):
            seconds = self._seconds * (1 if number else _FIRST)
            possible = [self._measure_possible(seconds)]
            # Who comes first has no advantage, and nobody always follows the same one.
            for place, runner in enumerate(self._runners[number:] + self._runners[:number]):
                if place == len(self._runners) // 2:
                    possible.append(self._measure_possible(seconds))
                if runner in self._failed:
                    continue
                count = max(_LEAST_TASKS, 2 * runner.at_once, round(seconds * found[runner]))
                try:
                    runs = runner.drain(count)
                except FAILURES as error:
                    if runner.peer is None:
                        raise
                    self._failed[runner] = str(error)
                    continue
                found[runner] = rate(runs, runner.at_once)
                if number:
                    self._rates[runner].append(found[runner])
                    self._found[runner].append(self._measure(runs, runner.at_once))
            if number:
                self._possible.append(mean(possible))

    def figures(self, bound: float, *, beside_peers: bool = False) -> Iterator[Figure]:
        """Everybody's share of what is possible; ours also as multiples of those that isolate."""
        for runner in self._runners:
            title = f"{self._title}, by {runner.name}"
            if runner in self._failed:
                yield absent(title, runner.engine, None, self._failed[runner])
                continue
            speed = median(self._rates[runner])
            yield at_least(
                title,
                runner.engine,
                self._over(runner, self._possible),
                None if runner.peer else bound,
                detail=self._detail(speed),
            )
        for ours in self._runners:
            if beside_peers and ours.peer is None:
                yield from self._against_peers(ours)

    def _against_peers(self, ours: Runner) -> Iterator[Figure]:
        for other in self._runners:
            if other.peer is None or not other.peer.isolates or other in self._failed:
                continue
            yield at_least(
                f"{self._title}, of {other.name}",
                ours.engine,
                self._over(ours, self._found[other]),
                1.0,
                unit="x",
            )

    def _over(self, runner: Runner, others: list[float]) -> list[float]:
        """What this one came to as a multiple of another's, turn by turn."""
        return [mine / other for mine, other in zip(self._found[runner], others, strict=True)]

    def _detail(self, speed: float) -> str:
        if self._measure is rate:
            return f"{speed:,.0f}/s of {median(self._possible):,.0f}/s"
        return f"of {median(self._possible):.2f} processors; {speed:,.0f}/s"
