"""The kernel's own means against orphans.

Owns the wish to be killed when the parent dies. It works while this process holds the GIL
in C, and costs nothing; where the kernel has no such thing, the end of the socket to the
supervisor is what remains.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal when `parent` dies; exit now if it has.

    The parent is, for the kernel, the *thread* that made this process: it must live as long
    as its process does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def kill_group(leader: int) -> None:
    """Kill what there is of a process group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
