"""`tests/` mirrors `src/`: whoever changes a module finds its tests by its path.

`src/holdfast/a/b.py` has `tests/a/test_b.py`, or a line in `covered_by.txt` with the file that
covers it: a file that drives the module from outside tests it better than a thin one of its own.
A covering file imports the module, or one that imports it, or it lies where tests drive whole
clients, commands, stores and workers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.meta.tree import ROOT, SOURCE, parsed, python_files, shown

LISTED: Final = Path(__file__).with_name("covered_by.txt")
FROM_OUTSIDE: Final = (
    "tests/cli/",
    "tests/client/",
    "tests/e2e/",
    "tests/faults/",
    "tests/runtime/child/",
    "tests/store/conformance/",
    "tests/web/",
)


def _modules() -> dict[str, Path]:
    """Every module by its dotted name, and the mirrored path of its tests."""
    found = {}
    for path in python_files("src"):
        if path.name != "__init__.py":
            inner = path.relative_to(SOURCE)
            mirrored = ROOT / "tests" / inner.parent / f"test_{inner.name}"
            found[".".join(("holdfast", *inner.with_suffix("").parts))] = mirrored
    return found


def _listed() -> list[tuple[str, str]]:
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return [(module, file) for module, _, file in (line.partition("\t") for line in lines)]


@cache
def _imported(path: Path) -> frozenset[str]:
    return frozenset(_names_imported(path))


def _names_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_every_module_has_a_test_file_or_says_which_one_covers_it() -> None:
    listed = {module for module, _ in _listed()}
    missing = [
        f"{module}: no {shown(mirrored)}, and no line in {shown(LISTED)}"
        for module, mirrored in _modules().items()
        if not mirrored.is_file() and module not in listed
    ]
    assert missing == []


def test_the_list_names_only_modules_without_a_test_file_of_their_own() -> None:
    modules = _modules()
    assert [module for module, _ in _listed() if module not in modules] == []
    assert [module for module, _ in _listed() if modules[module].is_file()] == []


def test_the_list_is_sorted_and_names_each_module_once() -> None:
    names = [module for module, _ in _listed()]
    assert names == sorted(set(names))


def test_covering_files_hold_tests_and_reach_the_module() -> None:
    sources = {name: SOURCE.parent / (name.replace(".", "/") + ".py") for name in _modules()}
    wrong = []
    for module, file in _listed():
        path = ROOT / file
        if not path.is_file() or not path.name.startswith("test_"):
            wrong.append(f"{module}: {file} is no file of tests")
        elif not file.startswith(FROM_OUTSIDE):
            direct = _imported(path)
            behind = (_imported(sources[name]) for name in direct if name in sources)
            if module not in direct.union(*behind):
                wrong.append(f"{module}: {file} does not reach it")
    assert wrong == []
