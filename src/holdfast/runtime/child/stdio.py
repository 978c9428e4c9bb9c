"""What user code prints: stdout and stderr of the template and its children.

Owns the two stream objects. They are put in place before the application is imported, so
that a logging handler made at import writes to them too. By themselves they write whole
lines to their descriptor. In a child that runs several tasks at a time they ask first whose
code is speaking (`route`), and that task's output goes to the supervisor as such.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol

_LINE_BUFFERED = 1
_HOLD = 8192
"""Longest piece without a line's end that is kept back."""


class OutputSink(Protocol):
    """Where the words of one task go."""

    def say(self, data: bytes) -> None: ...


class StandardStream(io.BufferedIOBase):
    """The bytes below `sys.stdout` or `sys.stderr`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = bytearray()
        self._lock = threading.RLock()
        self.route: Callable[[], OutputSink | None] | None = None

    @property
    def closed(self) -> bool:
        # A task that closes its stdout must not close its neighbours'.
        return False

    def close(self) -> None:
        self.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: object, /) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        output_sink = None if self.route is None else self.route()
        if output_sink is not None:
            output_sink.say(piece)
            return len(piece)
        with self._lock:
            self._held += piece
            if b"\n" in piece or len(self._held) > _HOLD:
                self.flush()
        return len(piece)

    def flush(self) -> None:
        if not self._held:
            return
        with self._lock:
            held = bytes(self._held)
            self._held.clear()
            while held:
                try:
                    held = held[os.write(self._descriptor, held) :]
                except OSError:
                    # Nobody listens any more, or a task closed the descriptor.
                    return

    def after_fork(self) -> None:
        """Another thread may have been speaking when this process was forked."""
        self._lock = threading.RLock()
        self._held.clear()


class StandardStreams:
    """Both streams of this process."""

    def __init__(self) -> None:
        self.out = StandardStream(1)
        self.err = StandardStream(2)
        sys.stdout = _text(self.out)
        sys.stderr = _text(self.err)
        os.register_at_fork(after_in_child=self._after_fork)

    def flush(self) -> None:
        """Write what is held back; nearly always nothing is."""
        self.out.flush()
        self.err.flush()

    def route(self, find: Callable[[], OutputSink | None]) -> None:
        """Ask from now on whose code is speaking."""
        self.out.route = self.err.route = find

    def _after_fork(self) -> None:
        self.out.after_fork()
        self.err.after_fork()


def _text(stream: StandardStream) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        stream,  # type: ignore[arg-type]
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        write_through=True,
    )


def hurry_c() -> None:
    """Have C code write its lines to stdout at once, too, though a pipe is no terminal.

    Otherwise they would come out with a later task's, or never.
    """
    try:
        library = ctypes.CDLL(None)
        stream = ctypes.c_void_p.in_dll(library, "stdout")
        library.setvbuf(stream, None, _LINE_BUFFERED, 0)
    except (AttributeError, ValueError):
        # A C library that calls it otherwise.
        pass


def log_to_stderr() -> None:
    """Let log records of INFO and above be heard, if the application has not decided."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
