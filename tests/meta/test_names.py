"""One name, one thing: no two public classes are called the same."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.meta.tree import parsed, python_files, shown

TWINS: frozenset[str] = frozenset({"Binder"})
"""Names that two classes still share."""


def test_no_two_public_classes_share_a_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in python_files("src"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{shown(path)}:{node.lineno}")
    assert {n: found for n, found in places.items() if len(found) > 1 and n not in TWINS} == {}
