"""How long to leave a server alone that did not let us in.

Owns the delays between attempts to connect: they double up to a cap and are jittered, so
that a fleet does not return in step. Shared by the threads of one store, which then try
together and not one after the other.
"""

from __future__ import annotations

import random
from time import monotonic

from holdfast.core.pause import growing

FIRST_S = 0.05
# A worker must be back before its leases are taken. The reaper waits min(5 s, lease / 3)
# after an outage and we may use half of that: enough for leases from 5 s on.
CAP_S = 0.8


class Backoff:
    """The pause before the next attempt; nothing before the first."""

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def remaining(self) -> float:
        """Seconds until the next attempt is due."""
        return max(0.0, self._not_before - monotonic())

    def begin(self) -> int:
        """Call before an attempt; give what it returns to `failed`."""
        return self._failures

    def failed(self, begun: int) -> None:
        """An attempt has failed. Attempts made side by side count once."""
        if begun != self._failures:
            return
        self._failures += 1
        longest = growing(FIRST_S, self._failures - 1, CAP_S)
        self._not_before = monotonic() + random.uniform(longest / 2, longest)

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
