"""Tasks with limits and concurrency keys."""

from __future__ import annotations

import time

from holdfast import Holdfast, Limit
from tests.support.ledger import note

app = Holdfast()


@app.task("two", limit=Limit(concurrency=2))
def two(seconds: float = 0.02) -> None:
    time.sleep(seconds)


@app.task("one", limit=Limit(concurrency=1), max_crashes=10)
def one(name: str, seconds: float = 0.0) -> None:
    note("begun", name)
    time.sleep(seconds)


@app.task("paced", limit=Limit(rate="20/s", burst=2))
def paced() -> None: ...


@app.task("slow", limit=Limit(rate="1/h"))
def slow() -> None: ...


@app.task("sync", concurrency_key="{tenant}", limit=Limit(per_key=Limit(concurrency=1)))
def sync(tenant: str, seconds: float = 0.02) -> None:
    time.sleep(seconds)


@app.task("turn", concurrency_key="{tenant}")
def turn(tenant: str, seconds: float = 0.05) -> str:
    time.sleep(seconds)
    return tenant


@app.task("plain")
def plain(seconds: float = 0.0) -> None:
    time.sleep(seconds)
