"""PgQueuer: no-op jobs on PostgreSQL, as its own benchmark runs them (asyncpg, uvloop).

    python -m bench.peers.on_pgqueuer COUNT           put jobs into the queue
    pgq run --batch-size 100 bench.peers.on_pgqueuer:work

PgQueuer keeps no results; it deletes a finished job and notes it in a log table.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from bench.peers.mark import mark

asyncpg = import_module("asyncpg")
pgqueuer = import_module("pgqueuer")
_AT_ONCE = 1_000


async def _connect() -> Any:
    return await asyncpg.connect(os.environ["BENCH_URL"])


@asynccontextmanager
async def work() -> AsyncIterator[Any]:
    """What `pgq run` calls to get its manager."""
    connection = await _connect()
    manager = pgqueuer.PgQueuer.from_asyncpg_connection(connection)

    async def noop(job: Any) -> None:
        mark(int(job.payload))

    manager.entrypoint("noop")(noop)
    yield manager
    await connection.close()


async def _fill(count: int) -> None:
    connection = await _connect()
    queries = pgqueuer.Queries.from_asyncpg_connection(connection)
    await queries.install()
    for first in range(0, count, _AT_ONCE):
        payloads = [str(number).encode() for number in range(first, min(first + _AT_ONCE, count))]
        await queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))
    await connection.close()


if __name__ == "__main__":
    asyncio.run(_fill(int(sys.argv[1])))
