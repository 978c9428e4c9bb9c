"""A list of what could be read, and what could not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from holdfast.core.errors import UnreadableRow

__all__ = ["Listing"]

T = TypeVar("T")


class Listing(list[T]):
    """A list, with the rows beside it that cannot be read."""

    def __init__(self, found: Iterable[T], unreadable: Sequence[UnreadableRow]) -> None:
        super().__init__(found)
        self.unreadable = unreadable
