"""Nothing stored or received is ever turned into code: no pickle, marshal, eval or exec."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.meta.tree import parsed, python_files, shown

MODULES = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "code", "codeop"}
CALLS = {"eval", "exec", "compile", "__import__"}


def offences(tree: ast.Module) -> list[int]:
    """Lines that import or call what is banned."""
    lines: list[int] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                imported = {module.partition(".")[0]}
                if module == "builtins":
                    imported = {alias.name for alias in names} & CALLS
                    lines += [node.lineno] if imported else []
            case ast.Call(func=ast.Name(id=name), lineno=line) if name in CALLS:
                lines.append(line)
                continue
            case ast.Attribute(value=ast.Name(id="builtins"), attr=name, lineno=line):
                lines += [line] if name in CALLS else []
                continue
            case _:
                continue
        if imported & MODULES:
            lines.append(node.lineno)
    return lines


def test_the_source_has_none() -> None:
    found = [f"{shown(path)}:{n}" for path in python_files("src") for n in offences(parsed(path))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import os, marshal",
        "from pickle import loads",
        "def f():\n    from cloudpickle import dumps",
        "eval('1')",
        "x = [exec(s) for s in y]",
        "from builtins import eval as e",
        "import builtins\nbuiltins.exec('1')",
    ],
)
def test_the_gate_sees(text: str) -> None:
    assert offences(ast.parse(text)) != []


@pytest.mark.parametrize("text", ["re.compile('a')", "from holdfast.core import code", "x.eval()"])
def test_the_gate_lets_pass(text: str) -> None:
    assert offences(ast.parse(text)) == []


def test_sources_are_found() -> None:
    assert Path("src/holdfast/__init__.py") in {Path(shown(path)) for path in python_files("src")}
