"""Names explain themselves: no two public classes share one, and those in docstrings exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.meta.tree import SOURCE, parsed, python_files, shown


def test_no_two_public_classes_have_the_same_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in python_files("src"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(shown(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


_MODULE = re.compile(r"`((?:core|store|client|runtime|cli)(?:\.\w+)+)`")


def test_module_names_in_docstrings_and_comments_lead_somewhere() -> None:
    modules = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCE.rglob("*.py")
    }
    lost = [
        f"{shown(path)}: {name}"
        for path in python_files("src")
        for name in _MODULE.findall(path.read_text(encoding="utf-8"))
        if name not in modules
    ]
    assert lost == []
