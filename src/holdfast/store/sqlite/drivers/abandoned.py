"""Connections that must neither be used nor closed any more.

Owns them until the process has ended. Closing one acts on locks: on those of the parent, if it
came here through a fork, or on those of another library of this process. So not even the end
of the interpreter, which clears all modules, may close them.
"""

from __future__ import annotations

from collections.abc import Iterable

_connections: list[object] = []


def abandon(connections: Iterable[object]) -> None:
    """Never close these."""
    import ctypes

    for connection in connections:
        _connections.append(connection)
        # One reference more than there are owners: nobody's end is the end of the object.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def count() -> int:
    """How many there are."""
    return len(_connections)
