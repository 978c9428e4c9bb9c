"""What a task printed: the first half megabyte as it comes, the last when it ends.

Owns the bounds of a log. A task that prints without end costs one megabyte, and the gap in
between is marked; when memory is short (`scarce`) it costs far less. Splits what a process child
writes to its pipe into its tasks, by the markers (`wire.marker`) that the child puts before each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEAD = 512 * 1024
TAIL = 512 * 1024
SCARCE = 32 * 1024
_SLOT = struct.Struct("!Q")


class OutputLog:
    """The output of one attempt."""

    __slots__ = ("_cut", "_head_left", "_tail", "_waiting", "parts")

    def __init__(self) -> None:
        self.parts = 0
        self._head_left = HEAD
        self._waiting = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._waiting) + len(self._tail)

    def add(self, data: bytes | memoryview, *, scarce: bool = False) -> None:
        """More output."""
        most = SCARCE if scarce else TAIL
        if scarce and len(self._waiting) >= most:
            self._head_left = 0
        if self._head_left:
            self._waiting += data[: self._head_left]
            taken = min(len(data), self._head_left)
            self._head_left -= taken
            data = data[taken:]
        if data:
            self._tail += data
            over = len(self._tail) - most
            # Trimmed in large steps, so that a flood of short lines costs little.
            if over > most:
                del self._tail[:over]
                self._cut += over

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def live(self) -> bytes:
        """What can be shown now; each byte once."""
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    def rest(self) -> bytes:
        """What is left when the task has ended."""
        data = self.live()
        over = max(0, len(self._tail) - TAIL)
        cut = self._cut + over
        if cut:
            data += b"\n[... %d bytes left out ...]\n" % cut
        return data + bytes(self._tail[over:])


class Splitter:
    """Tells the tasks of one child's pipe apart."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._slot = 0
        self._carry = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Pieces of output with the slot each belongs to; 0 is nobody's."""
        data = self._carry + data
        self._carry = b""
        nonce, width = self._nonce, len(self._nonce) + _SLOT.size
        if data.count(nonce) * width == len(data):
            # Markers only: short tasks that print nothing come by the thousand.
            (self._slot,) = _SLOT.unpack_from(data, len(data) - _SLOT.size)
            return
        start = 0
        while True:
            found = data.find(nonce, start)
            if found < 0:
                keep = _overlap(data, start, nonce)
                end = len(data) - keep
                if end > start:
                    yield self._slot, data[start:end]
                self._carry = data[end:]
                return
            if found > start:
                yield self._slot, data[start:found]
            if found + width > len(data):
                self._carry = data[found:]
                return
            (self._slot,) = _SLOT.unpack_from(data, found + len(nonce))
            start = found + width


def _overlap(data: bytes, start: int, nonce: bytes) -> int:
    """How many bytes at the end may be the beginning of a marker."""
    for length in range(min(len(nonce) - 1, len(data) - start), 0, -1):
        if data.endswith(nonce[:length]):
            return length
    return 0
