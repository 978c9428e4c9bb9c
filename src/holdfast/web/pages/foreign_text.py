"""Text that users or their code wrote, made safe to stand in a page.

Escaping of markup is the template engine's. Here are the characters that a browser obeys although
they are not markup: controls, those that turn the direction of everything behind them, those that
take no room, and halves of surrogate pairs, which no page can be encoded with.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["shorten_end", "shown"]

_KEPT: Final = frozenset("\n\t\u200c\u200d")
"""Line ends are layout; the joiners are part of how emoji and some scripts are written."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def shown(text: str) -> str:
    """`text` with what a reader could not see, or would be misled by, as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def shorten_end(text: str, limit: int) -> str:
    """At most `limit` characters of it."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
