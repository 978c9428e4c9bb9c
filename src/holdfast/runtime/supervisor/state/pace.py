"""How fast one child is listened to.

Owns the limits that keep a child, or what a task left running, from having the supervisor to
itself. What is not read stays in the socket or pipe, and whoever writes into it waits.
"""

from __future__ import annotations

from time import monotonic


class Pace:
    """A rate of bytes and of messages, with some of both allowed at once."""

    __slots__ = ("_bytes_per_s", "_ahead", "_burst_s", "_per_s")

    def __init__(self, *, bytes_per_s: float, messages_per_s: float = 1e9, burst_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._per_s = messages_per_s
        self._burst_s = burst_s
        self._ahead = 0.0
        """The moment at which what was read would have been read at this rate."""

    def allows(self) -> bool:
        """Whether one more message may be listened to now; if so, it is spent."""
        now = monotonic()
        after = max(self._ahead, now - self._burst_s) + 1 / self._per_s
        if after > now:
            return False
        self._ahead = after
        return True

    def spend(self, size: int, messages: int = 0) -> float:
        """So much was read: how long to rest before the next time; 0.0: not at all."""
        now = monotonic()
        ahead = max(self._ahead, now - self._burst_s)
        ahead += max(size / self._bytes_per_s, messages / self._per_s)
        self._ahead = ahead
        return max(0.0, ahead - now)
