"""What happens to open handles when the process forks.

Owns the hooks of `os.register_at_fork`, for both engines.

A SQLite connection must not cross a fork: the child would assume locks that only the
parent holds. So before a fork every `Member` closes what it can, and afterwards both sides
start afresh; a send in the child of gunicorn's preloaded master simply works.

A connection to PostgreSQL may stay open in the parent, but the child shares its socket: one
byte of the child in there breaks the parent's session. So in the child every `Inheritor`
gives up what it inherited without sending anything on it.

A fork that bypasses Python's hooks (made by a C library) cannot be prepared; `settle`
notices it afterwards, and handles of SQLite that were open then are lost to the child.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Member(Protocol):
    """Something with handles or locks that are closed before a fork."""

    def before_fork(self) -> None: ...

    def after_fork(self, *, in_child: bool) -> None: ...


class Inheritor(Protocol):
    """Something with handles or locks that the child must not use."""

    def after_fork(self) -> None:
        """Start anew: nobody else runs in this process yet, and no lock can be trusted."""
        ...


process = os.getpid()
"""The id of this process as of the last look."""
_members: WeakSet[Member] = WeakSet()
_inheritors: WeakSet[Inheritor] = WeakSet()
_mutex = threading.RLock()
_one_fork = threading.Lock()
_prepared: list[Member] = []
_had_threads = False
_is_of_threads = False


def join(member: Member) -> None:
    """Have all hooks called on this object for as long as it lives."""
    with _mutex:
        _members.add(member)


def inherit(inheritor: Inheritor) -> None:
    """Call `after_fork` of this object in every forked child, for as long as it lives."""
    with _mutex:
        _inheritors.add(inheritor)


def settle() -> int:
    """Notice a fork that ran no hooks; the id of this process. Cheap enough for every call."""
    pid = os.getpid()
    if pid != process:
        _after_in_child()
    return pid


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
    global _mutex, _one_fork, process, _is_of_threads
    _is_of_threads = _is_of_threads or _had_threads
    _mutex, _one_fork = threading.RLock(), threading.Lock()
    process = os.getpid()
    for inheritor in list(_inheritors):
        inheritor.after_fork()
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
