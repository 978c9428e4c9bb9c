"""How code of a task is ended on our wish."""

from __future__ import annotations

from holdfast.core.outcome import Why


class EndRun(BaseException):
    """Raised inside a task's code to end it; no `except Exception` stops it."""

    def __init__(self, why: Why = "cancel") -> None:
        super().__init__(why)
        self.why: Why = why
