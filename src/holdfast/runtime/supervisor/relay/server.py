"""The supervisor's side of the relay: children ask, the store answers.

Owns the transactions that code inside children has begun. Statements that stand alone and
reads are carried out one by one. A write is one transaction that waits, between its
statements, for what its child asks next; it is rolled back when the child dies, says so, or
does not go on within `PATIENCE`. Sends that stand alone, from all children, are committed
together: whatever has gathered while the last commit ran.

It runs no user code: children name statements of `store/sql` and give their parameters. What
they may name is on a list (`permissions`); the rest is refused, and logged.

A child that asks faster than it can be answered is not listened to meanwhile (`is_full`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from holdfast.core.errors import StoreError
from holdfast.runtime.supervisor.relay import permissions
from holdfast.runtime.supervisor.relay.permissions import NotAllowed
from holdfast.runtime.supervisor.relay.sends import RelaySends, just
from holdfast.runtime.supervisor.relay.turns import Turns
from holdfast.runtime.supervisor.state.blocked_rows import HeldRows
from holdfast.runtime.supervisor.state.child_handle import ProtocolError
from holdfast.runtime.wire.messages import Ask, Listen, Message, Rang, Reply
from holdfast.runtime.wire.relay_codec import Asked, decode_asked, refusal
from holdfast.store.op import Channel, Mode, Op, Statement, Steps
from holdfast.store.protocol import Store

log = logging.getLogger("holdfast.worker")

PATIENCE: Final = 2.0
"""Seconds that an open transaction waits for its child, in all: between its statements runs no
code but ours. For a child that let one lapse it is `_SHORT` of that: others wait for the locks."""
_SHORT: Final = 0.1
MOST_QUESTIONS: Final = 4_096
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of one child, unanswered."""
THREADS: Final = 2
_MOST_LOGGED: Final = 20


class Asker(Protocol):
    """A child, as far as answering it goes."""

    def say(self, *messages: Message) -> None: ...
    def holds(self, key: object, token: object) -> bool: ...


class _Owed:
    """What one child has asked and not been told; answers are counted as they go out."""

    def __init__(self, child: Asker) -> None:
        self._child = child
        self.holds = child.holds
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self.name = getattr(child, "name", "a child")
        self.has_lapsed = False
        """Whether it has let a transaction lie open for too long."""
        self.refused: set[str] = set()
        """What it was refused, and that has been logged."""

    def asked(self, ticket: int, size: int) -> None:
        with self._lock:
            if ticket in self._sizes:
                raise ProtocolError(f"asked twice under ticket {ticket}")
            self._sizes[ticket] = size
            self._bytes += size

    def say(self, *messages: Message) -> None:
        """Answer."""
        with self._lock:
            for message in messages:
                if isinstance(message, Reply):
                    self._bytes -= self._sizes.pop(message.ticket, 0)
        self._child.say(*messages)

    @property
    def is_full(self) -> bool:
        return len(self._sizes) > MOST_QUESTIONS or self._bytes > MOST_BYTES


class _Undone(Exception):
    """Rolls back a transaction that its child does not want any more."""


class RelayServer:
    """`asked`, `listens` and `gone` are called by one thread and return at once."""

    def __init__(
        self,
        store: Store,
        *,
        follow_endings: Callable[[bool], None],
        threads: int = THREADS,
        patience: float = PATIENCE,
        held_rows: HeldRows | None = None,
    ) -> None:
        self._store = store
        self._patience = patience
        self._turns = Turns(threads)
        self._sends = RelaySends(store, answer_of=self._failed, held_rows=held_rows)
        self._open: dict[tuple[_Owed, int], SimpleQueue[Ask | None]] = {}
        self._waiting = _Waiting(follow_endings)
        self._owed: dict[Asker, _Owed] = {}

    def is_full(self, child: Asker) -> bool:
        """Whether a child is to wait for answers before it asks more."""
        owed = self._owed.get(child)
        return owed is not None and owed.is_full

    def asked(self, child: Asker, question: Ask, size: int = 0) -> None:
        """A child asks one step of an operation, in a message of this size."""
        owed = self._owed.get(child)
        if owed is None:
            owed = self._owed[child] = _Owed(child)
        waiting = self._open.get((owed, question.ticket))
        if waiting is not None:
            if not question.undo:
                owed.asked(question.ticket, size)
            waiting.put(question)
            return
        try:
            mode = Mode(question.mode)
            if question.end or (mode is Mode.WRITE and question.step):
                # Of a transaction that has failed already; the child has been told.
                return
            asked = decode_asked(question.statement)
            self._check(owed, asked)
        except (ValueError, StoreError) as error:
            owed.say(refusal(question.ticket, error))
            return
        owed.asked(question.ticket, size)
        if mode is Mode.WRITE:
            steps: SimpleQueue[Ask | None] = SimpleQueue()
            self._open[owed, question.ticket] = steps
            self._turns.give(owed, partial(self._transact, owed, question, asked, steps))
            return
        alone = mode is Mode.ALONE and question.step == 0
        if alone and isinstance(asked, Statement) and asked.name == "submit":
            self._sends.add(owed, question.ticket, asked)
        else:
            mode = Mode.ALONE if alone else Mode.READ
            self._turns.give(owed, partial(self._carry_out, owed, question, asked, mode))

    def listens(self, child: Asker, message: Listen) -> None:
        """A child wants to hear hints, or no longer."""
        self._waiting.change(child, message)

    def ended(self) -> None:
        """Some task has ended: tell those who wait for one (any thread)."""
        self._waiting.ring()

    def gone(self, child: Asker) -> None:
        """A child is dead: what it had begun is undone."""
        owed = self._owed.pop(child, None)
        for (other, _), waiting in list(self._open.items()):
            if other is owed:
                waiting.put(None)
        self._waiting.forget(child)

    def close(self) -> None:
        """Undo what is open, end the threads."""
        for waiting in list(self._open.values()):
            waiting.put(None)
        self._sends.close()
        self._turns.close()

    def _carry_out(self, child: _Owed, question: Ask, asked: Asked, mode: Mode) -> None:
        """Run what stands for itself."""

        def make() -> Op[Any]:
            return Op(just(asked), mode, question.name)

        try:
            answer = Reply(question.ticket, self._store.attempt(make))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who asked
            answer = self._failed(question.ticket, error)
        child.say(answer)

    def _transact(
        self, child: _Owed, question: Ask, asked: Asked, waiting: SimpleQueue[Ask | None]
    ) -> None:
        """Run a write whose statements come one after another."""
        patience = left = self._patience * (_SHORT if child.has_lapsed else 1.0)

        def steps() -> Steps[None]:
            nonlocal left
            wanted = asked
            while True:
                rows = yield wanted
                child.say(Reply(question.ticket, rows))
                asked_at = monotonic()
                try:
                    following = waiting.get(timeout=max(0.0, left))
                except Empty:
                    child.has_lapsed = True
                    raise StoreError(
                        f"{question.name} was rolled back: its process did not go on with the "
                        f"transaction within {patience:g} s"
                    ) from None
                left -= monotonic() - asked_at
                if following is None or following.undo:
                    raise _Undone
                if following.end:
                    return
                wanted = decode_asked(following.statement)
                self._check(child, wanted)

        try:
            self._store.run(Op(steps(), Mode.WRITE, question.name))
            answer = Reply(question.ticket, [])
        except _Undone:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who asked
            answer = self._failed(question.ticket, error)
        finally:
            del self._open[child, question.ticket]
        child.say(answer)

    def _check(self, child: _Owed, asked: Asked) -> None:
        try:
            permissions.check(asked, child.holds)
        except NotAllowed as error:
            what = str(error)
            if what not in child.refused and len(child.refused) < _MOST_LOGGED:
                child.refused.add(what)
                log.warning("refused: %s (asked by %s)", what, child.name)
            raise StoreError(what) from None

    def _failed(self, ticket: int, error: Exception) -> Reply:
        if not isinstance(error, StoreError):
            log.debug("a child's question failed", exc_info=error)
        return refusal(ticket, error)


class _Waiting:
    """The children whose code waits for ends of tasks."""

    def __init__(self, follow: Callable[[bool], None]) -> None:
        self._follow = follow
        self._lock = threading.Lock()
        self._children: set[Asker] = set()

    def change(self, child: Asker, message: Listen) -> None:
        if message.channel != Channel.DONE.value:
            # Whatever else happens is not for children to hear; who listens may as well poll.
            return
        with self._lock:
            before = bool(self._children)
            if message.wanted:
                self._children.add(child)
            else:
                self._children.discard(child)
            after = bool(self._children)
        if before is not after:
            self._follow(after)

    def forget(self, child: Asker) -> None:
        self.change(child, Listen(Channel.DONE.value, wanted=False))

    def ring(self) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            child.say(Rang(Channel.DONE.value))
