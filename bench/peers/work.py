"""What a measured task does before it notes its end: nothing, or what the environment says.

Owns the work. The same code for ours, for every peer and for bare processes, so it imports the
standard library only. `compute:N` is N turns of a loop, the same amount whoever runs it; `sleep:MS`
waits; `mixed:N` computes N turns, and ten times as many for every tenth task.
"""

from __future__ import annotations

import os
from time import perf_counter, sleep

WORK = "BENCH_WORK"
"""The environment variable that says what to do."""
_TRIES = 5
_TURNS = 200_000

_kind, _, _amount = os.environ.get(WORK, "").partition(":")


def work(number: int) -> None:
    """The work of one task."""
    if _kind == "compute":
        spin(int(_amount))
    elif _kind == "sleep":
        sleep(float(_amount) / 1e3)
    elif _kind == "mixed":
        spin(int(_amount) * (1 if number % 10 else 10))


def spin(turns: int) -> int:
    """Keep a processor busy."""
    value = 1
    for turn in range(turns):
        value = (value * 31 + turn) & 0xFFFF
    return value


def turns_per_ms() -> float:
    """How many turns this machine does in a millisecond when nothing disturbs it."""
    best = 0.0
    for _ in range(_TRIES):
        began = perf_counter()
        spin(_TURNS)
        best = max(best, _TURNS / (perf_counter() - began) / 1e3)
    return best
