"""Tasks that do something: of what two bare processes do, and of what peers do, in one run.

A queue of tasks of one length is drained by two children. What counts is the time from the end of
the first to the end of the last, by the clock that the tasks read. Ours, the bare processes and the
peers take turns; a ratio is taken within a turn, and the figure is the median of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple

from bench.figure import Figure, Sizes, absent, at_least
from bench.peers.roster import PEERS, Peer
from bench.peers.work import WORK, turns_per_ms
from bench.place import ENGINES, Places
from bench.worker import bare
from bench.worker.field import FAILURES, Field, rate
from holdfast.store.settings import Engine

_ROUNDS = 3
_LEAST_TASKS = 20


class Load(NamedTuple):
    """Tasks of one kind."""

    name: str
    ms: float
    """How long one takes, on average."""
    bound: float
    """The least share of what bare processes do."""
    kind: str = "compute"
    beside_peers: bool = False

    def command(self, per_ms: float) -> str:
        """The work, as tasks and bare processes read it."""
        if self.kind == "sleep":
            return f"sleep:{self.ms}"
        # One in ten of the mixed ones takes ten times as long.
        short = self.ms / 1.9 if self.kind == "mixed" else self.ms
        return f"{self.kind}:{round(per_ms * short)}"


LOADS = (
    Load("computing 1 ms", 1, 0.75, beside_peers=True),
    Load("computing 10 ms", 10, 0.93, beside_peers=True),
    Load("computing 100 ms", 100, 0.95),
    Load("computing 5 to 50 ms, mixed", 10, 0.9, "mixed"),
    Load("sleeping 1 ms", 1, 0.75, "sleep"),
    Load("sleeping 10 ms", 10, 0.93, "sleep"),
    Load("sleeping 100 ms", 100, 0.95, "sleep"),
)


def tasks(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks of 1, 10 and 100 ms, computing, sleeping and mixed."""
    per_ms = turns_per_ms()
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            wanted = [peer for peer in PEERS if (peer.needs == "sqlite") is (engine == "sqlite")]
            for load in LOADS:
                peers = wanted if load.beside_peers else ()
                yield from _compare(field, engine, load, load.command(per_ms), peers, sizes)


def _compare(
    field: Field, engine: Engine, load: Load, command: str, wanted: Sequence[Peer], sizes: Sizes
) -> Iterator[Figure]:
    seconds = sizes.seconds / 2
    count = max(_LEAST_TASKS, round(2 * seconds * 1e3 / load.ms))
    environment = {WORK: command}
    failed = {
        peer: reason for peer in wanted if (reason := field.missing(peer, wanted=sizes.peers))
    }
    possible: list[float] = []
    ours: list[float] = []
    theirs: dict[Peer, list[float]] = {peer: [] for peer in wanted}
    for _ in range(min(_ROUNDS, sizes.drains)):
        possible.append(bare.rate(command, seconds))
        ours.append(rate(field.ours(engine, count, environment)))
        for peer in wanted:
            if peer in failed:
                continue
            try:
                theirs[peer].append(rate(field.theirs(peer, count, environment)))
            except FAILURES as error:
                failed[peer] = str(error)
    shares = [mine / best for mine, best in zip(ours, possible, strict=True)]
    yield at_least(
        f"{load.name}, of bare processes",
        engine,
        median(shares),
        load.bound,
        detail=(
            f"{median(ours):,.0f}/s of {median(possible):,.0f}/s; "
            f"{min(shares):.2f} to {max(shares):.2f}"
        ),
    )
    for peer in wanted:
        title = f"{load.name}, of {peer.name}"
        if peer in failed:
            yield absent(title, engine, 1.0, failed[peer])
            continue
        ratios = [mine / other for mine, other in zip(ours, theirs[peer], strict=True)]
        detail = f"{median(ours):,.0f}/s against {median(theirs[peer]):,.0f}/s"
        yield at_least(title, engine, median(ratios), 1.0, unit="x", detail=detail)
