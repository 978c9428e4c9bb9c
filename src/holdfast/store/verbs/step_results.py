"""What steps have given, put where it is wanted: arguments of a step, the value of a whole.

Owns the reading of values by reference (`core.workflows.inputs`). A step that handed over has no
result of its own: its value is read from what its scope returns, however deep. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import Raw, to_json
from holdfast.core.payload.failure import decode_error
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.inputs import (
    Missing,
    StoredFill,
    ValueOf,
    fill_arguments,
    fill_template,
    part_of,
    template_fills,
)
from holdfast.core.workflows.records import StepValue
from holdfast.store.op import Steps, reads
from holdfast.store.verbs import workflows

_LISTS = {"results", "outcomes", "successes"}
_AT_ONCE = 5_000
"""Steps whose values one statement reads."""


class _Given(NamedTuple):
    """What one step gave: its value, or its error, as JSON."""

    step: StepValue
    text: str
    is_ok: bool

    @property
    def outcome(self) -> str:
        return to_json({"ok" if self.is_ok else "err": Raw(self.text.encode())})


@reads
def arguments(
    scope_id: bytes, child_id: bytes, args: str, kwargs: str, fills: Sequence[StoredFill]
) -> Steps[tuple[str, str]]:
    """The arguments of a step with all values in their places; `Missing` if one is gone."""
    numbers = sorted({number for fill in fills for number in fill.steps})
    found = (yield from workflows.values(scope_id, numbers, child_id=child_id)) if numbers else []
    left = yield from _left([step.id for step in found if _has_left(step)])
    failure: str | None = None
    if any(fill.kind == "failure" for fill in fills):
        scope = yield from workflows.scope(scope_id)
        failure = None if scope is None or scope.error is None else _error(scope.error)
    return fill_arguments(args, kwargs, fills, _values(found, left, failure))


@reads
def result(scope_id: bytes) -> Steps[str]:
    """The value of a workflow, or of a step that handed over, as JSON; `Missing` if it is gone."""
    return (yield from _left([scope_id]))[scope_id]


class _ReadScope(NamedTuple):
    """What a scope returns, and the steps that it takes that from."""

    returns: str | None
    steps: Sequence[StepValue]


def _left(scopes: Sequence[bytes]) -> Steps[dict[bytes, str]]:
    """The values of these scopes, as JSON.

    A value may be that of another scope, and so on, however deep: they are read a level at a time,
    and put together from the deepest up.
    """
    found: dict[bytes, _ReadScope] = {}
    level = [*dict.fromkeys(scopes)]
    while level:
        read = yield from workflows.scopes(level)
        wanted: list[tuple[bytes, int]] = []
        for scope_id in level:
            if scope_id not in read:
                raise Missing("the workflow has been deleted")
            returns = read[scope_id].returns
            fills = () if returns is None else template_fills(returns)
            wanted += sorted({(scope_id, number) for fill in fills for number in fill.steps})
        values: dict[bytes, list[StepValue]] = {}
        for at in range(0, len(wanted), _AT_ONCE):
            for scope_id, some in (
                yield from workflows.values_of(wanted[at : at + _AT_ONCE])
            ).items():
                values.setdefault(scope_id, []).extend(some)
        for scope_id in level:
            found[scope_id] = _ReadScope(read[scope_id].returns, values.get(scope_id, ()))
        below = [step.id for scope_id in level for step in found[scope_id].steps if _has_left(step)]
        level = [id for id in dict.fromkeys(below) if id not in found]
    texts: dict[bytes, str] = {}
    for scope_id, (returns, steps) in reversed(found.items()):
        texts[scope_id] = (
            "null" if returns is None else fill_template(returns, _values(steps, texts, None))
        )
    return texts


def _has_left(step: StepValue) -> bool:
    """Whether its value is what the steps that it added have left."""
    return step.status is TaskStatus.COMPLETED and step.handed_over


def _values(steps: Sequence[StepValue], left: Mapping[bytes, str], failure: str | None) -> ValueOf:
    """What stands for a place, given all steps that places refer to."""
    given: dict[int, _Given] = {}
    for step in steps:
        if step.status is not TaskStatus.COMPLETED:
            given[step.number] = _Given(step, _error(step), False)
        elif step.handed_over:
            given[step.number] = _Given(step, left[step.id], True)
        else:
            given[step.number] = _Given(step, step.result or "null", True)

    def value_of(fill: StoredFill) -> Raw:
        return part_of(_text(fill, given, failure), fill.path, _shown(fill, given))

    return value_of


def _shown(fill: StoredFill, given: dict[int, _Given]) -> str:
    """What a place refers to, for messages."""
    if fill.kind == "failure":
        return "the first failure of the workflow"
    steps = [given[number].step.shown for number in fill.steps if number in given]
    return (
        f"the {fill.kind.removesuffix('s')} of {steps[0]}"
        if len(steps) == 1
        else (f"what is taken of {', '.join(steps[:3])}{', …' if len(steps) > 3 else ''}")
    )


def _text(fill: StoredFill, given: dict[int, _Given], failure: str | None) -> str:
    if fill.kind == "failure":
        if failure is None:
            raise Missing("the first failure of the workflow cannot be found")
        return failure
    absent = [number for number in fill.steps if number not in given]
    if absent:
        raise Missing(f"step {absent[0]} of the workflow is gone")
    steps = [given[number] for number in fill.steps]
    if fill.kind in ("first", "successes"):
        counted = [one for one in steps if one.is_ok and one.step.satisfied]
        # The whole's own value, and a step whose edges were resolved by hand, have none.
        met = counted or [one for one in steps if one.is_ok]
        if not met:
            raise Missing("none of the steps that were waited for has a value any more")
        return met[0].text if fill.kind == "first" else _array(one.text for one in met)
    if fill.kind in ("outcome", "outcomes"):
        told = [one.outcome for one in steps]
    else:
        wants_value = fill.kind != "error"
        odd = next((one for one in steps if one.is_ok is not wants_value), None)
        if odd is not None:
            what = "value" if wants_value else "error"
            raise Missing(f"{odd.step.shown} is {odd.step.status.value} and has no {what}")
        told = [one.text for one in steps]
    return _array(told) if fill.kind in _LISTS else told[0]


def _array(texts: Iterable[str]) -> str:
    return to_json([Raw(text.encode()) for text in texts])


def _error(step: StepValue) -> str:
    """An error with all its fields, as a parameter of the type `TaskError` takes it."""
    try:
        error = decode_error(step.result or "")
    except PayloadError:
        error = TaskError(f"STEP_{step.status.value}", f"the step is {step.status.value}")
    return to_json(error)
