"""The hint listener: hints from the store, passed on to whoever sleeps.

Owns the worker's only listener, and with it one connection: ends of tasks are heard on the
same one, while code inside a task waits for some. Changing what is listened to means
listening anew. Hints sent meanwhile are lost; the new listener's first word is that
something may have happened.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from time import monotonic
from typing import Final

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.op import Channel, understand
from holdfast.store.protocol import Listener, Store

LINGER: Final = 10.0
"""Seconds that ends of tasks are still listened to when nobody waits: one who waits for many
tasks in a row must not make us listen anew for each."""


class HintListener:
    """A duty that waits by itself: `tick` returns when something was heard."""

    name = "hint_listener"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        *,
        wake_timers: Callable[[], None],
        wake_schedules: Callable[[], None] = lambda: None,
        ended: Callable[[], None],
        worker_id: str = "",
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._poll = ledger.options.poll
        self._wake_timers = wake_timers
        """Called when something may be due sooner than was known."""
        self._wake_schedules = wake_schedules
        """Called when a schedule may have changed."""
        self._ended = ended
        """Called when some task has ended, for code that waits for one."""
        self._worker_id = worker_id
        self._endings_until = 0.0
        self._listener: Listener | None = None
        self._channels: tuple[Channel, ...] = ()

    def tick(self) -> float:
        """Wait for a hint."""
        try:
            listener = self._tuned()
            heard = understand(listener.wait(self._poll * random.uniform(0.75, 1.25)))
        except StoreUnavailable as error:
            self._outage.noted(error)
            return self._poll
        if heard.ended and self._endings_until:
            self._ended()
        if heard.paused:
            self._ledger.pause(heard.paused)
        freed = {slot.scope for slot in heard.freed if not slot.by or slot.by != self._worker_id}
        if freed:
            self._ledger.freed(freed)
        if heard.ready:
            self._ledger.hinted(heard.ready)
            self._wake_timers()
            if "" in heard.ready:
                self._wake_schedules()
        return 0.0

    def follow_endings(self, wanted: bool) -> None:
        """Begin or cease to listen to ends of tasks (any thread)."""
        self._endings_until = math.inf if wanted else monotonic() + LINGER
        self.wake()

    def wake(self) -> None:
        """End the wait (any thread)."""
        listener = self._listener
        if listener is not None:
            listener.wake()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _tuned(self) -> Listener:
        endings = monotonic() < self._endings_until
        channels = (Channel.READY, Channel.DONE) if endings else (Channel.READY,)
        if self._listener is None or channels != self._channels:
            # Closed first: there is never a second connection.
            self.close()
            self._listener = self._store.listen(*channels)
            self._channels = channels
        return self._listener
