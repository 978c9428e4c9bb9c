"""Where work comes from: one queue, and which of the known tasks to take from it.

Owns the claimer's memory of a queue: whether anything may be in it, and from which position
on. A claim examines at most 1,000 entries; when they hid nothing this worker knows, the
next one goes on behind them, and now and then one looks at the head again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from holdfast.core.records import HEAD, Position
from holdfast.runtime.options import QueueChoice
from holdfast.runtime.wire import Kind, KnownTask
from holdfast.store.claims import known_name

HEAD_EVERY = 1.0
"""Seconds after which a claim starts at the head of its queue again."""


class Source:
    """One queue and some of the known tasks. Changes under the desk's lock only."""

    def __init__(self, choice: QueueChoice, tasks: Sequence[KnownTask]) -> None:
        self.choice = choice
        self.queue = choice.name
        self.only = tasks[0] if len(tasks) == 1 and tasks[0].max_concurrent else None
        """The one task of this source, if it has a limit of its own."""
        self.maybe = True
        """Whether a claim may find something."""
        self._names: dict[Kind, list[str]] = {}
        for task in tasks:
            self._names.setdefault(task.kind, []).append(known_name(task.name, task.version))
        self._after = HEAD
        self._head_at = 0.0

    def names(self, kinds: Iterable[Kind]) -> list[str]:
        """What a claim may take, for children of these kinds."""
        return [name for kind in kinds for name in self._names.get(kind, ())]

    def position(self, now: float) -> Position:
        """Where the next claim starts."""
        if now - self._head_at >= HEAD_EVERY:
            self._after = HEAD
        if self._after == HEAD:
            self._head_at = now
        return self._after

    def rung(self) -> None:
        """Something came into the queue; it may have come in front."""
        self.maybe = True
        self._after = HEAD

    def found(self, last: Position) -> None:
        """A claim was satisfied; there may be more behind its last task."""
        self._after = last

    def short(self, horizon: Position | None) -> None:
        """A claim found less than it wanted; `horizon` is where it stopped looking."""
        if horizon is None:
            self.maybe = False
            self._after = HEAD
        else:
            self._after = horizon


def sources(choices: Sequence[QueueChoice], tasks: Sequence[KnownTask]) -> list[Source]:
    """The sources of a worker: a task with a limit of its own is claimed apart from the rest."""
    free = [task for task in tasks if task.max_concurrent is None]
    limited = [task for task in tasks if task.max_concurrent is not None]
    found: list[Source] = []
    for choice in choices:
        if free:
            found.append(Source(choice, free))
        found += [Source(choice, [task]) for task in limited]
    return found


def in_turn(found: Sequence[Source]) -> Sequence[Source]:
    """The sources in the order to try them: as given, or drawn by weight."""
    if not found or found[0].choice.weight is None:
        return found
    # Drawing keys u^(1/w) and sorting is a draw without replacement by weight.
    keys = {s.queue: random.random() ** (1 / (s.choice.weight or 1)) for s in found}
    return sorted(found, key=lambda s: -keys[s.queue])
