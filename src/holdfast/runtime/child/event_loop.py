"""The event loop of an async child, as what many tasks share.

Owns that it goes on. Code in it may call `sys.exit` in a coroutine of its own, or `loop.stop()`:
the loop is run again, and nobody else notices. It may cancel every task it finds: then those are
told apart from tasks that cancelled themselves. And it may keep the loop to itself: then it is
named in the shared page (`LoopWatch`), so that its neighbours are not charged with that. A loop
that cannot go on, because code has closed what it waits at, ends with its process.

And owns what has to be so at every step of a coroutine, each time that the loop goes into a task's
code and comes out (`LoopSteps`). The shared page says whose code it is, so that, if it takes the
process down, nobody else is charged with that. The loop that runs is known as the running one,
though code that runs a loop of its own inside of it makes asyncio forget that. A loop that the code
has broken ends with its process at once, before the next coroutine could be taken for the one that
did it. And a process that the code has forked ends here: behind it are the coroutines of others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from asyncio import events
from collections.abc import Callable, Coroutine, Generator
from fcntl import F_GETFD, fcntl
from time import monotonic, monotonic_ns, sleep
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

from holdfast.runtime.child.child import Child
from holdfast.runtime.child.context import current_slot
from holdfast.runtime.wire.messages import EXIT_BROKEN
from holdfast.runtime.wire.shared_page import SharedPage

T = TypeVar("T")

_running_loop: Final = events._get_running_loop

log = logging.getLogger("holdfast.worker")

TURN: Final = 0.05
"""Seconds between two notes that the loop comes round, while tasks run in it."""
_LAG: Final = 0.2
_LOGGED_EVERY: Final = 1.0
_MOST_IN_VAIN: Final = 100
"""How many times in a row a loop may end before it has come into the code of any task."""


class LoopSteps:
    """What the steps of one loop have in common."""

    def __init__(self, child: Child, loop: asyncio.AbstractEventLoop) -> None:
        self._child = child
        self._link = child.link
        self._loop = loop
        self.begin = child.page.step
        """The loop goes into the code of this slot."""
        self.last = 0
        """Whose code the loop was in last."""
        selector = getattr(loop, "_selector", None)
        # Another kind of loop does not say what it waits at; `run` notices later.
        self._waits_at: int = self._link.descriptor if selector is None else selector.fileno()

    def end(self, slot: int) -> None:
        """It has come out again."""
        self.check()
        self.last = slot
        self.begin(0)

    def check(self) -> None:
        """See that this is still the process, and the loop, that it was."""
        if self._link.in_fork:
            self._child.exit_fork()
        try:
            fcntl(self._waits_at, F_GETFD)
        except OSError:
            self.broken()
        if _running_loop() is not self._loop:
            events._set_running_loop(self._loop)

    def broken(self) -> NoReturn:
        """End a process whose loop cannot go on; the page says whose code did that."""
        self._child.streams.flush()
        os._exit(EXIT_BROKEN)


class Stepped(Coroutine[Any, Any, T]):
    """A coroutine that says when it is stepped into; anything else about it is as it was."""

    __slots__ = ("_slot", "_steps", "inner")

    def __init__(
        self,
        inner: Coroutine[Any, Any, T] | Generator[Any, None, T],
        slot: int,
        steps: LoopSteps,
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


class OwnedTask(asyncio.Task[T]):
    """A task of the loop that knows to which run of a Holdfast task it belongs."""

    slot: int = 0
    """Of the run; 0: of none."""
    owner: OwnedTask[Any] | None = None
    """The run itself, of what it has started."""
    cancelled_by_neighbour: bool = False
    """Of a run: whether another one has cancelled it, or a part of it."""

    def get_coro(self) -> Any:
        """The coroutine that the code made."""
        found = super().get_coro()
        return found.inner if isinstance(found, Stepped) else found

    def cancel(self, msg: Any | None = None) -> bool:
        """As ever, but it is noted if the caller belongs to another run."""
        if self.slot and current_slot() not in (0, self.slot):
            (self.owner or self).cancelled_by_neighbour = True
        return super().cancel(msg)


class TaskMaker:
    """Makes the tasks of one loop."""

    def __init__(self, steps: LoopSteps) -> None:
        self._steps = steps

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> asyncio.Task[T]:
        """A part of what makes it, if that belongs to a run."""
        creator = asyncio.current_task(loop)
        if not isinstance(creator, OwnedTask):
            return OwnedTask(coroutine, loop=loop, **options)
        task = self.make(loop, coroutine, creator.slot, **options)
        task.owner = creator.owner or creator
        return task

    def make(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        slot: int,
        **options: Any,
    ) -> OwnedTask[T]:
        """A task that belongs to a run."""
        stepped = Stepped(coroutine, slot, self._steps) if slot else coroutine
        task: OwnedTask[T] = OwnedTask(stepped, loop=loop, **options)
        task.slot = slot
        return task


def run(loop: asyncio.AbstractEventLoop, steps: LoopSteps, is_over: Callable[[], bool]) -> None:
    """Run a loop until it is over, however often code in it brings it to an end."""
    logged_at = 0.0
    last_slot = in_vain = 0
    while not is_over():
        ended: BaseException | None = None
        try:
            loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - what asyncio lets through ends no neighbour
            ended = error
        if not is_over() and monotonic() > logged_at + _LOGGED_EVERY:
            logged_at = monotonic()
            log.error(
                "code in a coroutine ended the event loop, which is not its own (%s): it goes on",
                "loop.stop()" if ended is None else type(ended).__qualname__,
                exc_info=ended,
            )
        if steps.last:
            last_slot, steps.last, in_vain = steps.last, 0, 0
        elif (in_vain := in_vain + 1) > _MOST_IN_VAIN and not is_over():
            steps.begin(last_slot)
            steps.broken()


class LoopWatch:
    """Notes in the shared page when the loop last came round, and whose code blocks it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        page: SharedPage,
        steps: LoopSteps,
        is_busy: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._steps = steps
        self._page = page
        self._is_busy = is_busy
        self._turns = False
        self._turned_at = 0.0
        self._busy = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="holdfast-loop-watch", daemon=True)

    def begin(self) -> None:
        """A task begins (in the loop)."""
        if not self._turns:
            self._turns = True
            self._turn()
            self._busy.set()
            if not self._thread.is_alive():
                self._thread.start()

    def _turn(self) -> None:
        # What calls outside of any task have done.
        self._steps.check()
        self._turns = self._is_busy()
        self._turned_at = monotonic()
        self._page.turn(monotonic_ns() if self._turns else 0)
        if self._turns:
            self._loop.call_later(TURN, self._turn)

    def _watch(self) -> None:
        while True:
            if not self._turns:
                self._busy.clear()
                self._busy.wait()
            sleep(2 * TURN)
            if self._turns and monotonic() > self._turned_at + _LAG:
                task = asyncio.current_task(self._loop)
                self._page.block(task.slot if isinstance(task, OwnedTask) else 0)
