"""Values as trees: bounded, and without a word of what is hidden."""

from __future__ import annotations

from typing import Any

from holdfast.core.redaction import HIDDEN
from holdfast.web.pages.value_tree import ValueNode, holds, value_text, value_tree


def size(node: ValueNode) -> int:
    return 1 + sum(size(inner) for inner in node.inside)


def test_kinds() -> None:
    tree = value_tree({"a": [1, "x", None], "b": {}, "k": HIDDEN, "f": 2.5})
    assert (tree.kind, tree.text) == ("object", "4 keys")
    array, empty, hidden, number = tree.inside
    assert (array.key, array.kind, array.text) == ('"a"', "array", "3 items")
    assert [each.text for each in array.inside] == ["1", '"x"', "null"]
    assert (empty.kind, empty.inside) == ("object", [])
    assert (hidden.kind, hidden.text) == ("hidden", "hidden")
    assert (number.text, number.is_last) == ("2.5", True)


def test_it_is_bounded_in_every_direction() -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert size(value_tree(deep)) < 30
    wide = value_tree(list(range(100_000)))
    assert size(wide) <= 102
    assert wide.inside[-1].text == "… 99,900 more"
    both = value_tree([[[list(range(100))] * 100] * 100] * 100)
    assert size(both) < 12_000
    (long,) = value_tree(["x" * 1_000_000]).inside
    assert len(long.text) < 5_000


def test_text_and_search() -> None:
    assert value_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
    assert holds({"a": [{"b": HIDDEN}]}, HIDDEN)
    assert not holds({"a": [{"b": f"x{HIDDEN}"}]}, HIDDEN)
