"""The steps of coroutines: each time that an event loop goes into a task's code and comes out.

Owns what has to be so at every one of them. The shared page says whose code it is, so that, if it
takes the process down, nobody else is charged with that. The loop that runs is known as the running
one, though code that runs a loop of its own inside of it makes asyncio forget that. A loop that the
code has broken, by closing what it waits at, ends with its process at once, before the next
coroutine could be taken for the one that did it. And a process that the code has forked ends here:
behind it are the coroutines of others.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import events
from collections.abc import Coroutine, Generator
from fcntl import F_GETFD, fcntl
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

from holdfast.runtime.child.seat import Seat
from holdfast.runtime.wire.messages import EXIT_BROKEN

T = TypeVar("T")

_running_loop: Final = events._get_running_loop


class Steps:
    """What the steps of one loop have in common."""

    def __init__(self, seat: Seat, loop: asyncio.AbstractEventLoop) -> None:
        self._seat = seat
        self._link = seat.link
        self._loop = loop
        self.begin = seat.page.step
        """The loop goes into the code of this slot."""
        self.last = 0
        """Whose code the loop was in last."""
        selector = getattr(loop, "_selector", None)
        # Another kind of loop does not say what it waits at; `event_loop.run` notices later.
        self._waits_at: int = self._link.descriptor if selector is None else selector.fileno()

    def end(self, slot: int) -> None:
        """It has come out again."""
        self.check()
        self.last = slot
        self.begin(0)

    def check(self) -> None:
        """See that this is still the process, and the loop, that it was."""
        if self._link.severed:
            self._seat.vanish()
        try:
            fcntl(self._waits_at, F_GETFD)
        except OSError:
            self.broken()
        if _running_loop() is not self._loop:
            events._set_running_loop(self._loop)

    def broken(self) -> NoReturn:
        """End a process whose loop cannot go on; the page says whose code did that."""
        self._seat.streams.flush()
        os._exit(EXIT_BROKEN)


class Stepped(Coroutine[Any, Any, T]):
    """A coroutine that says when it is stepped into; anything else about it is as it was."""

    __slots__ = ("_slot", "_steps", "inner")

    def __init__(
        self,
        inner: Coroutine[Any, Any, T] | Generator[Any, None, T],
        slot: int,
        steps: Steps,
    ) -> None:
        self.inner: Any = inner
        self._slot = slot
        self._steps = steps

    def send(self, value: Any, /) -> Any:
        self._steps.begin(self._slot)
        try:
            return self.inner.send(value)
        finally:
            self._steps.end(self._slot)

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        self._steps.begin(self._slot)
        try:
            if value is None and trace is None:
                return self.inner.throw(kind)
            return self.inner.throw(kind, value, trace)
        finally:
            self._steps.end(self._slot)

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Generator[Any, Any, T]:
        found: Generator[Any, Any, T] = self.inner.__await__()
        return found

    def __getattr__(self, name: str) -> Any:
        # Frames and names, for those that show where it is.
        return getattr(self.inner, name)
