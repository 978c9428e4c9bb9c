"""Everything that the client can do works inside a task: its statements are on the relay's list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.runtime.supervisor.relay import permissions

SOURCE = Path(holdfast.__file__).parent
VERBS = "holdfast.store.verbs"
OF_OPERATORS = {"delete_unreadable"}
"""It deletes rows whatever their status: no task may do that to its neighbours."""


def _functions() -> dict[str, ast.FunctionDef]:
    """Every function of the verbs, by module and name."""
    found = {}
    for path in (SOURCE / "store/verbs").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found[f"{path.stem}.{node.name}"] = node
    return found


def _names(module: str) -> dict[str, str]:
    """What a module of the verbs calls functions of the others."""
    found = {}
    for node in ast.walk(ast.parse((SOURCE / f"store/verbs/{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(VERBS):
            for alias in node.names:
                home = node.module.removeprefix(VERBS).lstrip(".")
                found[alias.asname or alias.name] = f"{home}.{alias.name}" if home else alias.name
    return found


def _statements(verb: str, functions: dict[str, ast.FunctionDef], seen: set[str]) -> Iterator[str]:
    if verb in seen or verb not in functions:
        return
    seen.add(verb)
    module = verb.partition(".")[0]
    imported = _names(module)
    for node in ast.walk(functions[verb]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name == "Statement" and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
            else:
                yield from _statements(imported.get(name, f"{module}.{name}"), functions, seen)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = imported.get(node.value.id)
            if home is not None:
                yield from _statements(f"{home}.{node.attr}", functions, seen)


def _verbs_of_the_client() -> set[str]:
    found = set()
    for path in (*(SOURCE / "client").rglob("*.py"), SOURCE / "runtime/child/checkpoint.py"):
        tree = ast.parse(path.read_text())
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == VERBS:
                modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{VERBS}."):
                home = (node.module or "").rpartition(".")[2]
                found |= {f"{home}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=verb) if name in modules:
                    found.add(f"{modules[name]}.{verb}")
    return found


def test_everything_that_the_client_can_do_works_inside_a_task() -> None:
    functions = _functions()
    asked: set[str] = set()
    for verb in _verbs_of_the_client():
        asked |= set(_statements(verb, functions, set()))
    assert {"submit", "cancel", "endings", "resubmit", "write_checkpoint"} <= asked
    forbidden = asked - permissions.ALLOWED - OF_OPERATORS
    assert forbidden == set(), "add them to the list, if a task may ask that"
