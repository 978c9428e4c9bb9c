"""What a visitor sees of what tasks are given, give back and print.

Owns the two rules: without the right to see payloads there is nothing, and with it there is
everything but the values of keys that say they are secret (`password`, `api_key`, …, and those the
host names). Messages of errors are shown to all who may read, without passwords of URLs and of
settings.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from holdfast.core.redaction import key_rule, mask, redact_lines
from holdfast.core.result import TaskError

__all__ = ["PayloadView"]


class PayloadView:
    """What one visitor sees."""

    def __init__(self, allowed: bool, hidden_keys: Collection[str] = ()) -> None:
        self.allowed = allowed
        self._hides = key_rule(hidden_keys)

    def value(self, value: Any) -> Any:
        """Arguments or a result, without secrets; None for who may not see them."""
        return mask(value, self._hides) if self.allowed else None

    def masked(self, value: Any) -> Any:
        """What is no payload, such as the detail of an action, without secrets."""
        return mask(value, self._hides)

    def text(self, text: str | None) -> str | None:
        """What a task printed or gave out; None for who may not see it."""
        return text if self.allowed else None

    def error(self, error: TaskError | None) -> dict[str, Any] | None:
        """An error: what it says is shown to all, what its author attached is payload."""
        if error is None:
            return None
        return {
            "error_code": str(error.error_code),
            "message": self.said(error.message),
            "exception": error.exception,
            "traceback": None if error.traceback is None else self.said(error.traceback),
            "causes": [self.said(cause) for cause in error.causes],
            "data": self.value(error.data),
        }

    @staticmethod
    def said(text: str) -> str:
        """A message or a traceback, without passwords."""
        return redact_lines(text)
