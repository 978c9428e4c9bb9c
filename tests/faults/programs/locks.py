"""Tasks for workers whose rows somebody else holds."""

from __future__ import annotations

import asyncio

from holdfast import Holdfast, Unique, current_task
from tests.support.ledger import gate, is_open, note

app = Holdfast()


@app.task("held", max_crashes=50)
def held(name: str) -> str:
    gate(name)
    note("done", name)
    return name


@app.task("quick")
def quick(number: int) -> int:
    return number


@app.task("noting")
async def noting(name: str) -> str:
    """Says how far it is, until its gate opens."""
    note("begun", name)
    count = 0
    while not is_open(name):
        count += 1
        current_task().set_progress(count)
        await asyncio.sleep(0.05)
    return name


@app.task("sending")
def sending(name: str, key: str | None) -> str:
    """Sends from inside a task: through the supervisor."""
    gate(f"{name}-sends")
    unique = None if key is None else Unique(key)
    app.options(unique=unique, queue="elsewhere").send("quick", 0)
    note("sent", name)
    return name
