"""The reserve: work that process children are given ahead while a queue is deep.

Owns how much that is, when more of it is claimed, what of it moves to a child that has nothing to
do, and how long a child with enough of it need not be listened to. The work is started, so a child
goes from one task to the next without a word; what has not begun can be taken back at no cost.

A transaction and the wake-ups around it cost about as much for twenty tasks as for one. So while
every child has work, what ended is heard, written and replaced once in a beat, for all children
together. Outcomes lose nothing by that: they wait in the socket, and outlive their child.

Nobody who is alone is kept waiting: without a deep queue there is no reserve, and a child that has
nothing to do ends the beat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from time import monotonic
from typing import Final

from holdfast.runtime.supervisor.state.child_handle import (
    WINDOW_US,
    Assignment,
    ChildHandle,
    ChildState,
)

RESERVE_US: Final = 200_000
"""The most work that is given ahead, unless one task is half of it."""
_TYPICAL: Final = 64
"""The most tasks of a typical length: the claims of tasks of 1 ms need not be larger."""
_BEATS: Final = 5
"""A reserve lasts for so many beats."""
_LEAST_BEATS: Final = 1.5
"""A child that has less is listened to all the time."""
LATE_US: Final = 5_000
"""A task that waits longer in its child than this is better off in one that has nothing to do: to
move it takes two transactions."""
_LONGER_US: Final = 10_000
_LONGER_TIMES: Final = 3
"""What runs for so long, and so many times what was expected, may run for ever."""


def window_us(typical_us: float) -> int:
    """How much work is given ahead of a deep queue, of tasks that typically cost so much."""
    if typical_us >= RESERVE_US:
        # Each of them is long enough to be claimed and started while another runs.
        return WINDOW_US
    most = max(min(RESERVE_US, _TYPICAL * typical_us), 2 * typical_us)
    # A little more, so that a whole number of them fits although none is exactly typical.
    return int(max(WINDOW_US, most + typical_us / 4))


def is_due(child: ChildHandle) -> bool:
    """Whether it will soon have nothing to do: half of what it may be given is gone, or all but
    one task. One with several lanes is due when a lane is free."""
    if child.kind != "process" or child.load_us <= child.window_us // 2:
        return True
    return len(child.hand) <= 1 and child.window_us > WINDOW_US


def missing(children: Iterable[ChildHandle], typical_us: float) -> int:
    """How many tasks that typically cost so much these children could be given."""
    return sum(
        max(not child.hand, int((child.window_us - child.load_us) // typical_us), 0)
        for child in children
    )


def rest_s(child: ChildHandle, children: Collection[ChildHandle]) -> float:
    """For how long nobody needs to hear what ended in this child; 0.0: not at all."""
    beat = child.window_us / 1_000_000 / _BEATS
    if child.window_us <= WINDOW_US or child.load_us < _LEAST_BEATS * child.window_us / _BEATS:
        return 0.0
    if any(run.is_urgent or run.told_to_end is not None for run in child.hand.values()):
        return 0.0
    for each in children:
        if each.kind == "process" and each.state is ChildState.READY and not each.hand:
            # What it gets next may depend on what is heard.
            return 0.0
    # Up to the same moment for all of them.
    return beat - monotonic() % beat


def to_move(
    children: Iterable[ChildHandle], begun: dict[ChildHandle, dict[int, float]]
) -> tuple[ChildHandle, list[Assignment]] | None:
    """What a child should give back, for those that have nothing to do; `begun`: for how many
    seconds the tasks have run that have begun."""
    ready = [c for c in children if c.kind == "process" and c.state is ChildState.READY]
    idle = sum(not child.hand for child in ready)
    if not idle:
        return None
    richest: tuple[ChildHandle, list[Assignment]] | None = None
    most = 0.0
    for child in ready:
        if len(child.hand) > 1:
            wait_us, late = _late(child, begun[child])
            if late and wait_us > most:
                most, richest = wait_us, (child, late)
    if richest is None:
        return None
    child, late = richest
    waiting = len(child.hand) - len(begun[child])
    # Each of those that are idle, and this child itself, has the same of what waits.
    share = max(1, waiting * idle // (idle + 1))
    return child, late[-share:]


def _late(child: ChildHandle, begun: dict[int, float]) -> tuple[float, list[Assignment]]:
    """How long the last of its tasks waits (µs), and those that wait for long."""
    hand = list(child.hand.values())
    ahead = 0.0
    late: list[Assignment] = []
    for run in hand:
        ran = begun.get(run.slot)
        if ran is None:
            continue
        ran_us = ran * 1_000_000
        is_longer = ran_us > max(_LONGER_US, _LONGER_TIMES * run.cost_us)
        ahead += 1e12 if is_longer else max(0.0, run.cost_us - ran_us)
    for run in in_order(hand):
        if run.slot in begun or not run.started:
            continue
        if ahead > LATE_US and not run.is_recalled:
            late.append(run)
        ahead += run.cost_us
    return ahead, late


def in_order(hand: Sequence[Assignment]) -> list[Assignment]:
    """As their child will run them, if none had begun."""
    return sorted(hand, key=lambda run: not run.is_urgent)
