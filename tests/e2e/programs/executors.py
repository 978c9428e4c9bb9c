"""Tasks of all three kinds, and what they ask of the store."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, NoReturn

from holdfast import Holdfast, RetryLater, Snooze, TaskEvent, TaskFailed, Workflow, current_task
from tests.support.ledger import agate, gate, note, wait_at

app = Holdfast()


@app.task("process")
def in_process() -> list[Any]:
    return [os.getpid(), threading.current_thread() is threading.main_thread()]


@app.task("thread", executor="thread")
def in_thread() -> list[Any]:
    return [os.getpid(), threading.current_thread() is threading.main_thread()]


@app.task("async")
async def in_loop() -> list[Any]:
    return [os.getpid(), threading.current_thread() is threading.main_thread()]


@app.task("together")
async def together(number: int) -> int:
    await agate("together")
    return number


@app.task("side-by-side", executor="thread")
def side_by_side(name: str) -> str:
    gate(name)
    return name


@app.task("blocking")
async def blocking(name: str) -> None:
    gate(name)


@app.task("blocking-limited", timeout=0.3)
async def blocking_limited(name: str) -> None:
    gate(name)


@app.task("swallowing-limited", timeout=0.3)
async def swallowing_limited(name: str) -> None:
    note("begun", name)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note("told", name)


@app.task("hurried", timeout=1.0)
async def hurried(name: str) -> str:
    note("begun", name)
    await asyncio.sleep(0.5)
    return name


@app.task("slow", timeout=1.5)
async def slow(name: str) -> None:
    note("begun", name)
    await asyncio.sleep(60)


@app.task("blocks-for")
async def blocks_for(seconds: float) -> None:
    await agate("blocks-for")
    time.sleep(seconds)  # noqa: ASYNC251


@app.task("stops-the-loop")
async def stops_the_loop() -> None:
    async def leave() -> None:
        sys.exit(1)

    asyncio.create_task(leave())  # noqa: RUF006
    await asyncio.sleep(0.01)
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


@app.task("patient")
async def patient(name: str) -> int:
    await agate(name)
    return current_task().attempt


@app.task("limited", timeout=0.3)
async def limited(name: str) -> None:
    note("begun", name)
    try:
        await asyncio.sleep(60)
    finally:
        note("finally", name)


@app.task("limited-thread", timeout=0.3, executor="thread")
def limited_thread(name: str) -> None:
    try:
        gate(name)
    finally:
        note("finally", name)


@app.task("stuck-thread", timeout=0.3, executor="thread")
def stuck_thread(name: str) -> None:
    note("begun", name)
    threading.Event().wait(60)


@app.task("crash-thread", executor="thread", max_crashes=1)
def crash_thread(name: str) -> NoReturn:
    wait_at(name)
    os._exit(5)


@app.task("crash-async", max_crashes=1)
async def crash_async() -> NoReturn:
    os._exit(6)


@app.task("breaks-the-loop", max_crashes=1)
async def breaks_the_loop() -> None:
    asyncio.get_running_loop()._selector.close()  # type: ignore[attr-defined]
    await asyncio.sleep(0.01)


@app.task("runs-a-loop-inside")
async def runs_a_loop_inside() -> int:
    # What helpers do that call a coroutine from plain code, wherever that runs.
    asyncio._set_running_loop(None)
    return asyncio.run(_two())


async def _two() -> int:
    return 2


@app.task("forks-process")
def forks_process(name: str) -> int:
    return _fork(name)


@app.task("forks-thread", executor="thread")
def forks_thread(name: str) -> int:
    return _fork(name)


@app.task("forks-async")
async def forks_async(name: str) -> int:
    copy = _fork(name)
    await asyncio.sleep(0.01)
    return copy


@forks_process.hooks.after_finish
@forks_thread.hooks.after_finish
@forks_async.hooks.after_finish
def forked(event: TaskEvent) -> None:
    note("hook", event.args[0])


def _fork(name: str) -> int:
    copy = os.fork()
    note("forked", name)
    return copy


class Exits:
    """A value at which nobody can look."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(4)


@app.task("returns-a-trap")
def returns_a_trap() -> Any:
    return Exits()


@app.task("returns-a-trap-thread", executor="thread")
def returns_a_trap_thread() -> Any:
    return Exits()


@app.task("returns-a-trap-async")
async def returns_a_trap_async() -> Any:
    return Exits()


@app.task("fails", executor="thread")
def fails(how: str) -> str:
    return _fail(how)


@app.task("afails")
async def afails(how: str) -> str:
    await asyncio.sleep(0)
    return _fail(how)


def _fail(how: str) -> str:
    match how:
        case "raise":
            raise ValueError("no")
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "cancel":
            raise asyncio.CancelledError
        case "later" if current_task().attempt == 1:
            raise RetryLater(0.01)
        case "snooze" if current_task().attempt == 1:
            raise Snooze(0.01)
    return how


@app.task("prints", executor="thread")
def prints(word: str) -> None:
    for _ in range(20):
        print(word)
        time.sleep(0.001)


@app.task("aprints")
async def aprints(word: str) -> None:
    for _ in range(20):
        print(word, file=sys.stderr)
        await asyncio.sleep(0.001)


@app.task("astream")
async def astream() -> AsyncIterator[str]:
    for number in range(3):
        yield f"line {number}"


# --- what a task asks of the store ---------------------------------------------------------


@app.task("double")
def double(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    return 2 * number


@app.task("parent")
def parent(number: int) -> list[Any]:
    handle = double.send(number)
    return [str(handle.id), handle.get(timeout=20)]


@app.task("nest")
def nest(depth: int) -> int:
    return 1 + nest.send(depth - 1).get(timeout=20) if depth else 0


@app.workflow("twice-each")
def twice_each(wf: Workflow, numbers: list[int]) -> list[int]:
    return wf.map(double, numbers).result


@app.task("parent-of-workflow")
def parent_of_workflow(numbers: list[int]) -> list[int]:
    return twice_each.send(numbers).get(timeout=20)


@app.task("gather-workflows")
def gather_workflows(numbers: list[int]) -> int:
    handles = [twice_each.send([number]) for number in numbers]
    return sum(handle.get()[0] for handle in app.as_completed(handles, timeout=20))


@app.task("waits-for")
def waits_for(task_id: str) -> int:
    found: int = app.handle(task_id).get(timeout=20)
    return found


@app.task("gather")
def gather(numbers: list[int]) -> int:
    handles = double.send_many([(number,) for number in numbers])
    return sum(handle.get() for handle in app.as_completed(handles, timeout=20))


@app.task("double-later")
def double_later(number: int) -> int:
    time.sleep(number / 10)
    return 2 * number


@app.task("gather-unequal")
def gather_unequal(numbers: list[int]) -> int:
    async def all_of_them() -> list[int]:
        sent = double_later.send_many([(number,) for number in numbers])
        return await asyncio.gather(*[handle.aget(timeout=20) for handle in sent])

    return sum(asyncio.run(all_of_them()))


@app.task("gather-async-inside")
def gather_async_inside(numbers: list[int]) -> int:
    async def all_of_them() -> list[int]:
        return await asyncio.gather(*[double.send(number).aget(timeout=20) for number in numbers])

    return sum(asyncio.run(all_of_them()))


@app.task("parent-thread", executor="thread")
def parent_thread(number: int) -> list[Any]:
    handle = double.send(number)
    return [str(handle.id), handle.get(timeout=20)]


@app.task("parent-async")
async def parent_async(number: int) -> list[Any]:
    handle = await double.asend(number)
    return [str(handle.id), await handle.aget(timeout=20)]


@app.task("parent-of-many")
def parent_of_many(count: int) -> int:
    handles = double.send_many([(number,) for number in range(count)])
    return sum(handle.get(timeout=20) for handle in handles)


@app.task("parent-of-failure")
def parent_of_failure() -> str:
    try:
        return str(double.send(-1).get(timeout=20))
    except TaskFailed as error:
        return str(error.error)


@app.task("operator")
def operator() -> list[str]:
    waiting = double.options(delay=60).send(1)
    found = [waiting.status().value, waiting.cancel().value]
    app.control.queues.pause("elsewhere", by="a task")
    found.append(str([queue.paused_by for queue in app.control.queues.list()]))
    return found


@app.task("connections")
def connections() -> list[str]:
    """The files and sockets of the database that this process has open."""
    found = []
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")  # noqa: PTH115
        except OSError:
            continue
        if "tasks.db" in target:
            found.append(target)
    return found
