"""`python -m bench`: every figure, with its bound beside it.

    python -m bench                 all of them, in about an hour
    python -m bench --quick         small sizes: only to see that everything runs
    python -m bench send claim      those whose name contains one of the words
    python -m bench --json FILE     writes them to a file, too; see docs/performance.md

The exit status is 0 whatever the figures: a busy machine is no defect. Read them with the
line that follows each group, which says what else the machine did.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import (
    claiming,
    dashboard,
    importing,
    lifecycle,
    limiting,
    load,
    sending,
    sending_peers,
    sharing,
    steady,
    workflows,
)
from bench.figure import FULL, HEADING, QUICK, Figure, Sizes, line
from bench.place import Places, open_places
from bench.results import Results
from bench.worker import (
    computing,
    deep,
    drain,
    idle,
    latency,
    limited,
    mixed,
    tasks,
    urgent,
    waiting,
)

BENCHMARKS: dict[str, Callable[[Places, Sizes], Iterable[Figure]]] = {
    "send": sending.alone,
    "send_many": sending.bulk,
    "send-together": sending.together,
    "send-peers": sending_peers.beside_peer,
    "lifecycle": lifecycle.benchmark,
    "claim-size": claiming.sizes_of_table,
    "claim-unknown": claiming.unknown_names,
    "claim-snapshot": claiming.open_snapshot,
    "limits-throughput": limiting.throughput,
    "limits-full-keys": limiting.full_keys,
    "limits-tenants": limiting.tenants,
    "limits-worker": limited.limited,
    "workflow-steps": workflows.steps,
    "workflow-joins": workflows.joins,
    "share-send": sharing.send_beside,
    "share-drain": sharing.fair_shares,
    "heap-only": steady.heap_only,
    "write-ahead": steady.write_ahead,
    "statements": steady.statements,
    "leases": steady.lease_rows,
    "import": importing.importing,
    "worker-drain": drain.drain,
    "worker-latency": latency.latency,
    "worker-upkeep": idle.upkeep,
    "worker-start": idle.start,
    "tasks": tasks.tasks,
    "computing-1ms": computing.computing(1, 0.75),
    "computing-3ms": computing.computing(3, 0.86),
    "computing-10ms": computing.computing(10, 0.93),
    "computing-50ms": computing.computing(50, 0.95),
    "sleeping": waiting.sleeping,
    "awaiting": waiting.awaiting,
    "mixed-beside-long": mixed.beside_long,
    "mixed-backlog": mixed.backlog,
    "mixed-varying": mixed.varying,
    "urgent": urgent.urgent,
    "tail": urgent.tail,
    "drain-deep": deep.deep,
    "dashboard-sqlite": dashboard.on_sqlite,
    "dashboard-postgresql": dashboard.on_postgresql,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Holdfast's figures")
    parser.add_argument("words", nargs="*", help="only benchmarks whose name contains one")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes; the numbers mean nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--list", action="store_true", help="the names of the benchmarks")
    given = parser.parse_args(arguments)
    chosen = {
        name: benchmark
        for name, benchmark in BENCHMARKS.items()
        if not given.words or any(word in name for word in given.words)
    }
    if given.list:
        print("\n".join(chosen))
        return 0
    print(HEADING)
    results = None if given.json is None else Results(given.json)
    with open_places(durable=not given.quick) as places:
        for name, benchmark in chosen.items():
            before = load.snapshot()
            figures = []
            for figure in benchmark(places, QUICK if given.quick else FULL):
                print(line(figure, judged=not given.quick), flush=True)
                figures.append(figure)
            others = load.since(before)
            print(f"     ({name}: {others})", flush=True)
            if results is not None:
                results.add(name, figures, others)
                results.save(postgres=places.version)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
