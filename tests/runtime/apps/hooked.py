"""Hooks that write down, in the task's own output, that they were called."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from holdfast import Abort, Holdfast, Retry, RetryLater, Snooze
from holdfast.core.hooks import TaskEvent, WorkerEvent

app = Holdfast("sqlite:///:memory:")


def tell(who: str, event: TaskEvent) -> None:
    error = None if event.error is None else str(event.error.error_code)
    raised = None if event.exception is None else type(event.exception).__name__
    print(f"{who} {event.hook} {event.args} {event.result} {error} {raised} {event.delay}")


@app.hooks.before_start
@app.hooks.on_success
@app.hooks.on_failure
@app.hooks.on_retry
@app.hooks.on_cancel
@app.hooks.after_finish
def everywhere(event: TaskEvent) -> None:
    tell("app", event)


@app.hooks.child_started
def child_started(event: WorkerEvent) -> None:
    print(f"child {event.process} started")


@app.hooks.worker_started
async def worker_started(event: WorkerEvent) -> None:
    await asyncio.sleep(0)
    print("worker started")


def run(how: str) -> Any:
    print("code")
    match how:
        case "raise":
            raise ValueError("no")
        case "later":
            raise RetryLater(2)
        case "snooze":
            raise Snooze(3)
        case "abort":
            raise Abort("no")
        case "exit":
            sys.exit(1)
        case "odd":
            return object()
    return how


@app.task("p", retry=Retry(1, delay=5))
def in_process(how: str) -> Any:
    return run(how)


@app.task("p.sleep")
def sleep_in_process() -> None:
    time.sleep(60)


@app.task("t", executor="thread", retry=Retry(1, delay=5))
def in_thread(how: str) -> Any:
    return run(how)


@app.task("a", retry=Retry(1, delay=5))
async def in_loop(how: str) -> Any:
    await asyncio.sleep(0)
    return run(how)


@app.task("a.sleep")
async def sleep_in_loop() -> None:
    await asyncio.sleep(60)


@in_process.hooks.on_success
@in_loop.hooks.on_success
@in_thread.hooks.on_success
async def of_the_task(event: TaskEvent) -> None:
    await asyncio.sleep(0)
    tell("task", event)


@app.task("rude")
def rude() -> str:
    return "fine"


@rude.hooks.before_start
def raises(event: TaskEvent) -> None:
    raise RuntimeError("a hook that raises")


@rude.hooks.on_success
def exits(event: TaskEvent) -> None:
    sys.exit(5)
