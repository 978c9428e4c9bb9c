"""The kernel's own means against orphans.

Asks the kernel to kill this process: a template when its parent dies, a child when the supervisor
dies, whichever process is its parent (a child outlives its template). Both work while the process
holds the GIL in C, and cost nothing; where the kernel cannot do it, the process ends when its
socket to the supervisor does.

Orphans of others may become ours: when a process dies, its children become those of process 1, or
of the nearest subreaper. In a container without an init that is the worker, and what a task has
started and left would stay as a zombie until the container ends: `reap` takes what is not known to
us. Those that are known are left to the code that reads how they ended.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import sys
from collections.abc import Collection, Container
from time import monotonic

_PR_SET_PDEATHSIG = 1
_F_SETSIG = 10
_HIGH = 512


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal when `parent` dies; exit now if it has.

    The parent is, for the kernel, the *thread* that made this process: it must live as long
    as its process does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class Lifeline:
    """A pipe whose writing end the supervisor alone has: when it is closed, children are killed."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        self._is_cut = False

    def cut(self) -> None:
        """End every child that hangs on it."""
        if not self._is_cut:
            self._is_cut = True
            os.close(self._writing)
            os.close(self.reading)


def hang_on(lifeline: int) -> None:
    """Be killed when the other end of this pipe is closed, by whatever happened to its owner."""
    if sys.platform != "linux":
        return
    try:
        # Opened anew: who gets the signal is a property of what was opened, not of a descriptor
        # that is shared with the template and all its children.
        own = os.open(f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # Where careless code that closes low numbers does not reach.
        high = fcntl.fcntl(own, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(own)
        own = high
    except OSError:
        pass
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)
    try:
        if not os.read(own, 1):
            # Closed before anybody was told.
            os._exit(1)
    except BlockingIOError:
        pass


def kill_group(leader: int) -> None:
    """Kill what there is of a process group."""
    if leader <= 1:
        # To the kernel these mean our own group, and everybody.
        return
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_child(pid: int) -> None:
    """Kill a child that has not been reaped yet, with what there is of its group.

    By its own number too: its code may have moved it into another group.
    """
    kill_group(pid)
    if pid > 1:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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
