"""Tasks about time: late starts, limits, signs of life."""

from __future__ import annotations

import signal
import time

from holdfast import Holdfast, Retry, current_task
from tests.support.ledger import gate, note, wait_at

app = Holdfast()


@app.task("stamp", retry=Retry(1, delay=0.3))
def stamp(fail_first: bool = False) -> None:
    t = current_task()
    if fail_first and t.attempt == 1:
        # Long enough for whoever heard of the send to have gone to sleep again.
        time.sleep(0.2)
    note("stamp", t.id)
    if fail_first and t.attempt == 1:
        raise ConnectionError("again")


@app.task("neighbour")
def neighbour(name: str) -> str:
    gate(name)
    return name


@app.task("overruns", timeout=0.3)
def overruns(name: str) -> None:
    try:
        gate(name)
    finally:
        note("finally", name)


@app.task("overruns-once", timeout=0.3, retry=1)
def overruns_once() -> int:
    if current_task().attempt == 1:
        wait_at("never")
    return current_task().attempt


@app.task("overruns-never-again", timeout=0.3, retry=Retry(3, never_on=("TASK_TIMEOUT",)))
def overruns_never_again() -> None:
    wait_at("never")


@app.task("blocks-signals", timeout=0.3)
def blocks_signals(name: str) -> None:
    everything = set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    gate(name)


@app.task("ignores-signals", timeout=0.3)
def ignores_signals(name: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gate(name)


@app.task("swallows", timeout=0.3)
def swallows(name: str) -> None:
    note("begun", name)
    while True:
        try:
            wait_at("never")
        except BaseException:  # noqa: BLE001 - code that will not be told
            note("swallowed", name)


@app.task("stubborn-value", timeout=0.3)
def stubborn_value(name: str) -> str:
    try:
        gate(name)
    except BaseException:  # noqa: BLE001 - code that will not be told
        return "finished all the same"
    return "was never told"


@app.task("renames", timeout=0.3)
def renames(name: str) -> None:
    try:
        gate(name)
    except BaseException as error:
        raise RuntimeError("was disturbed") from error


@app.task("short", queue="one-by-one", timeout=0.4)
def short() -> None:
    time.sleep(0.25)


@app.task("silent", max_heartbeat_interval=0.4)
def silent(name: str) -> None:
    current_task().heartbeat()
    gate(name)


@app.task("beating", max_heartbeat_interval=0.4)
def beating() -> None:
    for _ in range(10):
        time.sleep(0.1)
        current_task().heartbeat()


@app.task("deadline", timeout=60)
def deadline() -> float:
    found = current_task().deadline
    assert found is not None
    return found.timestamp() - time.time()


@app.task("late-retry", retry=Retry(3, delay=5))
def late_retry() -> None:
    raise ConnectionError("too late to try again")


@app.task("unserved", queue="unserved")
def unserved() -> None:
    note("unserved")
