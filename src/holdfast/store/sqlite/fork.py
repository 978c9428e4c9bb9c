"""What happens to open handles when the process forks.

Owns the hooks of `os.register_at_fork`. A SQLite connection must not cross a fork:
the child would believe in locks that only the parent holds. So before a fork every
member closes what it can, and afterwards both sides start afresh; a send in the
child of gunicorn's preloaded master simply works.

A fork that bypasses Python's hooks (made by a C library) cannot be prepared; `settle`
notices it afterwards, and handles that were open then are lost to the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Member(Protocol):
    """Something with handles or locks."""

    def before_fork(self) -> None: ...

    def after_fork(self, *, in_child: bool) -> None: ...


_members: weakref.WeakSet[Member] = weakref.WeakSet()
_mutex = threading.RLock()
_one_fork = threading.Lock()
_prepared: list[Member] = []
_pid = os.getpid()
_had_threads = False
_is_of_threads = False


def join(member: Member) -> None:
    """Have the hooks called on this object for as long as it lives."""
    with _mutex:
        _members.add(member)


def settle() -> int:
    """Notice a fork that ran no hooks; the id of this process. Cheap enough for every call."""
    pid = os.getpid()
    if pid != _pid:
        _after_in_child()
    return pid


def this_process() -> int:
    """The id of this process as of the last look."""
    return _pid


def is_of_threads() -> bool:
    """Whether this process was forked from one with more than one thread.

    What these were doing in a library in C has stopped midway here, its locks included.
    """
    return _is_of_threads


def _before() -> None:
    global _had_threads
    # Else the end of one thread's fork would open the doors during another's.
    _one_fork.acquire()
    with _mutex:
        _prepared[:] = list(_members)
    for member in _prepared:
        member.before_fork()
    _had_threads = threading.active_count() > 1


def _after_in_parent() -> None:
    _after(in_child=False)
    _one_fork.release()


def _after_in_child() -> None:
    global _mutex, _one_fork, _pid, _is_of_threads
    _is_of_threads = _is_of_threads or _had_threads
    _mutex, _one_fork = threading.RLock(), threading.Lock()
    _pid = os.getpid()
    _after(in_child=True)


def _after(*, in_child: bool) -> None:
    members = _prepared or list(_members)
    for member in members:
        member.after_fork(in_child=in_child)
    _prepared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
