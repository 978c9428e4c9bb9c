"""Names explain themselves: no two public classes share one, so that a name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.meta.tree import parsed, python_files, shown


def test_no_two_public_classes_have_the_same_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in python_files("src"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(shown(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
