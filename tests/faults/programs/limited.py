"""Tasks under limits, for workers that are killed."""

from __future__ import annotations

import time

from holdfast import Holdfast, Limit
from tests.support.ledger import note

app = Holdfast()


@app.task("narrow", limit=Limit(concurrency=3), max_crashes=50)
def narrow(seconds: float) -> None:
    work("narrow", seconds)


@app.task(
    "sync",
    queue="tenants",
    concurrency_key="{tenant}",
    limit=Limit(per_key=Limit(concurrency=2)),
    max_crashes=50,
)
def sync(tenant: str, seconds: float) -> None:
    work("sync", seconds)


@app.task("paced", limit=Limit(rate="50/s", burst=5), max_crashes=50)
def paced(seconds: float) -> None:
    work("paced", seconds)


def work(name: str, seconds: float) -> None:
    time.sleep(seconds)
    note("done", name)
