"""Tasks that are running when their worker is asked to stop."""

from __future__ import annotations

import time

from holdfast import Holdfast, current_task
from tests.support.ledger import agate, gate, note, wait_at

app = Holdfast()


@app.task("resubmits")
def resubmits(name: str) -> int:
    try:
        gate(name)
    finally:
        note("finally", name)
    return current_task().attempt


@app.task("stops", on_shutdown="stop")
def stops(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("continues", on_shutdown="continue")
def continues(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("once", at_most_once=True)
def once(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("deaf")
def deaf(name: str) -> None:
    note("begun", name)
    while True:
        try:
            wait_at("never")
        except BaseException:  # noqa: BLE001 - code that will not be told
            note("told", name)


@app.task("resubmits-async")
async def resubmits_async(name: str) -> int:
    await agate(name)
    return current_task().attempt


@app.task("resubmits-thread", executor="thread")
def resubmits_thread(name: str) -> int:
    gate(name)
    return current_task().attempt


@app.task("step")
def step(number: int, seconds: float = 0.01) -> int:
    note("step", number)
    time.sleep(seconds)
    return number


@app.task("step-stops", on_shutdown="stop")
def step_stops(number: int, seconds: float = 0.01) -> int:
    return step(number, seconds)


@app.task("step-continues", on_shutdown="continue")
def step_continues(number: int, seconds: float = 0.01) -> int:
    return step(number, seconds)
