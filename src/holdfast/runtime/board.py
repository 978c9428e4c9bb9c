"""The board: a page of memory that a child and its supervisor share.

Owns what must be known about a child even when it can no longer speak: which task it has
begun, since when, and which one it is to end. A child writes its lanes, one for each task
it runs at a time; the supervisor writes `doomed`. Every field has one writer, and a value
is eight bytes written at once, so there is nothing to lock.

    0    doomed    slot that the next SIGTERM is meant for (0: none)
    8    why       number of the reason (index into `WHYS`)
    64   lanes     per lane: slot (0: idle), then when its code began (CLOCK_MONOTONIC ns)

Slots begin at 1 and are never reused in the life of a worker.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from typing import NamedTuple

from holdfast.runtime.wire import Why

WHYS: tuple[Why, ...] = ("cancel", "timeout", "silence", "shutdown", "lost")

_VALUE = struct.Struct("=Q")
_PAIR = struct.Struct("=QQ")
_LANES_AT = 64


class Begun(NamedTuple):
    """What a lane says."""

    slot: int
    at_ns: int


def create(lanes: int) -> int:
    """A descriptor of fresh memory for a board of so many lanes."""
    size = _LANES_AT + lanes * _PAIR.size
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("holdfast-board")
    else:
        fd, path = tempfile.mkstemp(prefix="holdfast-board-")
        os.unlink(path)
    os.ftruncate(fd, size)
    return fd


class Board:
    """A view of the shared page; made on both sides from the same descriptor."""

    def __init__(self, fd: int, lanes: int) -> None:
        self.lanes = lanes
        self._memory = mmap.mmap(fd, _LANES_AT + lanes * _PAIR.size)

    def begin(self, lane: int, slot: int, at_ns: int) -> None:
        """Child: the code of this slot begins in this lane."""
        # The time first: whoever sees the slot must not see an old time with it.
        offset = _LANES_AT + lane * _PAIR.size
        _VALUE.pack_into(self._memory, offset + 8, at_ns)
        _VALUE.pack_into(self._memory, offset, slot)

    def end(self, lane: int) -> None:
        """Child: whatever ran in this lane has ended."""
        _VALUE.pack_into(self._memory, _LANES_AT + lane * _PAIR.size, 0)

    def begun(self) -> list[Begun]:
        """Supervisor: the tasks whose code has begun and not ended."""
        found = []
        for lane in range(self.lanes):
            slot, at_ns = _PAIR.unpack_from(self._memory, _LANES_AT + lane * _PAIR.size)
            if slot:
                found.append(Begun(slot, at_ns))
        return found

    def doom(self, slot: int, why: Why) -> None:
        """Supervisor: the next SIGTERM is meant for this slot only."""
        _VALUE.pack_into(self._memory, 8, WHYS.index(why))
        _VALUE.pack_into(self._memory, 0, slot)

    def doomed(self) -> tuple[int, Why]:
        """Child: which slot to end, and why; slot 0 is none."""
        (slot,) = _VALUE.unpack_from(self._memory, 0)
        (why,) = _VALUE.unpack_from(self._memory, 8)
        return slot, WHYS[why]

    def close(self) -> None:
        self._memory.close()
