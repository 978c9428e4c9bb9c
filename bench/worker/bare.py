"""Bare processes: the same work in a loop, with no queue. What is possible on this machine.

    python -m bench.worker.bare SECONDS

Owns the counterpart of the tasks' figures. The processes are warm and begin together, when they are
told to, and each ends by time: none works alone while others have ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter, thread_time

from bench.peers.work import WORK, work

_WARM_S = 0.1


def rate(command: str, seconds: float, processes: int = 2) -> float:
    """How many pieces of this work so many processes do in a second."""
    return sum(number / took for number, took, _ in _told(command, seconds, processes))


def processors(command: str, seconds: float, processes: int = 2) -> float:
    """How many processors the work of so many processes gets."""
    return sum(used / took for _, took, used in _told(command, seconds, processes))


def _told(command: str, seconds: float, processes: int) -> list[tuple[int, float, float]]:
    """Of each process: pieces of work, seconds, seconds of a processor."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.worker.bare", str(seconds)],
            env={**os.environ, WORK: command},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # As workers are: the system shares processors out by sessions.
            start_new_session=True,
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = []
    for process in running:
        number, took, used = process.communicate()[0].split()
        found.append((int(number), float(took), float(used)))
    return found


def main(seconds: float) -> None:
    _repeat(_WARM_S)
    print("ready", flush=True)
    sys.stdin.readline()
    print(*_repeat(seconds))


def _repeat(seconds: float) -> tuple[int, float, float]:
    began, before, number = perf_counter(), thread_time(), 0
    while (took := perf_counter() - began) < seconds or not number:
        work(number)
        number += 1
    return number, took, thread_time() - before


if __name__ == "__main__":
    main(float(sys.argv[1]))
