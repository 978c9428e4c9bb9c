"""Sends on PostgreSQL: ours, PgQueuer's, and a bare INSERT with its COMMIT, in the same rounds.

PgQueuer's program runs in a process of its own, warm and connected, and is told each time how many
to send; what counts is how long its answer takes. It writes a number where ours writes arguments
that were checked and hashed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median

from bench.figure import Figure, Sizes, absent, at_least
from bench.lifecycle import open_raw
from bench.peers.roster import PGQUEUER
from bench.place import Places
from bench.rounds import per_item
from bench.sending import BULK, insert, insert_bulk, send, send_bulk, thumbnails
from bench.worker.field import Field
from holdfast.store.settings import Engine

_ENGINE: Engine = "postgresql"
_LONGER = 4
"""Rounds are so many times as long as those of the other figures of sends: half a second each."""


def beside_peer(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """One by one, and a thousand in one transaction."""
    with ExitStack() as undo:
        field = Field(places, undo)
        failed = field.missing(PGQUEUER, wanted=sizes.peers)
        task = undo.enter_context(thumbnails(undo.enter_context(places.postgres())))
        raw = open_raw(undo.enter_context(places.postgres()))
        undo.callback(raw.close)
        ask = None if failed else undo.enter_context(_asked(field))
        single, batches = _LONGER * sizes.sends, _LONGER * sizes.bulk_batches
        yield from _compare(
            "send",
            {
                "ours": partial(send, task, single),
                "raw": partial(insert, raw, _ENGINE, single),
                "peer": ask and partial(ask, "one", single),
            },
            sizes.rounds,
            {"raw": ("raw INSERT, COMMIT", 0.75), "peer": ("PgQueuer's enqueue", 1.0)},
            failed,
        )
        yield from _compare(
            f"send_many of {BULK:,}",
            {
                "ours": partial(send_bulk, task, batches),
                "raw": partial(insert_bulk, raw, _ENGINE, batches),
                "peer": ask and partial(ask, "bulk", batches * BULK),
            },
            sizes.rounds,
            {"raw": ("raw COPY", None), "peer": ("PgQueuer's bulk enqueue", 1.0)},
            failed,
        )


def _compare(
    title: str,
    ways: dict[str, Callable[[], int] | None],
    rounds: int,
    wanted: dict[str, tuple[str, float | None]],
    failed: str,
) -> Iterator[Figure]:
    there = [(name, way) for name, way in ways.items() if way is not None]
    found: dict[str, list[float]] = {name: [] for name, _ in there}
    for number in range(rounds + 1):
        # The other way round every second time; the first round is not counted.
        for name, way in there if number % 2 else reversed(there):
            found[name].append(per_item(way))
    rates = {name: [1 / cost for cost in costs[1:]] for name, costs in found.items()}
    for name, (of, bound) in wanted.items():
        if name not in rates:
            yield absent(f"{title}, of {of}", _ENGINE, bound, failed)
            continue
        yield at_least(
            f"{title}, of {of}",
            _ENGINE,
            [mine / other for mine, other in zip(rates["ours"], rates[name], strict=True)],
            bound,
            detail=f"{median(rates['ours']):,.0f}/s against {median(rates[name]):,.0f}/s",
        )


@contextmanager
def _asked(field: Field) -> Iterator[Callable[[str, int], int]]:
    """PgQueuer's program: call it with what to do, and how often; how many it has sent."""
    marks = field.marks()
    with (
        field.home(PGQUEUER, marks) as url,
        subprocess.Popen(
            field.program(PGQUEUER, "sends"),
            env=field.environment({"BENCH_URL": url}),
            cwd=marks.folder.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        words, answers = process.stdin, process.stdout
        assert answers.readline() == "ready\n"

        def ask(word: str, count: int) -> int:
            words.write(f"{word} {count}\n")
            words.flush()
            return int(answers.readline())

        yield ask
        words.close()
        process.wait()
