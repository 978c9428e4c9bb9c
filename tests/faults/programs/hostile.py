"""Tasks that do their worst."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

from holdfast import Holdfast, Retry
from tests.support.ledger import note

app = Holdfast()
AT_ONCE = Retry(5, delay=0.01, backoff="constant", on=())
"""Never retried for what it raises; after a crash it need not wait long."""


@app.task("neighbour")
def neighbour(number: int) -> int:
    return number


@app.task("where")
def where() -> list[Any]:
    return [os.getcwd(), os.environ.get("MISCHIEF"), sys.getrecursionlimit(), gc.isenabled()]  # noqa: PTH109


@app.task("at-the-gil")
def at_the_gil(name: str, seconds: float) -> str:
    note("begun", name)
    # PyDLL keeps the interpreter's lock: no Python code of this process runs meanwhile.
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return name


@app.task("deaf-to-signals", timeout=0.5)
def deaf_to_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    ctypes.PyDLL(None).sleep(60)


@app.task("stops-itself", timeout=0.5)
def stops_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@app.task("changes-its-group", timeout=0.5)
def changes_its_group() -> None:
    os.setpgid(0, os.getpgid(os.getppid()))
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001 - it does its worst
            pass


@app.task("leaves-a-tracer")
def leaves_a_tracer() -> None:
    sys.setprofile(_trace)
    sys.settrace(_trace)


@app.task("traced")
def traced() -> list[bool]:
    return [sys.gettrace() is None, sys.getprofile() is None]


def _trace(frame: object, what: str, argument: object) -> None:
    """Sees everything, and does nothing about it."""


@app.task("leaves-a-process")
def leaves_a_process() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


@app.task("leaves-a-process-and-dies", max_crashes=1)
def leaves_a_process_and_dies() -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note("left", "behind", left.pid)
    os._exit(3)


@app.task("forks-and-returns")
def forks_and_returns() -> str:
    return "parent" if os.fork() else "child"


@app.task("closes-everything", max_crashes=2, retry=AT_ONCE)
def closes_everything() -> None:
    os.closerange(0, 4096)


@app.task("closes-its-output")
def closes_its_output() -> str:
    print("before")
    sys.stdout.close()
    os.close(1)
    os.close(2)
    return "closed"


@app.task("speaks")
def speaks(word: str) -> None:
    print(word)


@app.task("prints")
def prints(megabytes: int) -> str:
    block = ("x" * 1023 + "\n") * 1024
    for _ in range(megabytes):
        sys.stdout.write(block)
    return "printed"


@app.task("aborts", max_crashes=1)
def aborts() -> None:
    os.abort()


@app.task("recurses")
def recurses() -> None:
    recurses.__call__()


@app.task("sets-an-alarm")
def sets_an_alarm() -> None:
    signal.signal(signal.SIGALRM, _alarmed)
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def _alarmed(*_: object) -> NoReturn:
    raise RuntimeError("an alarm of an earlier task")


@app.task("makes-a-mess")
def makes_a_mess() -> None:
    os.chdir("/")
    os.environ["MISCHIEF"] = "managed"
    os.umask(0)
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@app.task("too-large")
def too_large() -> int:
    return len(bytearray(1 << 62))


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@app.task("awkward")
def awkward() -> None:
    raise Awkward


class Vicious(BaseException):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"no {name}")


@app.task("vicious")
def vicious() -> None:
    raise Vicious
