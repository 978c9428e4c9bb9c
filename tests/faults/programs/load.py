"""Tasks for workers that are killed, frozen and cut off."""

from __future__ import annotations

import ctypes
import os
import signal
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


@app.task("in-turn", max_crashes=50)
def in_turn(name: str) -> int:
    attempt = current_task().attempt
    gate(f"{name}-{attempt}")
    note("done", f"{name}-{attempt}")
    return attempt


@app.task("once", at_most_once=True)
def once(name: str) -> str:
    gate(name)
    note("done", name)
    return name


@app.task("at-the-gil", max_crashes=50)
def at_the_gil(name: str, seconds: float) -> str:
    note("begun", name)
    # PyDLL keeps the interpreter's lock: no Python code of this process runs meanwhile.
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return name
