"""The ears: hints from the store, passed on to whoever sleeps."""

from __future__ import annotations

import random
from collections.abc import Callable

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.outage import Outage
from holdfast.store.op import Channel
from holdfast.store.protocol import Listener, Store


class Ears:
    """A duty that waits by itself: `tick` returns when something was heard."""

    name = "ears"

    def __init__(
        self,
        store: Store,
        outage: Outage,
        *,
        poll: float,
        heard: Callable[[frozenset[str]], None],
    ) -> None:
        self._store = store
        self._outage = outage
        self._poll = poll
        self._heard = heard
        self._listener: Listener | None = None

    def tick(self) -> float:
        """Wait for a hint."""
        try:
            if self._listener is None:
                self._listener = self._store.listen(Channel.READY)
            queues = self._listener.wait(self._poll * random.uniform(0.75, 1.25))
        except StoreUnavailable as error:
            self._outage.noted(error)
            return self._poll
        if queues:
            self._heard(queues)
        return 0.0

    def wake(self) -> None:
        """End the wait (any thread)."""
        if self._listener is not None:
            self._listener.wake()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
