"""What a run cost: processor time and peak memory of a process that runs one task at a time.

Owns the reading of the kernel's counters. Reading them takes longer than a short task, so
a run under `SHORT_NS` is charged its own wall time, and its peak is the one last seen.

The kernel keeps the highest memory use of a process for ever; it is told to forget it after
a run that needed much, so that the next one is not charged for it. Where that cannot be
told, a peak is known only when it is a new one.
"""

from __future__ import annotations

import os
import resource
import sys

SHORT_NS = 200_000
_GROWTH_KB = 1024
_SCALE = 1024 if sys.platform == "darwin" else 1


class Meter:
    """Measures run after run."""

    def __init__(self) -> None:
        self._forgets = True
        self._children_kb = 0
        self._cpu_us = 0.0
        self._peak_kb: int | None = None
        self._floor_kb = 0
        self._start()

    def measure(self, run_ns: int) -> tuple[int, int | None]:
        """Processor time (µs) and peak memory (KiB) of the run that has just ended."""
        if run_ns < SHORT_NS:
            self._cpu_us += run_ns / 1000
            return run_ns // 1000, self._peak_kb
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_us = _cpu_us(own) + _cpu_us(children)
        spent, self._cpu_us = max(0.0, cpu_us - self._cpu_us), cpu_us
        peak = own.ru_maxrss // _SCALE
        grown = peak > self._floor_kb
        if children.ru_maxrss > self._children_kb:
            # A subprocess of this run was larger than any before it.
            self._children_kb = children.ru_maxrss
            peak, grown = max(peak, children.ru_maxrss // _SCALE), True
        if peak > self._floor_kb + _GROWTH_KB:
            self._reset()
        return round(spent), peak if grown or self._forgets else None

    def _start(self) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._cpu_us = _cpu_us(own) + _cpu_us(children)
        self._children_kb = children.ru_maxrss
        self._reset()

    def _reset(self) -> None:
        self._forgets = self._forgets and _forget_peak()
        self._floor_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _SCALE
        self._peak_kb = self._floor_kb if self._forgets else None


def _forget_peak() -> bool:
    # Opened each time: a descriptor that is kept may be closed by the code, and be another's.
    try:
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, b"5")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _cpu_us(usage: resource.struct_rusage) -> float:
    return (usage.ru_utime + usage.ru_stime) * 1e6
