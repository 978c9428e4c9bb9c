"""Bare processes: the same work in a loop, with no queue. What is possible on this machine.

    python -m bench.worker.bare SECONDS

Owns the counterpart of the tasks' figures. The processes are warm and begin together, when they are
told to, and each ends by time: none works alone while others have ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter

from bench.peers.work import WORK, work

_WARM_S = 0.1


def rate(command: str, seconds: float, processes: int = 2) -> float:
    """How many pieces of this work so many processes do in a second."""
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
    found = 0.0
    for process in running:
        said, _ = process.communicate()
        number, took = said.split()
        found += int(number) / float(took)
    return found


def main(seconds: float) -> None:
    _repeat(_WARM_S)
    print("ready", flush=True)
    sys.stdin.readline()
    print(*_repeat(seconds))


def _repeat(seconds: float) -> tuple[int, float]:
    began, number = perf_counter(), 0
    while (took := perf_counter() - began) < seconds or not number:
        work(number)
        number += 1
    return number, took


if __name__ == "__main__":
    main(float(sys.argv[1]))
