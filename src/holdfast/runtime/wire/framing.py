"""Messages on a socket: a four-byte length, then msgpack; and markers in an output pipe."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.runtime.wire.messages import Message

_LENGTH = struct.Struct("!I")
_SLOT = struct.Struct("!Q")
MAX_FRAME = 256 * 1024 * 1024
"""Larger than any message; a length beyond it is garbage."""


def new_nonce() -> bytes:
    """What begins every marker of one child.

    Its first byte is none that text ends with: what might be the beginning of a marker is kept
    back until more comes.
    """
    return b"\0" + os.urandom(15)


def marker(nonce: bytes, slot: int) -> bytes:
    """What a process child writes into its output pipe before the output of a slot.

    Slot 0: what follows belongs to no task whose output is kept.
    """
    return nonce + _SLOT.pack(slot)


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
        size = len(data)
        if data.count(nonce) * width == size and data.startswith(nonce, size - width):
            # Markers only, the last of them whole: short tasks that print nothing come by the
            # thousand.
            (self._slot,) = _SLOT.unpack_from(data, size - _SLOT.size)
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


_encode = msgspec.msgpack.Encoder().encode


def frame(message: Message) -> bytes:
    """A message, ready to be sent."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


class Reader:
    """Puts frames together again from what a socket gives."""

    def __init__(self, expected: Any, *, largest: int = MAX_FRAME) -> None:
        self._decode = msgspec.msgpack.Decoder(expected).decode
        self.largest = largest
        self.size = 0
        """Of the last message, in bytes."""
        self._buffer = bytearray()

    @property
    def is_torn(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now."""
        buffer = self._buffer
        buffer += data
        start, end = 0, len(buffer)
        view = memoryview(buffer)
        try:
            while end - start >= 4:
                (length,) = _LENGTH.unpack_from(buffer, start)
                if length > self.largest:
                    raise ValueError(f"a frame of {length} bytes: the stream is broken")
                if end - start - 4 < length:
                    break
                self.size = length
                yield self._decode(view[start + 4 : start + 4 + length])
                start += 4 + length
        finally:
            view.release()
            del buffer[:start]


def send(sock: socket.socket, *messages: Message) -> None:
    """Send on a blocking socket."""
    sock.sendall(b"".join(map(frame, messages)))
