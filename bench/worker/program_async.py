"""The same with a coroutine: a worker of it has a child with an event loop as well."""

from __future__ import annotations

from bench.peers.mark import mark_async
from holdfast import Holdfast

app = Holdfast()


@app.task("bench.mark-async")
async def noop_async(number: int) -> int:
    return await mark_async(number)
