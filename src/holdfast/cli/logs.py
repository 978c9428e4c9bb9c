"""Log lines for a person at a terminal, and for a program that reads them.

Owns the two forms. As text, a record is one line, and what follows it (a traceback) is indented
under it, so no value can pass for a line of its own. As JSON, a record is one object; the fields
that a record of Holdfast carries (`record.holdfast`) stand beside those that every record has.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.core.text import one_line, visible

__all__ = ["FORMATS", "LEVELS", "configure", "visible"]

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")

_WORDS = {"WARNING": "warning: ", "ERROR": "error: ", "CRITICAL": "fatal: ", "DEBUG": "debug: "}


class TextLines(logging.Formatter):
    """`2026-11-15 22:05:01.123 worker: warning: …`, control characters made visible."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        where = record.name.removeprefix("holdfast.")
        level = _WORDS.get(record.levelname, "")
        text = one_line(record.getMessage())
        below = _below(self, record)
        return f"{clock}.{int(record.msecs):03d} {where}: {level}{text}{below}"


class JsonLines(logging.Formatter):
    """One JSON object a line, ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        found: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found.update(
            (name, value)
            for name, value in getattr(record, "holdfast", {}).items()
            if value is not None
        )
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


def configure(*, level: str = "info", form: str = "text") -> None:
    """Send Holdfast's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logger = logging.getLogger("holdfast")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def _below(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = str(getattr(record, "holdfast", {}).get("traceback") or "")
    if record.exc_info:
        text += formatter.formatException(record.exc_info)
    lines = visible(text).rstrip("\n").split("\n") if text else []
    return "".join(f"\n    {line}" for line in lines)
