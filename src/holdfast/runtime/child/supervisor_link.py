"""A child's end of its socket.

Owns sending, hearing, and what becomes of a child that can do neither: it exits. User code
may close any descriptor and open another under the same number, so before outcomes are sent
the socket is asked whether it is still the same one.

A frame must leave whole. An exception that a signal raises in the middle of a send would
tear it, so while the main thread is sending (`busy`) such an exception is postponed.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from holdfast.runtime.wire.framing import Reader, frame
from holdfast.runtime.wire.messages import EXIT_BROKEN, EXIT_CUT_OFF, Message, ToChild

log = logging.getLogger("holdfast.worker")

_CHUNK = 64 * 1024


class SupervisorLink:
    """The socket to the supervisor. Any thread may send; one thread hears."""

    def __init__(self, descriptor: int) -> None:
        self._sock = socket.socket(fileno=descriptor)
        self.descriptor = descriptor
        self._identity = identity(descriptor)
        self._lock = threading.Lock()
        self._main = threading.get_ident()
        self.busy = False
        """Whether the main thread is inside a send."""
        self.postponed: BaseException | None = None
        """What to raise in the main thread when its send is over."""
        self.severed = False
        """Whether this process was forked from the child, which alone may speak."""
        os.register_at_fork(after_in_child=self._sever)

    def send(self, *messages: Message) -> bool:
        """Say it; False in a process that was forked from this one."""
        if self.severed:
            return False
        data = b"".join(map(frame, messages))
        main = threading.get_ident() == self._main
        with self._lock:
            if main:
                self.busy = True
            try:
                self._sock.sendall(data)
            except OSError:
                cut_off()
            finally:
                if main:
                    self.busy = False
        if main and self.postponed is not None:
            postponed, self.postponed = self.postponed, None
            raise postponed
        return True

    def check(self) -> None:
        """Exit if the socket is not what it was."""
        if identity(self.descriptor) != self._identity:
            cut_off()

    def hear(self, heard: Callable[[Any], None]) -> None:
        """Pass on what the supervisor says, from a thread of its own, for ever."""
        threading.Thread(
            target=self._hear, args=(heard,), name="holdfast-link", daemon=True
        ).start()

    def _hear(self, heard: Callable[[Any], None]) -> None:
        reader = Reader(ToChild)
        buffer = bytearray(_CHUNK)
        view = memoryview(buffer)
        try:
            while True:
                try:
                    size = self._sock.recv_into(buffer)
                except OSError:
                    cut_off()
                if not size:
                    cut_off()
                for message in reader.feed(view[:size]):  # type: ignore[arg-type]
                    heard(message)
        except BaseException:
            log.exception("a child of this worker failed")
            os._exit(EXIT_BROKEN)

    def _sever(self) -> None:
        self.severed = True
        self._lock = threading.Lock()
        self._sock.close()


def identity(descriptor: int | str) -> tuple[int, int] | None:
    """What stands behind a descriptor, or a path; None if nothing does."""
    try:
        found = os.stat(descriptor)  # noqa: PTH116 - nearly always a number
    except OSError:
        return None
    return found.st_dev, found.st_ino


def cut_off() -> NoReturn:
    """End this process: nobody can be told anything any more."""
    os._exit(EXIT_CUT_OFF)
