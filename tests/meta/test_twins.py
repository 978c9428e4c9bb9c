"""Every method that may block, `x`, has an async twin, `ax`, with the same signature."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterator
from typing import Any

import holdfast

CLASSES = ("Call", "Holdfast", "Task", "TaskHandle", "Workflow", "WorkflowHandle")

# Public methods that never wait for the store, so they need no twin.
IMMEDIATE: dict[str, set[str]] = {
    "Call": {"build", "then", "to_mermaid"},
    "Holdfast": {"named", "named_workflow", "options", "trace_with", "using", "worker"},
    "Task": {"call", "options"},
    "TaskHandle": set(),
    "Workflow": {"added", "as_part", "map", "options", "plan", "returns", "step", "to_mermaid"},
    "WorkflowHandle": set(),
}


def twin_of(name: str) -> str:
    """`aget` of `get`; but `await` is Python's own word, so `wait` has `await_`."""
    twin = f"a{name}"
    return f"{twin}_" if keyword.iskeyword(twin) else twin


def methods(cls: type) -> dict[str, Callable[..., Any]]:
    return {
        name: member
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def pairs() -> Iterator[tuple[str, str, dict[str, Callable[..., Any]]]]:
    """(class, blocking method, all methods) for each class that is public by now."""
    for class_name in set(CLASSES) & set(holdfast.__all__):
        found = methods(getattr(holdfast, class_name))
        twins = {twin_of(name) for name in found} & set(found)
        for name in found.keys() - twins - IMMEDIATE[class_name]:
            yield class_name, name, found


def test_every_blocking_method_has_its_twin() -> None:
    alone = [f"{cls}.{name}" for cls, name, found in pairs() if twin_of(name) not in found]
    assert sorted(alone) == []


def test_twins_are_coroutines_or_async_iterators() -> None:
    for cls, name, found in pairs():
        twin = found[twin_of(name)]
        waits = inspect.iscoroutinefunction(twin) or inspect.isasyncgenfunction(twin)
        assert waits or "Async" in str(inspect.signature(twin).return_annotation), f"{cls}.a{name}"
        assert not inspect.iscoroutinefunction(found[name]), f"{cls}.{name}"


def test_twins_have_one_signature() -> None:
    for cls, name, found in pairs():
        ours = inspect.signature(found[name])
        theirs = inspect.signature(found[twin_of(name)])
        assert list(ours.parameters.values()) == list(theirs.parameters.values()), f"{cls}.{name}"
        assert _returned(ours) == _returned(theirs), f"{cls}.{name}"


def _returned(signature: inspect.Signature) -> str:
    return str(signature.return_annotation).replace("Async", "")


def test_the_list_of_immediate_methods_has_no_leftovers() -> None:
    for class_name, names in IMMEDIATE.items():
        if class_name in holdfast.__all__:
            assert names <= set(methods(getattr(holdfast, class_name)))
