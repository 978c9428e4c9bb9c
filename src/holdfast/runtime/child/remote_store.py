"""`RemoteStore`: the store as a child has it, at the other end of its socket.

Owns the child's side of the relay. An operation's generator runs here, in the code's own
thread; each statement it yields is carried out by the supervisor, in one transaction that
is committed when the generator has ended. So `send`, `get` and control work inside a task
as they do outside, and no child holds a connection.

Failure: an operation that raises here is undone there. A supervisor that is gone takes this
process with it, so nobody waits for ever.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.core.identity import running
from holdfast.core.pause import growing
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.wire.messages import Ask, Listen, Message, Rang, Reply
from holdfast.runtime.wire.relay_codec import Asked, decode_rows, encode_asked, rebuild
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Hint, Mode, Op, Statement, Steps, alone, repeat
from holdfast.store.protocol import Listener
from holdfast.store.settings import Engine, StoreSettings

T = TypeVar("T")


class Line(Protocol):
    """The way to the supervisor."""

    def send(self, *messages: Message) -> bool:
        """Say it; False if this process has no line to the supervisor any more."""
        ...


class RemoteStore:
    """A `Store` that asks the supervisor. Any thread may use it."""

    def __init__(self, line: Line, settings: StoreSettings) -> None:
        self._line = line
        self._settings = settings
        self._tickets = count(1)
        self._waiting: dict[int, SimpleQueue[Reply]] = {}
        self._lock = threading.Lock()
        self._listeners: list[RemoteListener] = []

    @property
    def engine(self) -> Engine:
        return self._settings.engine

    @property
    def settings(self) -> StoreSettings:
        return self._settings

    def run(self, op: Op[T]) -> T:
        """Run one operation in one transaction of the supervisor's."""
        return _RemoteOp(self, op).run()

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        """Run an operation, made anew after a deadlock or serialisation conflict.

        The supervisor does not wait for a row that somebody's transaction holds: it says so,
        and the wait, for as long as the app's `lock_timeout`, is here.
        """
        held = 0
        deadline = time.monotonic() + self._settings.lock_timeout
        while True:
            try:
                return repeat(self.run, make, tries)
            except StoreUnavailable as error:
                if not error.locked or time.monotonic() >= deadline:
                    raise
            held += 1
            pause = growing(0.05, held, 1.0)
            time.sleep(random.uniform(pause / 2, pause))

    def hint(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        """Wake listeners now. Best effort; never raises."""
        try:
            self.run(_notify(channel, queues))
        except HoldfastError:
            pass

    def listen(self, *channels: Channel) -> RemoteListener:
        """Hear hints on these channels from now on."""
        listener = RemoteListener(self, frozenset(channels))
        with self._lock:
            news = set(channels) - self._heard()
            self._listeners.append(listener)
            self._line.send(*(Listen(channel.value, True) for channel in news))
        return listener

    def tend(self) -> None:
        """Nothing: the supervisor does it."""

    def with_schema(self, work: Callable[[SchemaConnection], T], *, lock: bool) -> T:
        raise StoreError("a task cannot change the schema: use `holdfast db migrate`")

    def close(self) -> None:
        """There is nothing to close."""

    # What the child's own machinery calls.

    def answered(self, answer: Reply) -> None:
        """The supervisor has answered."""
        waiting = self._waiting.get(answer.ticket)
        if waiting is not None:
            waiting.put(answer)

    def rang(self, message: Rang) -> None:
        """The supervisor passes on a hint."""
        for listener in list(self._listeners):
            if message.channel in listener.channels:
                listener.wake("")

    def forget(self, listener: RemoteListener) -> None:
        """A listener is closed."""
        with self._lock:
            if listener not in self._listeners:
                return
            self._listeners.remove(listener)
            over = listener.channels - self._heard()
            self._line.send(*(Listen(channel.value, False) for channel in over))

    def _heard(self) -> set[Channel]:
        return {channel for listener in self._listeners for channel in listener.channels}

    def expect(self) -> tuple[int, SimpleQueue[Reply]]:
        """A new ticket, and where its answers arrive; until `expect_no_more`."""
        ticket = next(self._tickets)
        answers = self._waiting[ticket] = SimpleQueue()
        return ticket, answers

    def expect_no_more(self, ticket: int) -> None:
        del self._waiting[ticket]

    def ask(self, question: Ask) -> bool:
        """Say it to the supervisor; False if this process cannot."""
        return self._line.send(question)


class _RemoteOp(Generic[T]):
    """One operation on its way: what was asked, and whether it must still be undone."""

    def __init__(self, store: RemoteStore, op: Op[T]) -> None:
        self._store = store
        self._op = op
        self._steps = iter(op)
        self._ticket, self._answers = store.expect()
        context = running.get()
        self._slot = context.slot if isinstance(context, TaskContext) else 0
        self._asked = 0
        self._open = False

    def run(self) -> T:
        answer: Any = None
        try:
            while True:
                asked = self._steps.send(answer)
                answer = decode_rows(asked, self._put(self._question(asked)))
        except StopIteration as end:
            if self._open:
                self._put(self._question(end=True))
                self._open = False
            value: T = end.value
            return value
        finally:
            self._steps.close()
            self._store.expect_no_more(self._ticket)
            if self._open:
                # The generator raised, or the code was ended while it waited.
                self._store.ask(self._question(end=True, undo=True))

    def _question(
        self, asked: Asked | None = None, *, end: bool = False, undo: bool = False
    ) -> Ask:
        return Ask(
            self._ticket,
            self._slot,
            self._asked,
            self._op.mode.value,
            self._op.name,
            None if asked is None else encode_asked(asked),
            end,
            undo,
        )

    def _put(self, question: Ask) -> Any:
        # Only a write is one transaction over there; the rest stands for itself.
        self._open = self._op.mode is Mode.WRITE
        self._asked += 1
        if not self._store.ask(question):
            raise StoreError(
                "this process was forked from a task's and cannot reach the store through its "
                "worker: make a new Holdfast here, or send from the task itself"
            )
        answer = self._answers.get()
        if answer.error is not None:
            self._open = False
            raise rebuild(answer)
        return answer.rows


class RemoteListener(Listener):
    """One subscription to hints, which the supervisor passes on."""

    def __init__(self, store: RemoteStore, channels: frozenset[Channel]) -> None:
        self.channels = channels
        self._store = store
        self._heard: set[str] = set()
        self._changed = threading.Condition()
        self._woken = False

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep until a hint or the timeout; what was heard, empty after a timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken, timeout)
            heard = frozenset(self._heard)
            self._heard.clear()
            self._woken = False
        return heard

    def wake(self, *heard: str) -> None:
        """End a `wait` of another thread now."""
        with self._changed:
            self._woken = True
            self._heard.update(heard)
            self._changed.notify_all()

    def close(self) -> None:
        self._store.forget(self)


@alone
def _notify(channel: Channel, queues: Sequence[str]) -> Steps[None]:
    yield Statement("notify", hint=Hint(channel, tuple(queues) or ("",)))
