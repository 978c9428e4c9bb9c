"""Tasks for children that run several at a time: threads and coroutines."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Generator

from holdfast import Abort, Holdfast, Retry, RetryLater, Snooze, TaskError, TaskResult
from holdfast.runtime.child.context import current_task

app = Holdfast("sqlite:///:memory:")

# Made at import, as applications do: it keeps the stream that was there then.
logger = logging.getLogger("several")
logger.addHandler(logging.StreamHandler())
logger.setLevel(logging.INFO)
logger.propagate = False

gate = threading.Barrier(4)


@app.task("t.add", executor="thread")
def thread_add(a: int, b: int) -> int:
    return a + b


@app.task("t.meet", executor="thread")
def thread_meet(name: str) -> str:
    """Ends only if four of these run at the same time."""
    print(f"{name} waits")
    gate.wait(20)
    logger.info("%s goes on", name)
    sys.stderr.write(f"{name} leaves")
    return name


@app.task("t.spin", executor="thread")
def thread_spin() -> str:
    try:
        while True:
            time.sleep(0.001)
    finally:
        print("cleaned up")


@app.task("t.polite", executor="thread")
def thread_polite() -> str:
    task = current_task()
    try:
        while not task.cancel_requested:
            time.sleep(0.001)
    except BaseException:  # noqa: BLE001
        pass
    return "noticed"


@app.task("t.sleep", executor="thread")
def thread_sleep(seconds: float) -> None:
    time.sleep(seconds)


@app.task("t.fail", executor="thread", retry=Retry(1))
def thread_fail() -> None:
    raise ValueError("no")


@app.task("t.exit", executor="thread")
def thread_exit() -> None:
    sys.exit(3)


@app.task("t.stream", executor="thread")
def thread_stream() -> Generator[str, None, str]:
    yield "one"
    yield "two"
    return "end"


@app.task("t.quiet", executor="thread", capture_output=False)
def thread_quiet() -> None:
    print("not for the log")


@app.task("a.add")
async def async_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@app.task("a.say")
async def async_say(name: str, pauses: int) -> str:
    for number in range(pauses):
        print(f"{name} {number}")
        logger.info("%s logs", name)
        await asyncio.sleep(0.001)
    return str(current_task().id)


waiting = 0


@app.task("a.together")
async def async_together(wanted: int) -> int:
    """Ends only if so many of these run at the same time."""
    global waiting
    waiting += 1
    while waiting < wanted:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    return waiting


async def deeper() -> None:
    await asyncio.sleep(60)


@app.task("a.sleep")
async def async_sleep() -> None:
    try:
        await deeper()
    finally:
        print("cleaned up")


@app.task("a.refuse")
async def async_refuse() -> str:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "survived"
    return "slept"


@app.task("a.cancel_itself")
async def async_cancel_itself() -> None:
    raise asyncio.CancelledError


@app.task("a.block")
async def async_block(seconds: float) -> str:
    task = current_task()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not task.cancel_requested:
        time.sleep(0.005)  # noqa: ASYNC251
    return "noticed" if task.cancel_requested else "done"


@app.task("a.ways", retry=Retry(1))
async def async_ways(how: str) -> TaskResult[int, TaskError]:
    await asyncio.sleep(0)
    match how:
        case "value":
            raise ValueError("no")
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "retry":
            raise RetryLater(2)
        case "snooze":
            raise Snooze(3)
        case "abort":
            raise Abort("no use")
        case "err":
            return TaskResult(err=TaskError("MINE", "no luck"))
        case _:
            return TaskResult(ok=7)


@app.task("a.stream")
async def async_stream() -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(0)
    yield "two"


@app.task("a.starts-what-exits")
async def async_starts_what_exits(how: str) -> str:
    """Brings the loop to an end that it shares with others."""

    async def leave() -> None:
        sys.exit(1)

    loop = asyncio.get_running_loop()
    match how:
        case "coroutine":
            asyncio.create_task(leave())  # noqa: RUF006
        case "callback":
            loop.call_soon(sys.exit, 1)
        case "interrupt":
            loop.call_soon(_interrupt)
        case "stop":
            loop.stop()
    await asyncio.sleep(0.01)
    return how


def _interrupt() -> None:
    raise KeyboardInterrupt


@app.task("a.cancels-everything")
async def async_cancels_everything() -> str:
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()
    await asyncio.sleep(0)
    return "alone"


@app.task("a.waits")
async def async_waits(seconds: float) -> str:
    await asyncio.gather(asyncio.sleep(seconds), asyncio.create_task(asyncio.sleep(seconds)))
    return "waited"
