"""Where work comes from: one queue, and which of the known tasks to take from it.

Owns the claimer's memory of a queue: whether anything may be in it, and from which position
on. A claim examines at most 1,000 entries; when they hid nothing this worker knows, the
next one goes on behind them, and now and then one looks at the head again.

A source is for children of one kind: that nothing was found for children of one kind says
nothing about tasks for those of another.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import get_args

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
        self.kind: Kind = tasks[0].kind
        self.names = [known_name(task.name, task.version) for task in tasks]
        """What a claim may take."""
        self.only = tasks[0] if tasks[0].max_concurrent is not None else None
        """The one task of this source, if it has a limit of its own."""
        self.maybe = True
        """Whether a claim may find something."""
        self._after = HEAD
        self._head_at = 0.0
        self._rings = 0
        self._rings_before = 0

    def position(self, now: float) -> Position:
        """Where the next claim starts."""
        if now - self._head_at >= HEAD_EVERY:
            self._after = HEAD
        if self._after == HEAD:
            self._head_at = now
        self._rings_before = self._rings
        return self._after

    def rung(self) -> None:
        """Something came into the queue; it may have come in front."""
        self._rings += 1
        self.maybe = True
        self._after = HEAD

    def found(self, last: Position) -> None:
        """A claim was satisfied; there may be more behind its last task."""
        if self._rings == self._rings_before:
            self._after = last

    def short(self, horizon: Position | None) -> None:
        """A claim found less than it wanted; `horizon` is where it stopped looking."""
        if self._rings != self._rings_before:
            # Something came in while the claim was under way, perhaps behind its back.
            return
        if horizon is None:
            self.maybe = False
            self._after = HEAD
        else:
            self._after = horizon


def sources(choices: Sequence[QueueChoice], tasks: Sequence[KnownTask]) -> list[Source]:
    """The sources of a worker: a task with a limit of its own is claimed apart from the rest."""
    free = [task for task in tasks if task.max_concurrent is None]
    by_kind = [[task for task in free if task.kind == kind] for kind in get_args(Kind)]
    limited = [[task] for task in tasks if task.max_concurrent is not None]
    return [Source(choice, group) for choice in choices for group in (*by_kind, *limited) if group]


def in_turn(found: Sequence[Source]) -> Sequence[Source]:
    """The sources in the order to try them: as given, or drawn by weight."""
    if not found or found[0].choice.weight is None:
        return found
    # Drawing keys u^(1/w) and sorting is a draw without replacement by weight.
    keys = {s.queue: random.random() ** (1 / (s.choice.weight or 1)) for s in found}
    return sorted(found, key=lambda s: -keys[s.queue])
