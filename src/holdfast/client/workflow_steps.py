"""The steps of a workflow: all of them, those of its parts among them, or one by its name.

Owns the names of steps within parts: a step `load` of the part that step `nightly` is, is
`nightly/load` for the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from holdfast.client.workflow_verbs import one
from holdfast.core.errors import TaskNotFound, UnreadableRow
from holdfast.core.workflows.records import StepRecord, StepValue
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import workflows

__all__ = ["first_bad", "read_steps", "step_named", "with_parts"]

_PAGE: Final = 1000
_MOST_PARTS: Final = 100
"""Of how many parts the steps are shown among those of the whole."""
_DEEPEST: Final = 100
_MOST_NAMES: Final = 20


def read_steps(
    workflow_id: bytes, unreadable: list[UnreadableRow] | None = None
) -> Steps[list[StepRecord]]:
    """The steps of a workflow itself, in the order in which they were built."""
    found: list[StepRecord] = []
    after: bytes | None = bytes(16)
    while after is not None:
        page, after = yield from workflows.steps(
            workflow_id, after=after, limit=_PAGE, unreadable=unreadable
        )
        found += page
    return sorted(found, key=lambda step: (step.scope_id != workflow_id, step.number))


def with_parts(
    steps: Sequence[StepRecord], unreadable: list[UnreadableRow]
) -> Steps[list[StepRecord]]:
    """These, and those of the workflows that some of them are."""
    found = [*steps]
    parts = deque(_parts(steps))
    for _ in range(_MOST_PARTS):
        if not parts:
            break
        part = parts.popleft()
        own = [
            replace(step, name=f"{part.name}/{step.name}")
            for step in (yield from read_steps(part.id, unreadable))
        ]
        found += own
        parts.extend(_parts(own))
    return found


def _parts(steps: Iterable[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step.hidden == "workflow" and step.handed_over]


@reads
def step_named(workflow_id: bytes, name: str) -> Steps[StepRecord]:
    """The step of this name, which may be one of a part; `TaskNotFound` if there is none."""
    yield from one(workflow_id)
    steps = yield from read_steps(workflow_id)
    rest, named = name, steps
    for _ in range(_DEEPEST):
        found = next((step for step in named if step.name == rest), None)
        if found is not None:
            return found
        above = [step for step in named if step.handed_over and rest.startswith(f"{step.name}/")]
        if not above:
            break
        adder = max(above, key=lambda step: len(step.name))
        rest = rest.removeprefix(f"{adder.name}/")
        # Its own, if it is a workflow; or among those of the workflow that it was added to.
        own = yield from read_steps(adder.id)
        named = own or [step for step in named if step.scope_id == adder.id]
    names = [step.name for step in steps[:_MOST_NAMES]]
    raise TaskNotFound(name, steps=[*names, "…"] if len(steps) > _MOST_NAMES else names)


def first_bad(workflow_id: bytes) -> Steps[tuple[str | None, StepValue] | None]:
    """The step whose bad ending was the first of a workflow, and the name of the one behind it: of
    those that it added, if it had added some."""
    scope = yield from workflows.scope(workflow_id)
    first = None if scope is None else scope.error
    if first is None:
        return None
    name, bad = first.name, first
    for _ in range(_DEEPEST):
        scope = (yield from workflows.scope(bad.id)) if bad.handed_over else None
        if scope is None or scope.error is None:
            break
        bad = scope.error
        # The items of a map have the name of the map.
        of_map = name is None or (bad.name or "").startswith(f"{name}[")
        name = bad.name if of_map else f"{name}/{bad.name}"
    return name, first
