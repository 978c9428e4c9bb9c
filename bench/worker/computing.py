"""Tasks that compute, beside bare processes and beside peers, in one run.

A queue of tasks of one length is drained by two processes: ours on both databases, each peer, and
two bare processes that do the same work in a loop with no queue. Compared is how much processor
time the work got: the speed of a virtual machine's processors changes from second to second, by a
third where this was written, and with it everybody's tasks a second.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack
from functools import partial

from bench.figure import Figure, Sizes, absent
from bench.peers.roster import BESIDE_WORK, Peer
from bench.peers.work import WORK, turns_per_ms
from bench.place import ENGINES, Places
from bench.worker import bare
from bench.worker.contest import Contest, Runner
from bench.worker.field import PROCESSES, Field, processors


def computing(ms: float, bound: float) -> Callable[[Places, Sizes], Iterator[Figure]]:
    """Tasks that compute for so long, and the least share of what bare processes do."""

    def benchmark(places: Places, sizes: Sizes) -> Iterator[Figure]:
        work = f"compute:{round(turns_per_ms() * ms)}"
        title = f"computing {ms:g} ms"
        with ExitStack() as undo:
            field = Field(places, undo)
            missing = field.missing_of(BESIDE_WORK, wanted=sizes.peers)
            contest = Contest(
                title,
                [*_ours(field, work), *_theirs(field, work, missing)],
                partial(bare.processors, work),
                sizes,
                measure=processors,
            )
            contest.hold(PROCESSES * 1e3 / ms)
            yield from contest.figures(bound, beside_peers=True)
        for peer, reason in missing.items():
            yield absent(f"{title}, by {peer.name}", peer.needs, None, reason)

    return benchmark


def _ours(field: Field, work: str) -> Iterator[Runner]:
    for engine in ENGINES:
        drain = partial(field.ours, engine, environment={WORK: work})
        yield Runner("Holdfast", engine, drain, PROCESSES)


def _theirs(field: Field, work: str, missing: Container[Peer]) -> Iterator[Runner]:
    for peer in BESIDE_WORK:
        if peer not in missing:
            drain = partial(field.theirs, peer, environment={WORK: work})
            yield Runner(peer.name, peer.needs, drain, PROCESSES * peer.threads, peer)
