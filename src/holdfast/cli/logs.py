"""Log lines for a person at a terminal, and for a file that is searched later."""

from __future__ import annotations

import logging
import sys
import time

_LEVELS = {"WARNING": "warning: ", "ERROR": "error: ", "CRITICAL": "fatal: ", "DEBUG": "debug: "}


class _Lines(logging.Formatter):
    """`2026-11-15 22:05:01.123 worker  warning: …`, control characters made visible."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        where = record.name.removeprefix("holdfast.")
        level = _LEVELS.get(record.levelname, "")
        return f"{clock}.{int(record.msecs):03d} {where}: {level}{visible(text)}"


def visible(text: str) -> str:
    """Escape what a terminal would obey; line ends and tabs stay."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else repr(character)[1:-1]
        for character in text
    )


def configure(*, verbose: bool = False) -> None:
    """Send Holdfast's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logger = logging.getLogger("holdfast")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
