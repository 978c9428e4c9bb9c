"""`python -m bench`: every figure, with its bound beside it.

    python -m bench                 all of them, in about fifteen minutes
    python -m bench --quick         small sizes: only to see that everything runs
    python -m bench send claim      those whose name contains one of the words

The exit status is 0 whatever the figures: a busy machine is no defect. Read them with the
line that follows each group, which says what else the machine did.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from bench import (
    claiming,
    dashboard,
    importing,
    lifecycle,
    limiting,
    load,
    sending,
    sharing,
    steady,
    workflows,
)
from bench.figure import FULL, HEADING, QUICK, Figure, Sizes, line
from bench.place import Places, open_places
from bench.worker import drain, idle, tasks

BENCHMARKS: dict[str, Callable[[Places, Sizes], Iterable[Figure]]] = {
    "send": sending.alone,
    "send_many": sending.bulk,
    "send-together": sending.together,
    "lifecycle": lifecycle.benchmark,
    "claim-size": claiming.sizes_of_table,
    "claim-unknown": claiming.unknown_names,
    "claim-snapshot": claiming.open_snapshot,
    "limits-throughput": limiting.throughput,
    "limits-full-keys": limiting.full_keys,
    "limits-tenants": limiting.tenants,
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
    "worker-latency": idle.latency,
    "worker-upkeep": idle.upkeep,
    "worker-start": idle.start,
    "tasks": tasks.tasks,
    "dashboard-sqlite": dashboard.on_sqlite,
    "dashboard-postgresql": dashboard.on_postgresql,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Holdfast's figures")
    parser.add_argument("words", nargs="*", help="only benchmarks whose name contains one")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes; the numbers mean nothing"
    )
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
    with open_places(durable=not given.quick) as places:
        for name, benchmark in chosen.items():
            before = load.snapshot()
            for figure in benchmark(places, QUICK if given.quick else FULL):
                print(line(figure, judged=not given.quick), flush=True)
            print(f"     ({name}: {load.since(before)})", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
