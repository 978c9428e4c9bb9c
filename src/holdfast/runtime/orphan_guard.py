"""The kernel's own means against orphans.

Owns the wish to be killed when the parent dies. It works while this process holds the GIL
in C, and costs nothing; where the kernel has no such thing, the end of the socket to the
supervisor is what remains.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Collection
from time import monotonic

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


class Witness:
    """Sees the end of processes that are not our own children, where the kernel lets it.

    Made while they live: a number alone may be somebody else's by the time it is looked at.
    """

    def __init__(self, pids: Collection[int]) -> None:
        self._handles: set[int] = set()
        for pid in pids if hasattr(os, "pidfd_open") else ():
            try:
                self._handles.add(os.pidfd_open(pid))
            except OSError:
                # It is gone already, or there is no descriptor left to see it by.
                continue

    def wait(self, patience: float) -> bool:
        """Wait until all of them have ended; whether they have."""
        deadline = monotonic() + patience
        poll = select.poll()
        for handle in self._handles:
            poll.register(handle, select.POLLIN)
        while self._handles:
            ended = poll.poll(max(0.0, deadline - monotonic()) * 1000)
            for handle, _ in ended:
                poll.unregister(handle)
                self._close(handle)
            if not ended:
                break
        left = len(self._handles)
        for handle in list(self._handles):
            self._close(handle)
        return not left

    def _close(self, handle: int) -> None:
        self._handles.discard(handle)
        os.close(handle)
