"""The stage: actors on one database, moved one step at a time, in every order there is.

Owns the schedule. After each move it waits until every actor stands before its next step, has
ended, or provably waits for another one: PostgreSQL is asked who blocks whom (`pg_stat_activity`
and `pg_blocking_pids`); on SQLite whoever is not inside a transaction waits for the one who is.

    def scene(lab: Lab) -> Scene:
        id = lab.send()
        return {"operator": lambda hand: hand.cancel(id), "worker": …}

    for ended in stage.every_order(scene):
        assert …
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import psycopg

from holdfast.store import statement
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.protocol import Store
from holdfast.store.sqlite.store import SqliteStore
from tests.store.races.actor import PATIENCE_S, Actor, Script, State
from tests.support.stores import Lab

Texts: TypeAlias = Callable[[str, str], str]
"""Changes the text of a statement, given its name: for tests that seed a defect or a gate."""

Scene: TypeAlias = Mapping[str, Script]
"""Who takes part, and what each does."""

_BLOCKED = """
    SELECT application_name
    FROM pg_stat_activity
    WHERE application_name = ANY (%s) AND wait_event_type = 'Lock'
        AND cardinality(pg_blocking_pids(pid)) > 0
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one order of steps went."""

    results: Mapping[str, Any]
    order: tuple[str, ...]
    """Every step taken: "actor: step", with "(waits)" where it had to."""

    def __getitem__(self, actor: str) -> Any:
        return self.results[actor]

    @property
    def waited(self) -> bool:
        return any(step.endswith("(waits)") for step in self.order)


class Stage:
    """One database and a store of its own for each actor."""

    def __init__(self, lab: Lab, closing: ExitStack, change: Texts | None = None) -> None:
        self.lab = lab
        self._closing = closing
        self._change = change
        self._stores: dict[str, Store] = {}
        self._changed = threading.Condition()
        self._admin: psycopg.Connection[Any] | None = None
        if lab.engine == "postgresql":
            self._admin = psycopg.connect(lab.store.settings.address, autocommit=True)
            closing.callback(self._admin.close)

    def store(self, actor: str) -> Store:
        """The store of an actor: its own connections, on the stage's database."""
        if actor not in self._stores:
            self._stores[actor] = self._open(actor)
            self._closing.callback(self._stores[actor].close)
        return self._stores[actor]

    def _open(self, actor: str) -> Store:
        settings, change = self.lab.store.settings, self._change or (lambda _, text: text)
        if self.lab.engine == "sqlite":
            return SqliteStore(
                settings,
                texts=lambda name: tuple(change(name, text) for text in statement.texts(name)),
            )
        # A deadlock is looked for at once, not after a second.
        options = f"application_name={actor}&options=-c%20deadlock_timeout%3D10ms"
        return PostgresStore(
            replace(settings, address=f"{settings.address}?{options}", max_connections=2),
            text=lambda name: change(name, statement.text(name, "postgresql", settings.schema)),
        )

    def every_order(self, scene: Callable[[Lab], Scene], *, switches: int = 99) -> Iterator[Ended]:
        """Play the scene once for each order of steps, from an empty database each time.

        `switches` bounds how often an actor is left although it could go on: two or three
        find nearly everything where all orders would be too many.
        """
        chosen: list[int] = []
        while True:
            self.empty()
            choices = _Choices(chosen, switches)
            yield self.play(scene(self.lab), choices)
            following = choices.following()
            if following is None:
                return
            chosen = following

    def play(self, scene: Scene, choices: _Choices | None = None) -> Ended:
        """Play one scene in one order."""
        choices = choices or _Choices([], 99)
        order: list[str] = []
        cast = [
            Actor(name, self.store(name), self.lab.clock, script, self._changed)
            for name, script in scene.items()
        ]
        try:
            self.settle(cast)
            while any(actor.state is not State.ENDED for actor in cast):
                standing = [actor for actor in cast if actor.state is State.STANDING]
                # All wait for each other: the server ends that, with an error for one of them.
                if standing:
                    actor = choices.choose(standing)
                    order.append(f"{actor.name}: {actor.next}")
                    actor.go()
                    if self.settle(cast, moved=actor):
                        order[-1] += " (waits)"
                else:
                    self._await(lambda: any(a.state is not State.GOING for a in cast))
        finally:
            for actor in cast:
                actor.abandon()
        for actor in cast:
            if actor.error is not None:
                actor.error.add_note(f"in {actor.name}; order of steps: {'; '.join(order)}")
                raise actor.error
        return Ended({actor.name: actor.result for actor in cast}, tuple(order))

    @contextmanager
    def actor(self, name: str, script: Script) -> Iterator[Actor]:
        """One actor by itself, standing before its first step; the test moves it."""
        actor = Actor(name, self.store(name), self.lab.clock, script, self._changed)
        try:
            self.settle([actor])
            yield actor
        finally:
            actor.abandon()

    def finish(self, actor: Actor) -> Any:
        """Let an actor go to its end; its result."""
        self.settle([actor])
        while actor.state is State.STANDING:
            actor.go()
            self.settle([actor])
        if actor.error is not None:
            raise actor.error
        return actor.result

    def settle(self, cast: list[Actor], moved: Actor | None = None) -> bool:
        """Wait until nobody is on the way; whether the one that moved has to wait for another."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not _going(cast), timeout=0.002)
                going = _going(cast)
            waiting = self._waiting(cast, going) if going else set()
            if {actor.name for actor in going} <= waiting:
                return moved is not None and moved.name in waiting
            assert time.monotonic() < deadline, f"{[a.name for a in going]} neither go nor wait"

    def _waiting(self, cast: list[Actor], going: list[Actor]) -> set[str]:
        names = [actor.name for actor in going]
        if self._admin is not None:
            return {name for (name,) in self._admin.execute(_BLOCKED, [names]).fetchall()}
        inside = any(actor.in_transaction for actor in cast)
        return {actor.name for actor in going if actor.wants_turn and inside}

    def _await(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), "a deadlock that nobody ends"

    def empty(self, *more: str) -> None:
        """Leave no task behind, and nothing in these tables; the clock goes on."""
        tables = ["tasks", "leases", "task_attempts", "task_dependencies", "queues", "meta"]
        for table in (*tables, *more):
            self.lab.sql(f"DELETE FROM holdfast_{table}")


def _going(cast: list[Actor]) -> list[Actor]:
    return [actor for actor in cast if actor.state is State.GOING]


class _Choices:
    """One path through the tree of choices, and the one after it."""

    def __init__(self, prefix: list[int], switches: int) -> None:
        self._prefix = prefix
        self._switches = switches
        self._taken: list[tuple[int, int]] = []
        self._last: Actor | None = None

    def choose(self, able: list[Actor]) -> Actor:
        # The one that moved last comes first, so that choice 0 is never a switch.
        able = sorted(able, key=lambda actor: actor is not self._last)
        can_stay = able[0] is self._last
        options = 1 if can_stay and self._switches == 0 else len(able)
        place = len(self._taken)
        choice = self._prefix[place] if place < len(self._prefix) else 0
        self._taken.append((choice, options))
        self._switches -= bool(can_stay and choice)
        self._last = able[choice]
        return able[choice]

    def following(self) -> list[int] | None:
        """The choices of the next path, depth first; None after the last."""
        taken = list(self._taken)
        while taken and taken[-1][0] + 1 >= taken[-1][1]:
            taken.pop()
        if not taken:
            return None
        return [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]
