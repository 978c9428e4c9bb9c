"""One page of memory that a child and its supervisor share.

Owns what must be known about a child even when it can no longer speak: which task it has
begun, since when, and which one it is to end. A child writes its lanes, one for each task
it runs at a time; the supervisor writes `to_end`. Every word has one writer and is written
at once (`struct` with a byte order would write it byte by byte), so there is nothing to
lock; who reads two words looks at the first again.

    0    to_end    slot that the next SIGTERM is meant for (0: none)
    1    why       number of the reason (index into `WHYS`)
    2    turned    when the child's event loop last came round (CLOCK_MONOTONIC ns; 0: no loop)
    3    blocker   slot whose code keeps that loop from coming round, if it is known
    4    stepping  slot whose code the event loop is in at this moment (0: none)
    8    lanes     per lane: slot (0: idle), then when its code began (CLOCK_MONOTONIC ns)

Slots begin at 1 and are never reused in the life of a worker.

Code in the child may write anything here: the supervisor believes a word only about tasks that
it gave to this child. It cannot cut the memory off, which would end a process that looks at it:
its size is sealed. Where there is no such seal the supervisor does not map the memory, but reads
and writes it as the file it is.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Protocol

from holdfast.core.outcome import Why

WHYS: tuple[Why, ...] = ("cancel", "timeout", "silence", "shutdown", "lost")

_WORD = 8
_LANES_AT = 8
_LANE = 2
_NATIVE = struct.Struct("=Q")


class Begun(NamedTuple):
    """What a lane says."""

    slot: int
    at_ns: int


def create(lanes: int) -> int:
    """A descriptor of fresh memory for a shared page of so many lanes."""
    size = _size(lanes)
    if sys.platform == "linux":
        try:
            fd = os.memfd_create("holdfast-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError:
            # A kernel, or a sandbox, that has no such call.
            pass
        else:
            os.ftruncate(fd, size)
            fcntl.fcntl(
                fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            )
            return fd
    fd, path = tempfile.mkstemp(prefix="holdfast-page-")
    Path(path).unlink()
    os.ftruncate(fd, size)
    return fd


class _Words(Protocol):
    def __getitem__(self, place: int, /) -> int: ...
    def __setitem__(self, place: int, word: int, /) -> None: ...
    def release(self) -> None: ...


class _FileWords:
    """The words of a page that its child may truncate: what is not there reads as 0."""

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)

    def __getitem__(self, place: int, /) -> int:
        data = os.pread(self._fd, _WORD, place * _WORD)
        found: tuple[int] = _NATIVE.unpack(data.ljust(_WORD, b"\0"))
        return found[0]

    def __setitem__(self, place: int, word: int, /) -> None:
        os.pwrite(self._fd, _NATIVE.pack(word), place * _WORD)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    __del__ = release


class SharedPage:
    """A view of the shared page; made on both sides from the same descriptor."""

    def __init__(self, fd: int, lanes: int, *, guarded: bool = False) -> None:
        """`guarded`: the other side is not to be trusted with the size of the memory."""
        self.lanes = lanes
        self._memory: mmap.mmap | None = None
        self._words: _Words
        if guarded and not _is_sealed(fd):
            self._words = _FileWords(fd)
        else:
            self._memory = mmap.mmap(fd, _size(lanes))
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

    def ask_to_end(self, slot: int, why: Why) -> None:
        """Supervisor: the next SIGTERM is meant for this slot only."""
        self._words[1] = WHYS.index(why)
        self._words[0] = slot

    def asked_to_end(self) -> tuple[int, Why]:
        """Child: which slot to end, and why; slot 0 is none."""
        return self._words[0], WHYS[self._words[1]]

    def turn(self, at_ns: int) -> None:
        """Child: the event loop comes round at this moment; 0: nothing runs in it."""
        self._words[3] = 0
        self._words[2] = at_ns

    def block(self, slot: int) -> None:
        """Child: the code of this slot keeps the event loop from coming round."""
        self._words[3] = slot

    def step(self, slot: int) -> None:
        """Child: the event loop goes into the code of this slot; 0: it comes out of it."""
        self._words[4] = slot

    def stepping(self) -> int:
        """Supervisor: in whose code the event loop is, or was when the child died; 0: in none."""
        return self._words[4]

    def loop(self) -> tuple[int, int]:
        """Supervisor: when the event loop last came round, and who keeps it since (0: unknown)."""
        return self._words[2], self._words[3]

    def close(self) -> None:
        self._words.release()
        if self._memory is not None:
            self._memory.close()


def _size(lanes: int) -> int:
    return (_LANES_AT + lanes * _LANE) * _WORD


def _is_sealed(fd: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return bool(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:
        return False
