"""Log records as JSON, one object a line.

Owns the form, for the worker's log and for what tasks log: what every record has, the fields that
a record of Holdfast carries (`record.holdfast`), and what its author has added (`extra=…`). The
line is ASCII, so no value in it can pass for a line of its own. It writes nothing anywhere.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["JsonLines"]

_ORDINARY: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "holdfast"}
)
"""What each record has."""


class JsonLines(logging.Formatter):
    """One JSON object a line, ASCII only; `always` is part of each."""

    def __init__(self, always: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.always = dict(always or {})

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        found: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self.always,
        }
        fields = getattr(record, "holdfast", {})
        if isinstance(fields, Mapping):
            found.update((name, value) for name, value in fields.items() if value is not None)
        for name, value in vars(record).items():
            if name not in _ORDINARY:
                found.setdefault(name, value)
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, default=_text, skipkeys=True)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - the author's `__str__` may raise anything
        return f"(str() raised {type(error).__name__})"
