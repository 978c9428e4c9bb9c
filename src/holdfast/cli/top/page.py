"""A page of text in the monitor: help, or why a task is where it is.

Owns folding, and which part is shown of what is longer than the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import chop_cells
from rich.text import Text

from holdfast.core.text import one_line

__all__ = ["TextPage", "folded"]

_SCROLLS: Final = {"j": 1, "down": 1, "k": -1, "up": -1}


class TextPage:
    """Some text, and how far one has read."""

    def __init__(self, text: Sequence[str]) -> None:
        self._text = text
        self._first = 0
        self._room = 0
        self._length = 0

    def turned(self, key: str) -> bool:
        """Whether this key turns the page; any other leaves it."""
        last = max(0, self._length - self._room)
        if not last:
            return False
        match key:
            case "j" | "down" | "k" | "up":
                self._first += _SCROLLS[key]
            case "space":
                self._first += max(1, self._room - 1)
            case "g":
                self._first = 0
            case "G":
                self._first = last
            case _:
                return False
        self._first = min(max(0, self._first), last)
        return True

    def lines(self, width: int, height: int, below: str = "any key goes back") -> list[Text]:
        """What is shown of it, with a line below that says which keys do what."""
        lines = [part for line in self._text for part in folded(line, width)]
        self._length, self._room = len(lines), max(1, height - 1)
        self._first = min(self._first, max(0, self._length - self._room))
        shown = [Text(part) for part in lines[self._first : self._first + self._room]]
        shown = shown[: height - 1]
        footer = Text(below, "dim")
        if self._length > self._room:
            end = self._first + self._room
            footer = Text(f"{end}/{self._length}  j/k, Space: more; others go back", "dim")
        footer.truncate(width, overflow="ellipsis")
        return [*shown, *[Text("")] * (height - 1 - len(shown)), footer]


def folded(text: str, width: int) -> list[str]:
    """A line in as many as it needs, safe for a terminal."""
    return chop_cells(one_line(text), max(2, width)) or [""]
