"""Whether this worker could run a task now, for whoever asks over HTTP.

Owns what is known of it without asking: when the store was last heard of, and whether claims
succeed. Nothing here touches the store, so the question costs the queue nothing, however often it
is asked. A worker all of whose children are busy claims nothing, and is ready.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from holdfast.runtime.supervisor.outage import Outage

_SILENT_AFTER: Final = 15.0
_CLAIM_TAKES: Final = 15.0
"""Seconds after which a claim that has not been answered counts as failed."""


class Readiness:
    """Written by the claimer and by maintenance, read by any thread; each field by itself."""

    def __init__(self, outage: Outage, poll: float) -> None:
        self._outage = outage
        self._patience = max(_SILENT_AFTER, 3 * poll)
        self._heard_at = monotonic()
        self._claiming_since: float | None = None
        self._claim_failed_at: float | None = None
        self.is_open = False
        """Whether a child has been there, so that tasks are claimed."""
        self.is_stopping = False

    def heard(self) -> None:
        """The store has answered."""
        self._heard_at = monotonic()

    def claims(self) -> None:
        """A claim begins."""
        self._claiming_since = monotonic()

    def claimed(self) -> None:
        """A claim was answered."""
        self._claiming_since = self._claim_failed_at = None
        self._heard_at = monotonic()

    def claim_failed(self) -> None:
        """A claim failed."""
        self._claiming_since = None
        self._claim_failed_at = monotonic()

    def why_not(self) -> str | None:
        """In a few words what it lacks; None if it is ready. It names no address and no secret."""
        now, since, failed_at = monotonic(), self._claiming_since, self._claim_failed_at
        if self.is_stopping:
            return "the worker is stopping"
        if not self.is_open:
            return "the worker is starting"
        if self._outage.is_on:
            return f"the store has been away for {self._outage.lasted:.0f} s"
        if now - self._heard_at > self._patience:
            return f"the store has not answered for {now - self._heard_at:.0f} s"
        if failed_at is not None and now - failed_at < self._patience:
            # Longer ago: no child has been free since, so it has not been tried again.
            return "the last claim failed; the worker's log says why"
        if since is not None and now - since > _CLAIM_TAKES:
            return f"a claim has not been answered for {now - since:.0f} s"
        return None
