"""What a measured task does before it notes its end: nothing, or what the environment says.

Owns the work. The same code for ours, for every peer and for bare processes, so it imports the
standard library only. `compute:N` is N turns of a loop, the same amount whoever runs it; `sleep:MS`
waits, a coroutine beside others; `mixed:N` computes N turns, and ten times as many for every tenth
task; `vary:MS` sleeps between MS and a hundred times as long, in an order that looks like chance
and is the same for everybody.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import repeat
from time import perf_counter, sleep

WORK = "BENCH_WORK"
"""The environment variable that says what to do."""
_TRIES = 5
_TURNS = 500_000
_GOLDEN = 0.618033988749895

Work = Callable[[int], object]
"""The work of the task with this number."""


def work_of(variable: str) -> Work:
    """The work that this environment variable asks for."""
    kind, _, amount = os.environ.get(variable, "").partition(":")
    match kind:
        case "compute":
            turns = int(amount)
            return lambda _: spin(turns)
        case "sleep":
            seconds = float(amount) / 1e3
            return lambda _: sleep(seconds)
        case "mixed":
            turns = int(amount)
            return lambda number: spin(turns * (1 if number % 10 else 10))
        case "vary":
            shortest = float(amount)
            return lambda number: sleep(length_ms(number, shortest) / 1e3)
        case _:
            return lambda _: None


work = work_of(WORK)
_kind, _, _amount = os.environ.get(WORK, "").partition(":")
_sleep_s = float(_amount) / 1e3 if _kind == "sleep" else None


async def wait(number: int) -> None:
    """The work of a task that is a coroutine: a sleep lets others run."""
    if _sleep_s is None:
        work(number)
    else:
        await asyncio.sleep(_sleep_s)


def length_ms(number: int, shortest: float) -> float:
    """How long a task takes whose lengths vary: all as often, on a logarithmic scale."""
    return float(shortest * 100 ** (number * _GOLDEN % 1.0))


def spin(turns: int) -> float:
    """Keep a processor busy.

    With floats, of which the interpreter keeps some at hand, and no counter: large integers are
    allocated one by one, and how long that takes differs by a quarter from process to process, by
    what else happens to stand in memory.
    """
    value = 1.0
    for _ in repeat(None, turns):
        value = value * 0.5 + 1.0
    return value


def turns_per_ms() -> float:
    """How many turns this machine does in a millisecond when nothing disturbs it."""
    best = 0.0
    for _ in range(_TRIES):
        began = perf_counter()
        spin(_TURNS)
        best = max(best, _TURNS / (perf_counter() - began) / 1e3)
    return best
