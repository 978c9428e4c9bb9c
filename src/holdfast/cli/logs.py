"""Log lines for a person at a terminal, and for a program that reads them.

Owns the two forms. As text, a record is one line, and what follows it (a traceback) is indented
under it, so no value can pass for a line of its own. As JSON (`core/json_lines.py`), a record is
one object; what the worker logs has its id.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Final

from holdfast.core.json_lines import JsonLines
from holdfast.core.text import one_line, visible

__all__ = ["FORMATS", "LEVELS", "always", "configure", "visible"]

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
FORMAT_VARIABLE: Final = "HOLDFAST_LOG_FORMAT"

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


def configure(*, level: str = "info", form: str = "text") -> None:
    """Send Holdfast's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    # Children that the worker makes follow it.
    os.environ[FORMAT_VARIABLE] = form
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logger = logging.getLogger("holdfast")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def always(**fields: str) -> None:
    """Have every line of JSON from now on hold these."""
    for handler in logging.getLogger("holdfast").handlers:
        if isinstance(handler.formatter, JsonLines):
            handler.formatter.always.update(fields)


def _below(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = str(getattr(record, "holdfast", {}).get("traceback") or "")
    if record.exc_info:
        text += formatter.formatException(record.exc_info)
    lines = visible(text).rstrip("\n").split("\n") if text else []
    return "".join(f"\n    {line}" for line in lines)
