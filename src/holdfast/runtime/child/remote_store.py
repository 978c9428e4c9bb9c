"""`RemoteStore`: the store as a child has it, at the other end of its socket.

Owns the child's side of the relay. An operation's generator runs here, in the code's own
thread; each statement it yields is carried out by the supervisor, in one transaction that
is committed when the generator has ended. So `send`, `get` and control work inside a task
as they do outside, and no child holds a connection.

Failure: an operation that raises here is undone there. A supervisor that is gone takes this
process with it, so no caller waits forever.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError, StoreError, StoreUnavailable
from holdfast.core.pause import growing
from holdfast.runtime.child.context import current_slot
from holdfast.runtime.wire.messages import Ask, Listen, Rang, Reply
from holdfast.runtime.wire.relay_codec import Asked, decode_rows, encode_asked, rebuild
from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Hint, Mode, Op, Statement, Steps, alone, repeat
from holdfast.store.protocol import Listener
from holdfast.store.settings import Engine, StoreSettings

T = TypeVar("T")


class RemoteStore:
    """A `Store` that asks the supervisor. Any thread may use it."""

    def __init__(self, send: Callable[..., bool], settings: StoreSettings) -> None:
        """`send` says messages to the supervisor; False if this process cannot any more."""
        self._send = send
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
        ticket = next(self._tickets)
        answers = self._waiting[ticket] = SimpleQueue()
        slot = current_slot()
        numbers = count()
        steps = iter(op)
        # Whether it would have to be undone over there if it ended now.
        is_open = False

        def question(asked: Asked | None = None, *, end: bool = False, undo: bool = False) -> Ask:
            statement = None if asked is None else encode_asked(asked)
            return Ask(ticket, slot, next(numbers), op.mode.value, op.name, statement, end, undo)

        def put(ask: Ask) -> Any:
            nonlocal is_open
            # Only a write is one transaction over there; the rest stands for itself.
            is_open = op.mode is Mode.WRITE
            if not self._send(ask):
                raise StoreError(
                    "this process was forked from a task's and cannot reach the store through its "
                    "worker: make a new Holdfast here, or send from the task itself"
                )
            reply = answers.get()
            if reply.error is not None:
                is_open = False
                raise rebuild(reply)
            return reply.rows

        answer: Any = None
        try:
            while True:
                asked = steps.send(answer)
                answer = decode_rows(asked, put(question(asked)))
        except StopIteration as end:
            if is_open:
                put(question(end=True))
                is_open = False
            value: T = end.value
            return value
        finally:
            steps.close()
            del self._waiting[ticket]
            if is_open:
                # The generator raised, or the code was ended while it waited.
                self._send(question(end=True, undo=True))

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        """Run an operation, created again after a deadlock or serialisation conflict.

        The supervisor does not wait for a row that another transaction holds: it says so,
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
            self._send(*(Listen(channel.value, True) for channel in news))
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
            self._send(*(Listen(channel.value, False) for channel in over))

    def _heard(self) -> set[Channel]:
        return {channel for listener in self._listeners for channel in listener.channels}


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
