"""What a task raises to steer itself.

Signals are not errors: nothing went wrong, and `HoldfastError` does not catch them. They
are raised rather than returned, so they work from any depth and a task's return type stays
its own. They derive from `Exception`, so a task that catches `Exception` around its work
catches them too; raise them outside such a block.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.core.moment import span_us

__all__ = ["Abort", "RetryLater", "Snooze"]


class RetryLater(Exception):
    """Run this task again later; spends a retry.

    Without `delay` the task's own backoff applies. A task without a retry policy may ask
    three times.
    """

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(delay, reason)
        self.delay_us = None if delay is None else span_us(delay, option="RetryLater(delay)")
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or "the task asked to be run again"


class Snooze(Exception):
    """Put this task aside for a while; spends no retry."""

    def __init__(self, delay: float | timedelta) -> None:
        super().__init__(delay)
        self.delay_us = span_us(delay, option="Snooze(delay)")

    def __str__(self) -> str:
        return f"the task asked to be put aside for {self.delay_us / 1_000_000:g} s"


class Abort(Exception):
    """Fail this task now, with the code ABORTED and without any retry."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or "the task aborted itself"
