"""Names that may have been meant by one that is not known."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["near_names"]


def near_names(name: str, known: Collection[str]) -> list[str]:
    """What may have been meant: the same name in a module, or else names that look alike."""
    from difflib import get_close_matches

    same = sorted(each for each in known if each.rpartition(".")[2] == name)
    return same or get_close_matches(name, known)
