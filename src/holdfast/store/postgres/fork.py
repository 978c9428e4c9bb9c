"""After a fork: everyone who holds a socket or a lock forgets what it inherited.

Owns the list of those, and the watch for a new process. A forked child shares its
parent's sockets: one byte of it in there, even the farewell of a clean close, breaks the
parent's session. So the child closes the bare descriptors (or the server would believe a
dead parent alive while the child lives) and starts from nothing.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

import psycopg


class Inheritor(Protocol):
    """Holds what must not cross a fork."""

    def after_fork(self) -> None:
        """Start anew: nobody else runs in this process yet, and no lock can be trusted."""
        ...


_inheritors: WeakSet[Inheritor] = WeakSet()
# Never deallocated: psycopg would complain that nobody closed them.
_abandoned: list[psycopg.Connection[object]] = []
_pid = os.getpid()


def watch(inheritor: Inheritor) -> None:
    """Call `after_fork` of this object in every forked child."""
    _inheritors.add(inheritor)


def settle() -> None:
    """Notice a fork that ran no hooks (one made in C); cheap enough for every call."""
    if _pid != os.getpid():
        _in_child()


def abandon(connection: psycopg.Connection[object]) -> None:
    """Give up a connection inherited from the parent without saying a word on it."""
    _abandoned.append(connection)
    try:
        descriptor = connection.fileno()
    except psycopg.Error:
        return
    os.close(descriptor)


def _in_child() -> None:
    global _pid
    _pid = os.getpid()
    for inheritor in list(_inheritors):
        inheritor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
