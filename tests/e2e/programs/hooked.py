"""Tasks with hooks of every kind around them."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, NoReturn

from holdfast import Holdfast, Retry, current_task
from holdfast.core.hooks import TaskEvent, WorkerEvent
from tests.support.ledger import gate, note

app = Holdfast()


def told(where: str, event: TaskEvent) -> None:
    note(
        "hook",
        event.id,
        {
            "where": where,
            "hook": event.hook,
            "attempt": event.attempt,
            "args": list(event.args),
            "result": event.result,
            "code": None if event.error is None else str(event.error.error_code),
            "exception": None if event.exception is None else type(event.exception).__name__,
            "delay": event.delay,
        },
    )


@app.hooks.before_start
@app.hooks.on_success
@app.hooks.on_failure
@app.hooks.on_retry
@app.hooks.on_cancel
@app.hooks.after_finish
def everywhere(event: TaskEvent) -> None:
    told("app", event)


@app.hooks.worker_started
@app.hooks.worker_stopping
@app.hooks.child_started
def worker_hook(event: WorkerEvent) -> None:
    note("worker-hook", event.hook, event.process)


@app.task("works")
def works(number: int) -> int:
    note("hook", current_task().id, {"where": "code", "hook": "code"})
    return number + 1


@works.hooks.before_start
@works.hooks.on_success
@works.hooks.after_finish
def of_works(event: TaskEvent) -> None:
    told("task", event)


@app.task("works-thread", executor="thread")
def works_thread(number: int) -> int:
    return number + 1


@app.task("works-async")
async def works_async(number: int) -> int:
    return number + 1


@works_thread.hooks.on_success
@works_async.hooks.on_success
async def awaited(event: TaskEvent) -> None:
    told("async", event)


@app.task("fails")
def fails() -> NoReturn:
    raise ValueError("no")


@app.task("retries", retry=Retry(1, delay=0.05))
def retries() -> int:
    if current_task().attempt == 1:
        raise ConnectionError("again")
    return current_task().attempt


@app.task("hangs", timeout=0.2)
def hangs(name: str) -> None:
    gate(name)


@app.task("waits")
def waits(name: str) -> None:
    gate(name)


@app.task("crashes-once")
def crashes_once() -> int:
    note("ran-in", current_task().id, os.getpid())
    if current_task().attempt == 1:
        os._exit(4)
    return current_task().attempt


@app.task("crashes", max_crashes=1)
def crashes() -> NoReturn:
    os._exit(4)


@app.task("bad-hooks")
def bad_hooks(fail: bool) -> str:
    if fail:
        raise ValueError("no")
    return "done all the same"


@bad_hooks.hooks.before_start
@bad_hooks.hooks.on_success
@bad_hooks.hooks.on_failure
@bad_hooks.hooks.after_finish
def bad(event: TaskEvent) -> Any:
    print("the bad hook speaks")
    if event.hook == "after_finish":
        sys.exit(1)
    raise RuntimeError(f"bad {event.hook}")


@app.task("cancelled-hook-process")
def cancelled_hook() -> str:
    return "done all the same"


@app.task("cancelled-hook-thread", executor="thread")
def cancelled_hook_thread() -> str:
    return "done all the same"


@app.task("cancelled-hook-async")
async def cancelled_hook_async() -> str:
    return "done all the same"


@cancelled_hook.hooks.before_start
@cancelled_hook.hooks.on_success
@cancelled_hook_thread.hooks.before_start
@cancelled_hook_thread.hooks.on_success
@cancelled_hook_async.hooks.before_start
@cancelled_hook_async.hooks.on_success
async def waits_for_what_is_cancelled(event: TaskEvent) -> None:
    waited = asyncio.get_running_loop().create_future()
    waited.cancel()
    await waited
