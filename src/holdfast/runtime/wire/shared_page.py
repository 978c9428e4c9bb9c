"""One page of memory that a child and its supervisor share.

Owns what must be known about a child even when it can no longer speak: which task it has
begun, since when, and which one it is to end. A child writes its lanes, one for each task
it runs at a time; the supervisor writes `doomed`. Every word has one writer and is written
at once (`struct` with a byte order would write it byte by byte), so there is nothing to
lock; who reads two words looks at the first again.

    0    doomed    slot that the next SIGTERM is meant for (0: none)
    1    why       number of the reason (index into `WHYS`)
    8    lanes     per lane: slot (0: idle), then when its code began (CLOCK_MONOTONIC ns)

Slots begin at 1 and are never reused in the life of a worker.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from holdfast.runtime.wire.messages import Why

WHYS: tuple[Why, ...] = ("cancel", "timeout", "silence", "shutdown", "lost")

_WORD = 8
_LANES_AT = 8
_LANE = 2


class Begun(NamedTuple):
    """What a lane says."""

    slot: int
    at_ns: int


def create(lanes: int) -> int:
    """A descriptor of fresh memory for a shared page of so many lanes."""
    size = (_LANES_AT + lanes * _LANE) * _WORD
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("holdfast-board")
    else:
        fd, path = tempfile.mkstemp(prefix="holdfast-board-")
        Path(path).unlink()
    os.ftruncate(fd, size)
    return fd


class SharedPage:
    """A view of the shared page; made on both sides from the same descriptor."""

    def __init__(self, fd: int, lanes: int) -> None:
        self.lanes = lanes
        self._memory = mmap.mmap(fd, (_LANES_AT + lanes * _LANE) * _WORD)
        self._words = memoryview(self._memory).cast("Q")

    def begin(self, lane: int, slot: int, at_ns: int) -> None:
        """Child: the code of this slot begins in this lane."""
        # The time first: whoever sees the slot must not see an old time with it.
        place = _LANES_AT + lane * _LANE
        self._words[place] = 0
        self._words[place + 1] = at_ns
        self._words[place] = slot

    def end(self, lane: int) -> None:
        """Child: whatever ran in this lane has ended."""
        self._words[_LANES_AT + lane * _LANE] = 0

    def begun(self) -> list[Begun]:
        """Supervisor: the tasks whose code has begun and not ended."""
        words = self._words
        found = []
        for place in range(_LANES_AT, _LANES_AT + self.lanes * _LANE, _LANE):
            slot = words[place]
            if slot:
                at_ns = words[place + 1]
                if words[place] == slot:
                    found.append(Begun(slot, at_ns))
        return found

    def doom(self, slot: int, why: Why) -> None:
        """Supervisor: the next SIGTERM is meant for this slot only."""
        self._words[1] = WHYS.index(why)
        self._words[0] = slot

    def doomed(self) -> tuple[int, Why]:
        """Child: which slot to end, and why; slot 0 is none."""
        return self._words[0], WHYS[self._words[1]]

    def close(self) -> None:
        self._words.release()
        self._memory.close()
