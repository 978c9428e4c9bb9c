"""An actor: a thread that runs operations and stops before each of their steps.

Owns the stopping. A step is one statement, or the commit that ends a transaction; what the
engine does in between (BEGIN, the writer's turn) belongs to the step that needs it. The engine
itself is the real one, on a connection of the actor's own: only the generator of the operation
is wrapped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from holdfast.store.op import Mode, Op, Statement, Steps
from holdfast.store.protocol import Store
from tests.support.verbs import MovableClock, Verbs

T = TypeVar("T")

PATIENCE_S = 30.0


class Hand(Verbs):
    """What a script has in its hands: the verbs, each of which stops before its steps."""

    def __init__(self, actor: Actor, clock: MovableClock) -> None:
        self._actor = actor
        self.clock = clock

    def run(self, op: Op[T]) -> T:
        return self._actor.run(lambda: op)

    def attempt(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation, made anew after a deadlock, as the product's callers do."""
        return self._actor.run(make)

    def sql(self, text: str, **params: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError("a script has the product's verbs only")


Script: TypeAlias = Callable[[Hand], Any]


class State(Enum):
    """Where an actor is."""

    STANDING = "before a step"
    GOING = "in a step"
    ENDED = "ended"


class Actor:
    """One party to a race."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: MovableClock,
        script: Script,
        changed: threading.Condition,
    ) -> None:
        self.name = name
        self.next = ""
        """The step it stands before."""
        self.state = State.GOING
        self.in_transaction = False
        """Whether it is inside a transaction that writes."""
        self.wants_turn = False
        """Whether it is on the way into one (SQLite)."""
        self.result: Any = None
        self.error: BaseException | None = None
        self._store = store
        self._hand = Hand(self, clock)
        self._script = script
        self._changed = changed
        self._may_go = False
        self._abandoned = False
        self._thread = threading.Thread(target=self._play, name=name, daemon=True)
        self._thread.start()

    def go(self) -> None:
        """Let it take the step it stands before."""
        with self._changed:
            assert self.state is State.STANDING, f"{self.name} is not before a step"
            self.state = State.GOING
            self._may_go = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Let it end without any further step; what it has not committed is rolled back."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()
        self._thread.join(PATIENCE_S)

    def _play(self) -> None:
        try:
            self.result = self._script(self._hand)
        except BaseException as error:  # noqa: BLE001 - handed to the test, whatever it is
            self.error = error
        with self._changed:
            self.state = State.ENDED
            self._changed.notify_all()

    def run(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation, stopping before each of its steps."""
        # SQLite takes the writer's turn before the first statement, so there the first stop
        # comes before that. (If the first step is all that is written, it is its own commit.)
        early = self._store.engine == "sqlite"

        def stepped() -> Op[T]:
            op = make()
            if early:
                self._stop(op.name)
                self.wants_turn = op.mode is not Mode.READ
            return Op(self._stepped(iter(op), op.name, op.mode, not early), op.mode, op.name)

        try:
            return self._store.attempt(stepped)
        finally:
            with self._changed:
                self.in_transaction = self.wants_turn = False

    def _stepped(self, steps: Steps[T], name: str, mode: Mode, stop: bool) -> Steps[T]:
        answer: Any = None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                if mode is Mode.WRITE:
                    self._stop(f"{name} commit")
                value: T = end.value
                return value
            if stop:
                self._stop(asked.name if isinstance(asked, Statement) else name)
            stop = True
            with self._changed:
                self.wants_turn = self.wants_turn and mode is Mode.ALONE
                self.in_transaction = mode is Mode.WRITE
            answer = yield asked
            with self._changed:
                self.wants_turn = False

    def _stop(self, before: str) -> None:
        with self._changed:
            self.next = before
            self.state = State.STANDING
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may_go or self._abandoned)
            self._may_go = False
            if self._abandoned:
                raise Abandoned


class Abandoned(Exception):
    """The test is over, and this actor was still under way."""
