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
