"""Tasks for workers that are killed, frozen and cut off."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

from holdfast import Holdfast, current_task
from tests.support.ledger import gate, note

app = Holdfast()


@app.task("step", max_crashes=50)
def step(number: int, seconds: float = 0.0) -> int:
    note("begun", number, current_task().attempt)
    time.sleep(seconds)
    note("done", number)
    return number


@app.task("quick", max_crashes=5)
def quick(number: int, dies: bool = False) -> int:
    note("begun", number, current_task().attempt)
    if dies and current_task().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@app.task("held", max_crashes=50)
def held(name: str) -> str:
    gate(name)
    note("done", name)
    return name


@app.task("at-the-gil", max_crashes=50)
def at_the_gil(name: str, seconds: float) -> str:
    note("begun", name)
    # PyDLL keeps the interpreter's lock: no Python code of this process runs meanwhile.
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return name


@app.task("deaf-to-signals", timeout=1)
def deaf_to_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    while True:
        time.sleep(1)


@app.task("leaves-a-process")
def leaves_a_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return process.pid


@app.task("closes-everything")
def closes_everything() -> None:
    os.closerange(0, 1024)


@app.task("prints")
def prints(megabytes: int) -> str:
    line = "x" * 1023 + "\n"
    for _ in range(megabytes * 1024):
        sys.stdout.write(line)
    return "printed"


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@app.task("awkward")
def awkward() -> None:
    raise Awkward
