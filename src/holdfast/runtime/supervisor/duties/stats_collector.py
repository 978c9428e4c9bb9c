"""The collector of statistics: what one worker does for all of them, every few seconds.

Owns the turn: whoever finds it due takes it, which is noted in the store. It counts what was sent,
from the newest ids; adds up what workers counted in minutes that are over; and once a minute writes
down how deep the queues are. A worker that dies in between has changed nothing, or all of one step:
sends are counted up to a time that moves on with the counts.
"""

from __future__ import annotations

import logging
import random
from time import monotonic
from typing import Final

from holdfast.core.errors import StoreUnavailable
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.protocol import Store
from holdfast.store.verbs import statistics

log = logging.getLogger("holdfast.worker")

_EVERY: Final = 5.0
_DEPTHS_EVERY: Final = 60.0
_REST_FOR_WORK: Final = 50
"""How many times as long as it worked it rests."""
_LATER: Final = 60.0
_MARGIN_US: Final = 30_000_000
"""How much clocks of senders on other machines may differ."""
_MARGIN_HERE_US: Final = 2_000_000
_FURTHEST_US: Final = 600_000_000
"""What was sent longer ago than this, while no worker counted, is counted in parts."""


class StatsCollector:
    """A duty: call `tick` from one thread only."""

    name = "stats collector"

    def __init__(self, store: Store, outage: Outage) -> None:
        self._store = store
        self._outage = outage
        self._margin_us = _MARGIN_US if store.settings.is_server else _MARGIN_HERE_US

    def tick(self) -> float:
        """Take the turn if it is due, and do its work."""
        if self._outage.is_on:
            return 1.0
        began = monotonic()
        try:
            more = self._collect()
        except StoreUnavailable as error:
            if not error.locked:
                self._outage.noted(error)
            return _EVERY
        except Exception as error:  # noqa: BLE001 - statistics are not worth a worker
            log.error("statistics could not be collected: %s", one_line(str(error), 300))
            return _LATER
        rest = (monotonic() - began) * _REST_FOR_WORK
        return max(rest, 0.0 if more else _EVERY * random.uniform(0.75, 1.25))

    def _collect(self) -> bool:
        """Whether there is more to count."""
        if self._store.run(statistics.take_depth_turn(every_us=_us(_DEPTHS_EVERY - 1))):
            found = self._store.run(statistics.depths())
            self._store.run(statistics.add_depths(found))
        turn = self._store.run(statistics.take_turn(every_us=_us(_EVERY - 1)))
        if turn is None:
            return False
        until = turn.now - statistics.SETTLE_US
        after = turn.counted_until
        # Nobody has counted yet; or the clock stepped back, or somebody wrote there by hand.
        begin = until - _us(_EVERY) if after is None or after > turn.now else after
        part = min(until, begin + _FURTHEST_US)
        if part > begin:
            counted = self._store.run(statistics.sends(begin, part, margin_us=self._margin_us))
            self._store.run(statistics.add_sends(counted, after=after, until=part))
        self._store.run(statistics.fold(turn.now))
        return part < until


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
