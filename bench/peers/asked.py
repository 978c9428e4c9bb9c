"""What a peer's program is asked to do: to fill its queue, or to send and wait, task by task.

    python -m bench.peers.on_… COUNT          put so many tasks into the queue
    python -m bench.peers.on_… ping COUNT     send so many, one at a time, each into an idle queue
    python -m bench.peers.on_… sends          say `ready`; then for each line `one COUNT` or
                                              `bulk COUNT`: send, and say how many were sent

Owns those words, so that they mean the same for ours and for every peer. Imports the standard
library only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from time import monotonic_ns, sleep
from typing import Any, NamedTuple

WARM_UP = 5
"""The first pings find connections that are being opened; they are sent, and not counted."""


class Ping(NamedTuple):
    """One task: when it was sent, when `send` had returned, and when its result was there."""

    number: int
    began_ns: int
    returned_ns: int
    got_ns: int


def ping(count: int, send: Callable[[int], Any], get: Callable[[Any], object]) -> list[Ping]:
    """Send and wait, one task at a time."""
    found = []
    for number in range(WARM_UP + count):
        began = monotonic_ns()
        sent = send(number)
        returned = monotonic_ns()
        get(sent)
        found.append(Ping(number, began, returned, monotonic_ns()))
        # Not in step with anything that a worker does now and then.
        sleep(random.uniform(0.03, 0.07))
    return found


def answer(
    send: Callable[[int], Any],
    get: Callable[[Any], object] = lambda _: None,
    bulk: Callable[[range], object] | None = None,
) -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["ping", count]:
            for one in ping(int(count), send, get):
                print(*one)
        case ["sends"]:
            _sends(send, bulk)
        case [count] if bulk is not None:
            bulk(range(int(count)))
        case [count]:
            for number in range(int(count)):
                send(number)
        case other:
            sys.exit(f"not understood: {other}")


def _sends(send: Callable[[int], Any], bulk: Callable[[range], object] | None) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        word, number = line.split()
        count = int(number)
        if word == "bulk" and bulk is not None:
            bulk(range(count))
        else:
            for each in range(count):
                send(each)
        print(count, flush=True)
