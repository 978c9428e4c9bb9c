"""One subscription to hints, and how long it sleeps.

Owns the waiting end of the doorbell. A ring ends a wait at once; a ring may be lost,
so a wait also looks every tenth of a second whether anyone has committed
(`PRAGMA data_version`). That is the truth, and how commits are noticed that ring no
bell: those of a caller's own transaction, or of another program.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable, Collection
from time import monotonic
from types import TracebackType
from typing import Self

from holdfast.core.errors import StoreError
from holdfast.store.op import Channel
from holdfast.store.sqlite import fork

ANYTHING = ""
"""Heard when it is not known what happened."""

_LOOK_SECONDS = 0.1
_WAKE = b"\0"
_LONGEST = 4096
# A socket takes this many datagrams by default and then refuses more, silently for us.
_QUEUE = 10


class Listener:
    """Hears rings at one socket; `mouth` is how to ring it from this process."""

    def __init__(
        self,
        ear: socket.socket,
        mouth: Callable[[bytes], None],
        data_version: Callable[[], object],
        address: str | None,
        channels: Collection[Channel],
    ) -> None:
        self.channels = frozenset(channels)
        self._ear = ear
        self._mouth = mouth
        self._data_version = data_version
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._selector.register(ear, selectors.EVENT_READ)
        self._version = data_version()
        self._closed = False
        fork.join(self)

    def fileno(self) -> int:
        """Readable when something was heard; only a hint, like all of this."""
        return self._ear.fileno()

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep until a hint or the timeout; what was heard, empty after a timeout."""
        deadline = monotonic() + timeout
        try:
            while not self._closed:
                left = deadline - monotonic()
                if self._selector.select(max(0.0, min(left, _LOOK_SECONDS))):
                    heard = self._drain()
                    if heard is not None:
                        return heard
                elif self._has_changed():
                    return frozenset((ANYTHING,))
                elif left <= 0:
                    break
        except (OSError, ValueError):
            # Closed by another thread, between our look at `_closed` and the wait.
            if not self._closed:
                raise
        return frozenset()

    def wake(self) -> None:
        """End a `wait` of another thread now."""
        self.ring(_WAKE)

    def ring(self, payload: bytes) -> None:
        """Ring from this process. Best effort."""
        if not self._closed:
            try:
                self._mouth(payload)
            except OSError:
                pass

    def close(self) -> None:
        if self._closed:
            return
        self.wake()
        self._closed = True
        self._selector.close()
        self._ear.close()
        if self._address is not None:
            remove(self._address)

    def before_fork(self) -> None:
        """Nothing: a socket may be open on both sides for a moment."""

    def after_fork(self, *, in_child: bool) -> None:
        if in_child and not self._closed:
            # The parent listens on; a second holder would only keep its socket alive for ever.
            self._closed = True
            self._selector.close()
            self._ear.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _drain(self) -> frozenset[str] | None:
        """All that has arrived; None if it was nothing after all."""
        heard: set[str] = set()
        count = 0
        while True:
            try:
                payload = self._ear.recv(_LONGEST)
            except (BlockingIOError, OSError):
                break
            count += 1
            if payload != _WAKE:
                heard.update(payload.decode(errors="replace").split("\n"))
        if count >= _QUEUE:
            heard.add(ANYTHING)
        return frozenset(heard) if count else None

    def _has_changed(self) -> bool:
        try:
            version = self._data_version()
        except StoreError:
            # Whoever waits will ask the store next, and hear what is wrong from it.
            return False
        changed = version != self._version
        self._version = version
        return changed


def remove(address: str) -> None:
    """Remove the socket of one who listens no more."""
    try:
        os.unlink(address)  # noqa: PTH108 - called from the ringing end, for every dead listener
    except OSError:
        pass
