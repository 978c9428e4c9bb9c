"""PgQueuer: jobs on PostgreSQL, as its own benchmark runs them (asyncpg, uvloop).

    python -m bench.peers.on_pgqueuer COUNT           put jobs into the queue (see `asked`)
    pgq run --batch-size 100 bench.peers.on_pgqueuer:work

PgQueuer keeps no results; it deletes a finished job and notes it in a log table.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from bench.peers.asked import answer
from bench.peers.mark import mark_async

asyncpg = import_module("asyncpg")
pgqueuer = import_module("pgqueuer")
uvloop = import_module("uvloop")
_AT_ONCE = 1_000


async def _connect() -> Any:
    return await asyncpg.connect(os.environ["BENCH_URL"])


@asynccontextmanager
async def work() -> AsyncIterator[Any]:
    """What `pgq run` calls to get its manager."""
    connection = await _connect()
    manager = pgqueuer.PgQueuer.from_asyncpg_connection(connection)

    async def noop(job: Any) -> None:
        await mark_async(int(job.payload))

    manager.entrypoint("noop")(noop)
    yield manager
    await connection.close()


async def _open() -> tuple[Any, Any]:
    connection = await _connect()
    queries = pgqueuer.Queries.from_asyncpg_connection(connection)
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    return connection, queries


async def _enqueue(queries: Any, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, _AT_ONCE):
        payloads = [
            str(number).encode() for number in range(first, min(first + _AT_ONCE, numbers.stop))
        ]
        await queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


def _answer() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        connection, queries = runner.run(_open())
        answer(
            lambda number: runner.run(queries.enqueue("noop", str(number).encode(), 0)),
            bulk=lambda numbers: runner.run(_enqueue(queries, numbers)),
        )
        runner.run(connection.close())


if __name__ == "__main__":
    _answer()
