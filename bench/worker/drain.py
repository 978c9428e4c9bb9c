"""How fast a queue of no-op tasks is drained: ours, and every peer in the same minutes.

The queue is filled first, then the worker starts. Ours and the peers take turns; a ratio is taken
within a turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from statistics import median

from bench.figure import Figure, Sizes, absent, at_least
from bench.peers.roster import PEERS, Peer
from bench.place import ENGINES, Places
from bench.worker.field import FAILURES, Field, rate
from holdfast.store.settings import Engine


def drain(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks a second, as a multiple of each peer's."""
    with ExitStack() as undo:
        field = Field(places, undo)
        for engine in ENGINES:
            wanted = [peer for peer in PEERS if (peer.needs == "sqlite") is (engine == "sqlite")]
            yield from _compare(field, engine, wanted, sizes)


def _compare(
    field: Field, engine: Engine, wanted: Sequence[Peer], sizes: Sizes
) -> Iterator[Figure]:
    ours: list[float] = []
    theirs: dict[Peer, list[float]] = {peer: [] for peer in wanted}
    failed = {
        peer: reason for peer in wanted if (reason := field.missing(peer, wanted=sizes.peers))
    }
    for _ in range(sizes.drains):
        ours.append(rate(field.ours(engine, sizes.drained)))
        for peer in [peer for peer in wanted if peer not in failed]:
            try:
                runs = field.theirs(peer, round(sizes.drained * peer.share))
                theirs[peer].append(rate(runs))
            except FAILURES as error:
                failed[peer] = str(error)
    speed = f"{median(ours):,.0f}/s"
    for peer in wanted:
        if peer in failed:
            yield absent(_title(peer), engine, peer.bound, f"ours {speed}; {failed[peer]}")
            continue
        rates = theirs[peer]
        yield at_least(
            _title(peer),
            engine,
            median(mine / other for mine, other in zip(ours, rates, strict=True)),
            peer.bound,
            unit="x",
            detail=f"{speed} against {median(rates):,.0f}/s",
        )


def _title(peer: Peer) -> str:
    return f"no-op tasks drained, of {peer.name}"
