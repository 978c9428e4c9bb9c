"""The SQL files: dialects come in pairs, names are used, and each used name exists."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.meta.tree import SOURCE, parsed, python_files, shown

SQL = SOURCE / "store" / "sql"
DIALECTS = {"postgres", "sqlite"}


def statements() -> dict[str, dict[str, Path]]:
    """Name → dialect → file; the dialect of a shared file is the empty string."""
    found: defaultdict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(SQL.glob("*.sql")):
        name, _, dialect = path.name.removesuffix(".sql").partition(".")
        found[name][dialect] = path
    return dict(found)


def test_a_dialect_never_stands_alone() -> None:
    for name, dialects in statements().items():
        assert set(dialects) in ({""}, DIALECTS), f"{name}: {sorted(dialects)}"


def test_a_pair_says_why_it_is_one() -> None:
    silent = [
        shown(path)
        for dialects in statements().values()
        for dialect, path in dialects.items()
        if dialect and not path.read_text(encoding="utf-8").startswith("-- ")
    ]
    assert silent == []


def test_a_shared_pair_is_not_the_same_text_twice() -> None:
    def body(path: Path) -> str:
        lines = path.read_text(encoding="utf-8").splitlines()
        return " ".join(line.strip() for line in lines if not line.startswith("--"))

    for name, dialects in statements().items():
        texts = [body(path) for path in dialects.values()]
        assert len(set(texts)) == len(texts), f"{name}: one shared file would do"


def test_every_name_asked_for_exists() -> None:
    names = set(statements())
    for path in python_files("src"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and _called(node) == "Statement" and node.args:
                for name in _strings(node.args[0]):
                    assert name in names, f"{shown(path)}:{node.lineno} asks for {name!r}"


def test_every_file_is_used() -> None:
    spoken: set[str] = set()
    for path in python_files("src"):
        spoken.update(
            node.value
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
    assert sorted(set(statements()) - spoken) == []


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _strings(node: ast.expr) -> list[str]:
    """The names an argument may have: a literal, or a choice between literals."""
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.IfExp(body=body, orelse=orelse):
            return _strings(body) + _strings(orelse)
    return []
