"""A relay server that hears hints: what the supervisor gives its children to use the store
through."""

from __future__ import annotations

from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.hint_listener import HintListener
from holdfast.runtime.supervisor.duty import Loop
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store.protocol import Store


class Relay:
    """`server` answers; close it before the store."""

    def __init__(self, store: Store, *, patience: float = 5.0) -> None:
        self.failures: list[BaseException] = []
        self.server = RelayServer(store, follow_endings=self._follow, patience=patience)
        self.hint_listener = HintListener(
            store,
            Ledger(WorkerOptions(), []),
            Outage(1.0),
            wake_timers=lambda: None,
            ended=self.server.ended,
        )
        self._loop = Loop(self.hint_listener, lambda name, error: self.failures.append(error))
        self._loop.start()

    def _follow(self, wanted: bool) -> None:
        self.hint_listener.follow_endings(wanted)

    def close(self) -> None:
        self.server.close()
        self._loop.stop()
        self.hint_listener.wake()
        assert self._loop.join(5)
        self.hint_listener.close()
        if self.failures:
            raise self.failures[0]
