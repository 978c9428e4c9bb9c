"""Tasks that end in every way code can end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any, NoReturn

from holdfast import (
    Abort,
    Holdfast,
    PayloadError,
    Retry,
    RetryLater,
    Snooze,
    TaskError,
    TaskResult,
    current_task,
)
from tests.support.ledger import note

app = Holdfast()


@app.task("value")
def value(given: Any = None) -> Any:
    return given


@app.task("ok")
def ok() -> TaskResult[int, TaskError]:
    return TaskResult(ok=7)


@app.task("err")
def err() -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError("CARD_DECLINED", "no funds", data={"card": 4}))


@app.task("err-listed", retry=Retry(1, on=("RATE_LIMITED",)))
def err_listed() -> TaskResult[int, TaskError]:
    if current_task().attempt == 1:
        return TaskResult(err=TaskError("RATE_LIMITED", "slower"))
    return TaskResult(ok=current_task().attempt)


@app.task("reserved-code")
def reserved_code() -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError("WORKER_CRASHED", "I say so"))


@app.task("boom")
def boom() -> None:
    doors: dict[str, str] = {}
    try:
        try:
            doors["door"]
        except KeyError as error:
            raise LookupError("no door") from error
    except LookupError as error:
        raise ValueError("cannot enter") from error


@app.task("mute")
def mute() -> NoReturn:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    raise Mute


@app.task("huge-message")
def huge_message() -> NoReturn:
    raise ValueError("x" * 10_000_000)


@app.task("ring")
def ring() -> NoReturn:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


@app.task("later")
def later(times: int) -> int:
    if current_task().attempt <= times:
        raise RetryLater(delay=0.02, reason="not yet")
    return current_task().attempt


@app.task("snooze")
def snooze() -> list[int]:
    t = current_task()
    if t.attempt == 1:
        raise Snooze(0.02)
    return [t.attempt, t.retry_count]


@app.task("abort", retry=5)
def abort() -> NoReturn:
    raise Abort("not worth it")


@app.task("retried", retry=Retry(2, delay=0.05, backoff="linear"))
def retried() -> int:
    note("retried", current_task().id)
    if current_task().attempt < 3:
        raise ConnectionError("try again")
    return current_task().attempt


@app.task("retried-out", retry=Retry(2))
def retried_out() -> NoReturn:
    raise ConnectionError("never")


@app.task("not-listed", retry=Retry(2, on=(TimeoutError,)))
def not_listed() -> NoReturn:
    raise ConnectionError("at once")


@app.task("unserialisable")
def unserialisable() -> Any:
    return object()


@app.task("oversized")
def oversized() -> str:
    return "x" * 2_000_000


@app.task("wrong-type")
def wrong_type() -> int:
    result: Any = "seven"
    return result  # type: ignore[no-any-return]


@app.task("exits")
def exits() -> NoReturn:
    sys.exit(3)


@app.task("interrupts")
def interrupts() -> NoReturn:
    raise KeyboardInterrupt


@app.task("base-exception")
def base_exception() -> NoReturn:
    raise GeneratorExit


@app.task("out-of-memory")
def out_of_memory() -> NoReturn:
    raise MemoryError


@app.task("hard-exit", max_crashes=1)
def hard_exit(code: int) -> NoReturn:
    os._exit(code)


@app.task("segfault", max_crashes=1)
def segfault() -> None:
    ctypes.string_at(0)


@app.task("killed", max_crashes=1)
def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.task("killed-once")
def killed_once() -> int:
    if current_task().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return current_task().attempt


@app.task("poison", retry=Retry(1, delay=0.02))
def poison() -> None:
    note("poison", current_task().id)
    os._exit(9)


@app.task("crash-stalls", on_crash="stall")
def crash_stalls() -> None:
    os._exit(9)


@app.task("once-only", at_most_once=True)
def once_only() -> None:
    note("once-only", current_task().id)
    os._exit(9)


@app.task("once-only-retries", at_most_once=True)
def once_only_retries() -> None:
    raise RetryLater


@app.task("async-payload-error", retry=Retry(1, delay=0, on=(PayloadError,)))
async def async_payload_error() -> str:
    if current_task().attempt == 1:
        raise PayloadError("what it read elsewhere does not fit")
    return "fits now"
