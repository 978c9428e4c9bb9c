"""What the processes of a worker use of memory and processor, as the system tells.

Owns the reading of `/proc`; where there is none, what cannot be seen is None or 0. It never changes
anything, and nothing that it says of a process may be relied on: the process may be gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

__all__ = ["ProcessUsage", "UsageMeter", "cpu_seconds", "megabytes"]


class ProcessUsage(NamedTuple):
    """Of one process, since it was looked at last."""

    name: str
    pid: int
    memory_mb: float
    cpu_percent: float | None
    """Of one core."""


class UsageMeter:
    """Looks at the same processes again and again; for one thread."""

    def __init__(self) -> None:
        self._at = monotonic()
        # Others begin after us; this process has begun long ago.
        self._spent: dict[int, float] = {os.getpid(): cpu_seconds(os.getpid()) or 0.0}

    def look(self, processes: Sequence[tuple[str, int]]) -> list[ProcessUsage]:
        """What each of them (name, pid) used since the last look; a new one since it began."""
        now = monotonic()
        elapsed = max(now - self._at, 0.001)
        spent: dict[int, float] = {}
        found = []
        for name, pid in processes:
            seconds = cpu_seconds(pid)
            percent = None
            if seconds is not None:
                spent[pid] = seconds
                before = self._spent.get(pid, 0.0)
                # Less than before: the pid is another process's by now.
                used = seconds - before if seconds >= before else seconds
                percent = 100 * used / elapsed
            found.append(ProcessUsage(name, pid, megabytes(pid), percent))
        self._at, self._spent = now, spent
        return found


def megabytes(pid: int | None) -> float:
    """How much memory a process has; 0.0 if it is gone, or that cannot be seen."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


def cpu_seconds(pid: int) -> float | None:
    """How much processor time a process has had; None if it is gone, or that cannot be seen."""
    try:
        # Its name stands in brackets and may hold anything; numbers follow the last of them.
        after = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None
