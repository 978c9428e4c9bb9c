"""The limits as this worker knows them, and claims under them.

Owns the worker's copy of the rules. A claim names the version of that copy, and gets nothing if
there is a newer one; then the rules are read again, and the sources made anew: which tasks are
claimed together depends on who has a limit.

At its start the worker declares what the code of its tasks says. If other live workers declare
something else, which holds, it says so again from time to time: they may have gone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic
from typing import Final

from holdfast.core.errors import PayloadError, UnreadableRow
from holdfast.core.limiting import LimitBook
from holdfast.core.options.limit import Limit, decode
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import QueueSource, sources
from holdfast.runtime.wire.messages import KnownTask
from holdfast.store.op import Op
from holdfast.store.protocol import Store
from holdfast.store.verbs import declared_limits, limited_claims, limits
from holdfast.store.verbs.claims import Request, Standing
from holdfast.store.verbs.limited_claims import LimitedClaim

log = logging.getLogger("holdfast.worker")

_AGAIN: Final = 10.0


class KnownLimits:
    """Called by the claimer only, from its thread."""

    def __init__(
        self, store: Store, ledger: Ledger, tasks: Sequence[KnownTask], worker_id: str
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._tasks = tasks
        self._worker_id = worker_id
        self._yielded: Sequence[str] = ()
        self._declare_at: float | None = 0.0
        self.book = LimitBook()

    @property
    def is_declared(self) -> bool:
        """Whether what our code declares holds; or was declared a moment ago, and yielded."""
        return self._declare_at is None or monotonic() < self._declare_at

    def declare(self) -> None:
        """Say what our code declares, and learn what holds; raises if the store is away."""
        declared: dict[str, tuple[Limit, ...]] = {}
        # Of several versions of a task, the newest.
        for task in sorted(self._tasks, key=lambda task: task.version):
            declared[task.name] = _decoded(task)
        done = self._store.attempt(
            lambda: declared_limits.declare(declared, worker_id=self._worker_id)
        )
        if done.book.version != self.book.version or self._declare_at == 0.0:
            self._learned(done.book)
        if done.yielded and done.yielded != self._yielded:
            log.info(
                "other workers declare other limits of %s, which hold: the newest that were "
                "declared do, while a worker with that code is live",
                one_line(", ".join(done.yielded), 300),
            )
        self._yielded = done.yielded
        self._declare_at = monotonic() + _AGAIN if done.yielded else None

    def read(self) -> None:
        """Learn what holds now; raises if the store is away."""
        unreadable: list[UnreadableRow] = []
        self._learned(self._store.run(limits.book(unreadable)))
        for row in unreadable:
            log.error("a limit cannot be read, and limits nothing: %s", row)
        if self._declare_at is None:
            # Perhaps because of code that declares other limits than ours, and may go again.
            self._declare_at = monotonic() + _AGAIN

    def _learned(self, book: LimitBook) -> None:
        self.book = self._ledger.gated.book = book
        choices = list(self._ledger.sources.choices().values())
        self._ledger.sources.replace(sources(choices, self._tasks, book))

    def claim(self, source: QueueSource, request: Request) -> Op[LimitedClaim]:
        """A claim from a gated source."""
        if source.is_keyed:
            return limited_claims.claim_keys(request, self.book, source.rounds.place)
        return limited_claims.claim(request, self.book)

    def note(self, source: QueueSource, found: LimitedClaim, wanted: int) -> bool:
        """Remember what a claim from a gated source found; False if the limits are others now."""
        now = monotonic()
        if found.is_stale:
            self.read()
            return False
        is_short = len(found.claimed.tasks) < wanted and not found.claimed.refused
        source.met_limits(
            len(found.claimed.tasks), is_short=is_short, is_held_back=found.is_held_back
        )
        if source.is_keyed:
            self._ledger.sources.turned(source, found, is_short=is_short, now=now)
        elif is_short and found.is_held_back and found.saw_all:
            self.hold_back(source, found)
        return True

    def hold_back(self, source: QueueSource, found: LimitedClaim) -> None:
        """Look into a source again when a rate lets the next one begin, or a slot comes free."""
        now = monotonic()
        self._ledger.sources.hold_back(source, found.next_at(now), now, is_full=found.is_full)

    def noted(self, queue: str, standing: Standing) -> bool:
        """Remember what is said of a queue; False if the limits are others now."""
        self._ledger.sources.signs(queue, standing.has_keys, monotonic())
        if standing.limits_version == self.book.version:
            return True
        self.read()
        return False


def _decoded(task: KnownTask) -> tuple[Limit, ...]:
    try:
        return decode(task.limits)
    except PayloadError as error:
        log.error("the limits of task %r are not understood: %s", task.name, error)
        return ()
