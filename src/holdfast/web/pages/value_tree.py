"""A stored value as a tree of lines that can be folded, in bounded size.

Owns what is left out: what lies too deep, and what is too many. A value comes decoded, and without
its secrets (`web/payload_view.py`); it is never interpreted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from holdfast.core.redaction import HIDDEN

__all__ = ["ValueNode", "call_trees", "holds", "value_text", "value_tree"]

Kind = Literal["text", "plain", "hidden", "object", "array", "more"]

_DEEPEST: Final = 12
_WIDEST: Final = 100
_LONGEST: Final = 4_000
_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class ValueNode:
    """One line, and those below it."""

    key: str | None
    """With its quotes; None in an array and at the top."""
    kind: Kind
    text: str
    """The value, or how many there are inside."""
    inside: Sequence[ValueNode] = ()
    is_last: bool = True


def holds(value: Any, text: str) -> bool:
    """Whether it stands anywhere in a value, alone."""
    if isinstance(value, Mapping):
        return any(holds(each, text) for each in value.values())
    if isinstance(value, list | tuple):
        return any(holds(each, text) for each in value)
    return bool(value == text)


def value_tree(value: Any) -> ValueNode:
    """The tree of a value."""
    return _Growing().node(None, value, 0, is_last=True)


def call_trees(args: Any, kwargs: Any) -> Sequence[tuple[str, ValueNode]]:
    """The arguments of a call, with what each part is where there are both."""
    if args and kwargs:
        return [("Positional", value_tree(args)), ("By name", value_tree(kwargs))]
    return [("", value_tree(args or kwargs))]


def value_text(value: Any, limit: int = 1_000_000) -> str:
    """The same as text to copy: JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return text if len(text) <= limit else text[:limit]


class _Growing:
    def __init__(self) -> None:
        self._left = _MOST

    def node(self, key: str | None, value: Any, depth: int, *, is_last: bool) -> ValueNode:
        self._left -= 1
        name = None if key is None else json.dumps(key, ensure_ascii=False)
        if value == HIDDEN:
            return ValueNode(name, "hidden", "hidden", is_last=is_last)
        if isinstance(value, Mapping):
            inside = self._inside(((str(k), v) for k, v in value.items()), len(value), depth)
            text = f"{len(value):,} {'key' if len(value) == 1 else 'keys'}"
            return ValueNode(name, "object", text, inside, is_last)
        if isinstance(value, list | tuple):
            inside = self._inside(((None, each) for each in value), len(value), depth)
            text = f"{len(value):,} {'item' if len(value) == 1 else 'items'}"
            return ValueNode(name, "array", text, inside, is_last)
        text = _leaf(value)
        return ValueNode(name, "text" if isinstance(value, str) else "plain", text, (), is_last)

    def _inside(
        self, pairs: Iterable[tuple[str | None, Any]], number: int, depth: int
    ) -> list[ValueNode]:
        if depth >= _DEEPEST:
            return [ValueNode(None, "more", "… deeper than is shown")] if number else []
        return list(self._some(pairs, number, depth))

    def _some(
        self, pairs: Iterable[tuple[str | None, Any]], number: int, depth: int
    ) -> Iterator[ValueNode]:
        for place, (key, value) in enumerate(pairs):
            if place >= _WIDEST or self._left <= 0:
                yield ValueNode(None, "more", f"… {number - place:,} more")
                return
            yield self.node(key, value, depth + 1, is_last=place == number - 1)


def _leaf(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if _is_plain(value) else str(value)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)
