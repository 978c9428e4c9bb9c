"""How long a caller is willing to wait."""

from __future__ import annotations

import time

from holdfast.core.errors import ConfigError, HoldfastError, TaskNotFound, WaitTimeout
from holdfast.core.status import TaskStatus

__all__ = ["Deadline"]


class Deadline:
    """The moment to give up; never, if `timeout` is None."""

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None and not timeout >= 0:
            raise ConfigError(
                f"timeout={timeout!r} is not usable: give seconds, 0 or more, or None",
                option="timeout",
            )
        self.timeout = timeout
        self._at = None if timeout is None else time.monotonic() + timeout

    @property
    def has_passed(self) -> bool:
        """Whether it is time to give up."""
        return self._at is not None and time.monotonic() >= self._at

    @property
    def left(self) -> float | None:
        """Seconds until then; None: any number."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    def within(self, seconds: float) -> float:
        """So many seconds, or fewer if not so many are left."""
        return seconds if self._at is None else min(seconds, self._at - time.monotonic())

    def error(self, task_id: bytes, status: TaskStatus | None) -> HoldfastError:
        """What to raise when it has passed."""
        if status is None:
            return TaskNotFound(task_id)
        return WaitTimeout(task_id, self.timeout or 0.0, status)
