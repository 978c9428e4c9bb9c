"""What else the machine did meanwhile: steal, and the load of others.

Owns the reading of processor times. A figure taken while somebody else used a core says
little, so every group of figures is printed with this beside it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import monotonic

import psutil


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Processor seconds so far: of the whole machine, stolen from it, and of us."""

    at: float
    busy: float
    steal: float
    ours: float


def snapshot() -> Snapshot:
    """Now."""
    times = psutil.cpu_times()
    steal: float = getattr(times, "steal", 0.0)
    busy = sum(times) - times.idle - getattr(times, "iowait", 0.0) - steal
    # A guest's time is counted under user already.
    busy -= getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return Snapshot(monotonic(), busy, steal, _ours())


def since(before: Snapshot) -> str:
    """How busy the machine was since then, in words."""
    now = snapshot()
    seconds = max(now.at - before.at, 1e-9)
    others = max(0.0, now.busy - before.busy - (now.ours - before.ours)) / seconds
    steal = (now.steal - before.steal) / seconds
    return (
        f"{seconds:.0f} s; of {os.cpu_count()} cores others used {others:.2f}, "
        f"the host took {steal:.2f}"
    )


def _ours() -> float:
    """This process and its children, among them the PostgreSQL server."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
