"""Where work comes from: one queue, and which of the known tasks to take from it.

Owns the claimer's memory of a queue: whether anything may be in it, and from which position
on a claim shall look (see `core.cursor`).

A source is for children of one kind: that nothing was found for children of one kind says
nothing about tasks for those of another.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import get_args

from holdfast.core.cursor import Cursor
from holdfast.core.options.policy import Policy
from holdfast.core.records import HEAD, Position
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.wire.messages import Kind, KnownTask
from holdfast.store.verbs.claims import known_name, rules

_APART = 1.0


class QueueSource:
    """One queue and some of the known tasks. Changes under the ledger's lock only."""

    def __init__(self, choice: QueueChoice, tasks: Sequence[KnownTask]) -> None:
        self.choice = choice
        self.queue = choice.name
        self.kind: Kind = tasks[0].kind
        self.names = [known_name(task.name, task.version) for task in tasks]
        """What a claim may take."""
        self.tasks = [task.name for task in tasks]
        self.policies = rules((task.name, task.version, task.task_options) for task in tasks)
        """What those among them that were sent by name shall go by."""
        self.only = tasks[0] if tasks[0].max_concurrent is not None else None
        """The one task of this source, if it has a limit of its own."""
        self.is_deep = False
        """Whether the last claim found as much as it wanted, so that there is likely more."""
        self.is_careful = False
        """Whether a claim was refused for a row that breaks the constraints of the table."""
        self._apart_until = 0.0
        self._has_loners = any(Policy.decode(task.task_options).is_alone for task in tasks)
        self._cursor = Cursor()
        self._start = HEAD
        self._began = 0.0

    def may_share(self, now: float) -> bool:
        """Whether what is claimed next can be expected to share a child with others."""
        return now >= self._apart_until and not self._has_loners

    def met_loner(self, now: float) -> None:
        """Among what was claimed was a task that cannot share a child."""
        self._apart_until = now + _APART

    def may_find(self, now: float) -> bool:
        """Whether a claim may find something."""
        return self._cursor.may_find(now)

    def position(self, now: float) -> Position:
        """Where the next claim starts."""
        self._start, self._began = self._cursor.start(now), now
        return self._start

    def rung(self) -> None:
        """Something came into the queue; it may have come in front."""
        self._cursor.rung()

    def found(self, last: Position, now: float) -> None:
        """A claim was satisfied; there may be more behind its last task."""
        self._looked(last, now, full=True)

    def short(self, horizon: Position | None, now: float) -> None:
        """A claim found less than it wanted; `horizon` is where it stopped looking."""
        self._looked(horizon, now, full=False)

    def _looked(self, end: Position | None, now: float, *, full: bool) -> None:
        self.is_deep = full
        self._cursor.looked(self._start, end, full=full, now=now, seconds=now - self._began)


def sources(choices: Sequence[QueueChoice], tasks: Sequence[KnownTask]) -> list[QueueSource]:
    """The sources of a worker: a task with a limit of its own is claimed apart from the rest."""
    free = [task for task in tasks if task.max_concurrent is None]
    by_kind = [[task for task in free if task.kind == kind] for kind in get_args(Kind)]
    limited = [[task] for task in tasks if task.max_concurrent is not None]
    return [
        QueueSource(choice, group) for choice in choices for group in (*by_kind, *limited) if group
    ]


def in_turn(found: Sequence[QueueSource]) -> Sequence[QueueSource]:
    """The sources in the order to try them: as given, or drawn by weight."""
    if not found or found[0].choice.weight is None:
        return found
    # Drawing keys u^(1/w) and sorting is a draw without replacement by weight.
    keys = {s.queue: random.random() ** (1 / (s.choice.weight or 1)) for s in found}
    return sorted(found, key=lambda s: -keys[s.queue])
