"""A relay server that hears hints: what the supervisor gives its children to use the store
through."""

from __future__ import annotations

from holdfast.runtime.supervisor.duties.hint_listener import Ears
from holdfast.runtime.supervisor.duty import Loop
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.relay.server import RelayDesk
from holdfast.store.protocol import Store


class Relay:
    """`server` answers; close it before the store."""

    def __init__(self, store: Store, *, patience: float = 5.0) -> None:
        self.failures: list[BaseException] = []
        self.desk = RelayDesk(store, follow_endings=self._follow, patience=patience)
        self.ears = Ears(
            store,
            Outage(1.0),
            poll=1.0,
            ready=lambda queues: None,
            paused=lambda queues: None,
            ended=self.desk.ended,
        )
        self._loop = Loop(self.ears, lambda name, error: self.failures.append(error))
        self._loop.start()

    def _follow(self, wanted: bool) -> None:
        self.ears.follow_endings(wanted)

    def close(self) -> None:
        self.desk.close()
        self._loop.stop()
        self.ears.wake()
        assert self._loop.join(5)
        self.ears.close()
        if self.failures:
            raise self.failures[0]
