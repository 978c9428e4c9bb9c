"""Tasks for defects that other systems have, or had."""

from __future__ import annotations

import asyncio
import os
import time

from holdfast import Holdfast, Retry, TaskError, TaskResult, current_task
from tests.support.ledger import gate, note

app = Holdfast()


@app.task("effect")
def effect(name: str) -> str:
    note("effect", name)
    return name


@app.task("fails")
def fails(name: str) -> None:
    note("effect", name)
    raise ValueError(name)


@app.task("picky", retry=Retry(2, delay=0.05, backoff="constant"), timeout=0.3)
def picky() -> int:
    attempt = current_task().attempt
    note("effect", current_task().id, attempt)
    if attempt == 1:
        raise ConnectionError("first")
    if attempt == 2:
        time.sleep(60)
    return attempt


@app.task("later", retry=Retry(1, delay=2.0))
def later(name: str) -> int:
    note("effect", name)
    if current_task().attempt == 1:
        raise ConnectionError("first")
    return current_task().attempt


@app.task("named-error")
def named_error(code: str) -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError(code, "mine"))


@app.task("debug")
async def debug() -> bool:
    return asyncio.get_running_loop().get_debug()


@app.task("held")
def held(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("held-stalls", on_crash="stall")
def held_stalls(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("sleeps", timeout=1.0)
def sleeps(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()
