"""Processes that nobody waits for, and that the kernel made our children.

When a process dies, its children become those of process 1, or of the nearest subreaper. In a
container without an init that is the worker: what a task has started and left would stay as a
zombie until the container ends. Owns the reaping of what is not known to us; those that are known
are left to whoever wants to know how they ended.
"""

from __future__ import annotations

import os
from collections.abc import Container


def reap(known: Container[int | None]) -> int:
    """Reap every child that has ended, up to the first known one; how many there were."""
    count = 0
    while hasattr(os, "waitid"):
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            break
        if found is None or found.si_pid in known:
            # A known one is waited for by somebody, in a moment.
            break
        try:
            os.waitpid(found.si_pid, os.WNOHANG)
        except ChildProcessError:
            continue
        count += 1
    return count
