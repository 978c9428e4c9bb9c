"""Process tasks that end in every possible way, kind and unkind ones."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from holdfast import (
    Abort,
    Holdfast,
    Retry,
    RetryLater,
    Snooze,
    TaskError,
    TaskResult,
)
from holdfast.runtime.child.context import current_task

app = Holdfast("sqlite:///:memory:", max_payload=10_000)


@app.task("noop")
def noop() -> None:
    return None


@app.task("add")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.task("give_back")
def give_back(value: Any) -> Any:
    return value


@app.task("unserialisable")
def unserialisable() -> Any:
    return object()


@app.task("wrong_result")
def wrong_result() -> int:
    return "a text"  # type: ignore[return-value]


@app.task("result_ok")
def result_ok() -> TaskResult[int, TaskError]:
    return TaskResult(ok=7)


@app.task("result_err", retry=Retry(2, on=("RATE_LIMITED",)))
def result_err(code: str, data: Any = None) -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError(code, "no luck", data=data))


@app.task("result_odd_err")
def result_odd_err() -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError("MINE", "no luck", data=object()))


class Stubborn(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a message")


@app.task("fail", retry=Retry(3, on=(ValueError, "SOME_CODE"), never_on=(UnicodeError,)))
def fail(kind: str) -> None:
    kinds: dict[str, BaseException] = {
        "value": ValueError("wrong value"),
        "key": KeyError("k"),
        "unicode": UnicodeError("listed, but never"),
        "stubborn": Stubborn(),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "generator_exit": GeneratorExit(),
        "base": BaseException("bare"),
        "stop": StopIteration(),
    }
    raise kinds[kind]


@app.task("fail_with_cause")
def fail_with_cause() -> None:
    try:
        {}["x"]  # type: ignore[index]
    except KeyError as error:
        raise ValueError("because of a key") from error


@app.task("exit")
def exit_(code: int) -> None:
    sys.exit(code)


@app.task("retry_later")
def retry_later(delay: float | None) -> None:
    raise RetryLater(delay, "not yet")


@app.task("snooze")
def snooze(delay: float) -> None:
    raise Snooze(delay)


@app.task("abort")
def abort() -> None:
    raise Abort("no use")


@app.task("die")
def die(how: str) -> None:
    if how == "exit":
        os._exit(7)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@app.task("stream")
def stream(lines: int) -> Generator[Any, None, int]:
    for number in range(lines):
        yield f"line {number}"
    yield b"bytes"
    yield 3
    yield None
    return lines


@app.task("say")
def say(text: str, times: int = 1) -> None:
    for _ in range(times):
        print(text)


@app.task("say_in_all_ways")
def say_in_all_ways() -> None:
    print("by print")
    sys.stderr.write("by stderr\n")
    sys.stdout.buffer.write(b"by buffer\n")
    os.write(1, b"by descriptor\n")
    subprocess.run([sys.executable, "-c", "print('by subprocess')"], check=True)
    logging.getLogger("somebody").info("by logging")
    ctypes.CDLL(None).puts(b"by C")
    print("no end of line", end="")


@app.task("whisper", capture_output=False)
def whisper() -> None:
    print("not for the log")


@app.task("sleep")
def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


@app.task("sleep_and_clean_up")
def sleep_and_clean_up(path: str) -> None:
    try:
        Path(path).write_text("inside")
        time.sleep(60)
    except BaseException as error:
        Path(path).write_text(type(error).__name__)
        raise
    finally:
        print("cleaned up")


@app.task("refuse_to_end")
def refuse_to_end(path: str) -> str:
    try:
        Path(path).write_text("inside")
        time.sleep(60)
    except BaseException:  # noqa: BLE001
        return "survived"
    return "slept"


@app.task("wait_for_cancel")
def wait_for_cancel() -> str:
    task = current_task()
    while not task.cancel_requested:
        time.sleep(0.005)
    return "noticed"


@app.task("hold_the_gil")
def hold_the_gil(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@app.task("close_everything")
def close_everything() -> None:
    os.closerange(0, 4096)


@app.task("close_low")
def close_low(path: str) -> str:
    """What old daemons do; then the numbers are taken by others."""
    os.closerange(0, 256)
    files = [Path(path).open("ab") for _ in range(10)]  # noqa: SIM115
    print("into the void")
    for file in files:
        file.close()
    return "done"


@app.task("fork_and_return")
def fork_and_return() -> str:
    """Both processes return from here; one of them must not go on."""
    pid = os.fork()
    if pid == 0:
        return "grandchild"
    os.waitpid(pid, 0)
    return "child"


@app.task("leave_grandchild")
def leave_grandchild() -> int:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    return process.pid


@app.task("block_signals")
def block_signals(seconds: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    time.sleep(seconds)


@app.task("take_sigterm")
def take_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@app.task("who_am_i")
def who_am_i() -> dict[str, Any]:
    task = current_task()
    deadline = task.deadline
    return {
        "id": str(task.id),
        "attempt": task.attempt,
        "queue": task.queue,
        "name": task.name,
        "deadline": None if deadline is None else deadline.isoformat(),
        "stdin": sys.stdin.read(),
        "group": os.getpgrp() == os.getpid(),
        "threads": threading.active_count(),
    }


@app.task("progress")
def progress(steps: int, then: float = 0.0) -> None:
    task = current_task()
    for step in range(1, steps + 1):
        task.set_progress(step, steps, f"step {step}")
    time.sleep(then)
    task.update(stage="UPLOADING", meta={"file": "a"})
    task.heartbeat()


@app.task("spend")
def spend(megabytes: int, seconds: float) -> None:
    block = bytearray(megabytes * 1024 * 1024)
    until = time.process_time() + seconds
    while time.process_time() < until:
        block[0] = 1
