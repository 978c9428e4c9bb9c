"""Tasks that leave their process as they would not like to find it."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from holdfast import Holdfast

os.environ.setdefault("UNTIDY_BASE", "base")

app = Holdfast("sqlite:///:memory:")


def state() -> dict[str, Any]:
    """What every task should find the same."""
    print("heard")
    mask = os.umask(0)
    os.umask(mask)
    return {
        "streams": [sys.stdin.closed, sys.stdout.closed, sys.stderr.closed],
        "timers": [list(signal.getitimer(timer)) for timer in (0, 1, 2)],
        "handlers": [
            repr(signal.getsignal(number))
            for number in sorted(signal.valid_signals())
            if number < 32
        ],
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "directory": os.getcwd(),  # noqa: PTH109
        "umask": mask,
        "variables": {k: v for k, v in os.environ.items() if k.startswith("UNTIDY") or k == "TZ"},
        "timezone": time.tzname[0],
        "switches": [sys.getrecursionlimit(), gc.isenabled(), socket.getdefaulttimeout()],
    }


@app.task("state")
def process_state() -> dict[str, Any]:
    return state()


@app.task("a.state")
async def async_state() -> dict[str, Any]:
    return state()


@app.task("t.state", executor="thread")
def thread_state() -> dict[str, Any]:
    return {"streams": state()["streams"]}


def leave_a_mess() -> None:
    for name in ("stdin", "stdout", "stderr"):
        stream = io.StringIO()
        stream.close()
        setattr(sys, name, stream)


def leave_more(number: int) -> None:
    leave_a_mess()
    signal.signal(signal.SIGALRM, _alarmed)
    signal.signal(signal.SIGUSR2, _alarmed)
    signal.signal(signal.SIGWINCH, _alarmed)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(1)
    signal.setitimer(signal.ITIMER_PROF, 5)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    os.chdir("/")
    os.umask(0o777)
    os.environ["UNTIDY_NEW"] = str(number)
    os.environ["TZ"] = "Asia/Kathmandu"
    time.tzset()
    del os.environ["UNTIDY_BASE"]
    sys.setrecursionlimit(5_000)
    gc.disable()
    socket.setdefaulttimeout(0.001)


def _alarmed(*_: object) -> NoReturn:
    raise RuntimeError("an alarm of an earlier task")


@app.task("mess")
def process_mess(number: int = 0) -> None:
    leave_more(number)


@app.task("a.mess")
async def async_mess() -> None:
    leave_more(0)


@app.task("t.mess", executor="thread")
def thread_mess() -> None:
    leave_a_mess()


@app.task("imports")
def imports(module: str) -> None:
    os.environ["UNTIDY_LIBRARY"] = "set"
    os.environ["UNTIDY_BASE"] = "changed"
    __import__(module)


@app.task("alarms-itself")
def alarms_itself() -> None:
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.000_1, 0.000_1)


@app.task("removes-its-directory")
def removes_its_directory() -> None:
    """And takes the way back, too: the descriptor that leads there is closed."""
    place = os.getcwd()  # noqa: PTH109
    shutil.rmtree(place)
    os.chdir(tempfile.gettempdir())
    for number in range(300, 2_000):
        try:
            if str(Path(f"/proc/self/fd/{number}").readlink()).startswith(place):
                os.close(number)
        except OSError:
            continue


@app.task("pid")
def pid() -> int:
    return os.getpid() if threading.current_thread() is threading.main_thread() else 0
