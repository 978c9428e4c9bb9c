"""The application of `holdfast demo`: tasks that end in every way a task can end."""

from __future__ import annotations

import asyncio
import os
import time

from holdfast import (
    Abort,
    Holdfast,
    Limit,
    Retry,
    Snooze,
    TaskError,
    TaskResult,
    Workflow,
    current_task,
)

app = Holdfast(kill_grace=1, lease=5, grace=2)


@app.task("resize", queue="images")
def resize(path: str, width: int = 640) -> str:
    """Succeeds."""
    return f"{path} at {width}"


@app.task("fetch", queue="web")
async def fetch(url: str) -> int:
    """Succeeds, as a coroutine among hundreds."""
    await asyncio.sleep(0.2)
    return len(url)


@app.task(
    "crawl",
    concurrency_key="{host}",
    limit=Limit(concurrency=6, per_key=Limit(concurrency=1, rate="5/s", burst=2)),
)
async def crawl(host: str, page: int) -> str:
    """Visits each host politely, and the hosts in turn."""
    await asyncio.sleep(0.05)
    return f"{host}/{page}"


@app.task("charge", retry=Retry(3, delay=0.2))
def charge(order: int) -> str:
    """Fails twice, then succeeds."""
    if current_task().attempt < 3:
        raise ConnectionError(f"order {order}: the bank did not answer")
    return "paid"


@app.task("poll")
def poll() -> str:
    """Asks to be run again later, at no cost."""
    if current_task().attempt == 1:
        raise Snooze(0.5)
    return "there now"


@app.task("report", timeout=20)
def report(steps: int) -> str:
    """Says how far it is."""
    task = current_task()
    for step in range(steps):
        task.set_progress(step, steps, "adding up")
        print(f"step {step + 1} of {steps}")  # noqa: T201 - it is captured
        time.sleep(0.05)
    return "report.pdf"


@app.task("parse")
def parse(line: str) -> int:
    """Raises."""
    return int(line)


@app.task("order")
def order(sku: str) -> TaskResult[str, TaskError]:
    """Fails on purpose, with a code of its own."""
    return TaskResult(err=TaskError("OUT_OF_STOCK", f"no {sku} left"))


@app.task("delete_account")
def delete_account(user: int) -> None:
    """Gives up for good."""
    raise Abort(f"user {user} has an open invoice")


@app.task("hang", timeout=1)
def hang() -> None:
    """Runs into its timeout."""
    time.sleep(60)


@app.task("segfault", max_crashes=2)
def segfault() -> None:
    """Kills its process, twice."""
    os.abort()


@app.task("train", max_heartbeat_interval=1, timeout=60)
def train() -> None:
    """Promises a sign of life and gives none."""
    time.sleep(60)


@app.schedule("* * * * * *", overlap="allow")
@app.task("tick")
def tick() -> str:
    """Is sent by a schedule, every second."""
    return f"this run stands for {current_task().tick}"


@app.task("render", timeout=60)
def render() -> None:
    """Runs until somebody cancels it."""
    time.sleep(60)


@app.task("bind")
def bind(pictures: list[str]) -> str:
    """Takes what other steps of its workflow return."""
    return f"album of {len(pictures)}"


@app.workflow("album")
def album(wf: Workflow, pictures: list[str]) -> str:
    """A workflow: a step for each picture, and one that waits for all of them."""
    small = wf.map(resize, pictures, 128)
    return wf.step(bind, small.result).result
