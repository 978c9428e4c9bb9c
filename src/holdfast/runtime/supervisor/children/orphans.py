"""Children whose template is dead.

Owns the news of their deaths, which the template would have told: a descriptor for each process,
which can be read when it has ended. How it ended is known only where the kernel made it our own
child (as process 1 of a container, say); elsewhere that is lost with the template.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast.runtime import orphan_guard
from holdfast.runtime.supervisor.state.child_handle import ChildHandle


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended, as far as that is known."""

    exit_code: int | None = None
    exit_signal: int | None = None


def watch(child: ChildHandle) -> int | None:
    """A descriptor that can be read once the child is dead; None if it is, or cannot be watched."""
    child.orphaned = True
    if child.pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(child.pid)
    except OSError:
        return None


def ended(child: ChildHandle, descriptor: int | None) -> ProcessEnd:
    """Take leave of one that is dead: what is left of its process group is killed."""
    if child.pid is None:
        return ProcessEnd()
    orphan_guard.kill_group(child.pid)
    if descriptor is None:
        return ProcessEnd()
    try:
        found = os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG)
    except OSError:
        # Somebody else's child by now.
        return ProcessEnd()
    finally:
        os.close(descriptor)
    if found is None:
        return ProcessEnd()
    if found.si_code == os.CLD_EXITED:
        return ProcessEnd(exit_code=found.si_status)
    return ProcessEnd(exit_signal=found.si_status)
