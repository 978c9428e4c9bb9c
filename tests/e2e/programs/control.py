"""Tasks to be cancelled, held back and sorted."""

from __future__ import annotations

import asyncio
import os
import time

from holdfast import Holdfast, Retry, current_task
from tests.support.ledger import gate, note, wait_at

app = Holdfast()


@app.task("endless")
def endless(name: str) -> None:
    try:
        gate(name)
    finally:
        note("finally", name)


@app.task("endless-thread", executor="thread")
def endless_thread(name: str) -> None:
    try:
        gate(name)
    finally:
        note("finally", name)


@app.task("endless-async")
async def endless_async(name: str) -> None:
    note("begun", name)
    try:
        await asyncio.sleep(60)
    finally:
        note("finally", name)


@app.task("deaf")
def deaf(name: str) -> None:
    note("begun", name)
    while True:
        try:
            wait_at("never")
        except BaseException:  # noqa: BLE001 - code that will not be told
            note("told", name, current_task().cancel_requested)


@app.task("done-anyway")
def done_anyway(name: str) -> str:
    try:
        gate(name)
    except BaseException:  # noqa: BLE001 - it was nearly done
        pass
    return "done"


@app.task("watchful", executor="thread")
def watchful(name: str) -> None:
    note("begun", name)
    while not current_task().cancel_requested:
        time.sleep(0.01)


@app.task("put-off", retry=Retry(5, delay=60))
def put_off() -> None:
    raise ConnectionError("later")


@app.task("mark")
def mark(name: str, seconds: float = 0.0) -> None:
    note("begun", name)
    time.sleep(seconds)
    note("ended", name)


@app.task("limited", max_concurrent=2)
def limited(name: str) -> None:
    note("begun", name)
    time.sleep(0.05)
    note("ended", name)


@app.task("who")
def who() -> int:
    return os.getpid()


@app.task("grow")
def grow(megabytes: int) -> int:
    memory.append(bytearray(os.urandom(1024)) * 1024 * megabytes)
    return os.getpid()


memory: list[bytearray] = []
