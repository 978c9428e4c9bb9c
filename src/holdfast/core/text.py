"""Text that came from a task's code, made safe to store and to show.

Messages, tracebacks and reasons are not the user's data: they may be cut and cleaned.
PostgreSQL refuses NUL in text, and neither engine can encode half of a surrogate pair,
so both are replaced here, once, for both engines. Payloads never pass through this
module; they are refused or kept exactly.
"""

from __future__ import annotations

import re

__all__ = ["clean", "one_line", "shorten", "visible"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def clean(text: str, limit: int) -> str:
    """`text` with NUL and lone surrogates replaced, at most `limit` characters long."""
    if len(text) > limit:
        text = shorten(text, limit)
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def shorten(text: str, limit: int) -> str:
    """Cut out the middle: a traceback is best understood by its two ends."""
    if len(text) <= limit:
        return text
    mark = f"\n… shortened from {len(text):,} characters …\n"
    room = limit - len(mark)
    if room < 2:
        return text[:limit]
    head = room // 2
    return text[:head] + mark + text[len(text) - (room - head) :]


def visible(text: str) -> str:
    """Escape what a terminal would obey; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else repr(character)[1:-1]
        for character in text
    )


def one_line(text: str, limit: int | None = None) -> str:
    """Text that stays on its line, whatever is in it, and is cut at its end if it is too long."""
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 1]}…"
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
