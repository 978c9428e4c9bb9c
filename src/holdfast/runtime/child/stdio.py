"""What user code prints: stdout and stderr of the template and its children.

Owns the two stream objects. They are put in place before the application is imported, so
that a logging handler made at import writes to them too. By themselves they write whole
lines to their descriptor. In a child that runs several tasks at a time they ask first whose
code is writing (`route`), and that task's output goes to the supervisor as such (`TaskOutput`).
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import threading
from collections.abc import Callable

from holdfast.core.identity import running
from holdfast.core.json_lines import JsonLines
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.child.task_fields import TaskFields
from holdfast.runtime.wire.messages import Message, Said

_LINE_BUFFERED = 1
_HOLD = 8192
"""Longest piece without a line's end that is kept back."""
_PIECE = 256 * 1024


class StandardStream(io.BufferedIOBase):
    """The bytes below `sys.stdout` or `sys.stderr`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.held = bytearray()
        """What is not written yet; nearly always nothing is."""
        self._lock = threading.RLock()
        self.route: Callable[[], TaskOutput | None] | None = None

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
        output = None if self.route is None else self.route()
        if output is not None:
            output.say(piece)
            return len(piece)
        with self._lock:
            self.held += piece
            if b"\n" in piece or len(self.held) > _HOLD:
                self.flush()
        return len(piece)

    def flush(self) -> None:
        if not self.held:
            return
        with self._lock:
            held = bytes(self.held)
            self.held.clear()
            while held:
                try:
                    held = held[os.write(self._descriptor, held) :]
                except OSError:
                    # Nobody listens any more, or a task closed the descriptor.
                    return

    def after_fork(self) -> None:
        """Another thread may have been writing when this process was forked."""
        self._lock = threading.RLock()
        self.held.clear()


class StandardStreams:
    """Both streams of this process."""

    def __init__(self) -> None:
        self.out = StandardStream(1)
        self.err = StandardStream(2)
        sys.stdout = _text(self.out)
        sys.stderr = _text(self.err)
        os.register_at_fork(after_in_child=self.out.after_fork)
        os.register_at_fork(after_in_child=self.err.after_fork)

    def flush(self) -> None:
        """Write what is held back."""
        self.out.flush()
        self.err.flush()

    def route(self) -> None:
        """Ask from now on whose code is writing."""
        self.out.route = self.err.route = current_sink


class TaskOutput:
    """What one run says. Any thread that has its context may say something."""

    def __init__(self, send: Callable[[Message], object], slot: int) -> None:
        self._send_message = send
        self._slot = slot
        self._held = bytearray()
        self._lock = threading.Lock()

    def say(self, data: bytes) -> None:
        with self._lock:
            self._held += data
            if b"\n" in data or len(self._held) > _HOLD:
                self._send()

    def settle(self) -> None:
        """The run has ended: send what is left."""
        with self._lock:
            if self._held:
                self._send()

    def _send(self) -> None:
        held = bytes(self._held)
        self._held.clear()
        for start in range(0, len(held), _PIECE):
            self._send_message(Said(self._slot, held[start : start + _PIECE]))


def current_sink() -> TaskOutput | None:
    """Where the output of the running code goes; None: to the process's own output."""
    context = running.get()
    return context.output if isinstance(context, TaskContext) else None


def _text(stream: StandardStream) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        stream,  # type: ignore[arg-type]
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        write_through=True,
    )


def line_buffer_c() -> None:
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
    if os.environ.get("HOLDFAST_LOG_FORMAT", "").lower() == "json":
        handler.setFormatter(JsonLines())
        handler.addFilter(TaskFields())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
