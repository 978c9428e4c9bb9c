"""A step of a workflow that is being built, and what others can take of it.

Owns the typed surface: `.result` is typed as the value that the step will give, and is a
placeholder. What waits for it, and for which of its ends, is noted by the builder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, Union, cast, overload

from holdfast.core.errors import ConfigError
from holdfast.core.records import On
from holdfast.core.result import TaskError, TaskResult
from holdfast.core.workflows.placeholder import Kind, NotAValue, Placeholder, Reference

__all__ = ["Step", "StepEnd", "Steps", "any_of", "at_least"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StepEnd(NotAValue):
    """An end of steps to wait for, without a value: `after=[raw.ended]`."""

    owner: object
    steps: tuple[tuple[int, On], ...]
    text: str
    needed: int | None = None
    """How many of them: None all."""
    is_of_all: bool = False
    """`wf.ended`."""
    is_join: bool = False
    """Made by `any_of` or `at_least` of steps, not of their ends."""
    cleanup: bool = False

    def remedy(self) -> str:
        return f"{self.text} has no value: give it as wf.options(after=[…])"


class Step(NotAValue, Generic[R_co]):
    """One step: `.result`, `.error` and `.outcome` stand for what it will give.

    raw = wf.step(extract, day)
    wf.step(load, raw.result.rows)
    """

    __slots__ = ("_index", "_kind", "_owner", "name")

    def __init__(self, owner: object, index: int, name: str, kind: Any) -> None:
        self._owner = owner
        self._index = index
        self._kind = kind
        self.name = name
        """What it is called in this workflow."""

    @property
    def result(self) -> R_co:
        """Its value. Who takes it waits for its success."""
        return cast("R_co", self._placeholder("result", self._kind))

    @property
    def error(self) -> TaskError:
        """Its error. Who takes it runs only if this one did not succeed."""
        return cast("TaskError", self._placeholder("error", TaskError))

    @property
    def outcome(self) -> TaskResult[R_co, TaskError]:
        """Its value or its error. Who takes it runs however this one ended."""
        found = self._placeholder("outcome", _outcome_kind(self._kind))
        return cast("TaskResult[R_co, TaskError]", found)

    @property
    def succeeded(self) -> StepEnd:
        """For `after=`: it has COMPLETED."""
        return self._end("success", "succeeded")

    @property
    def failed(self) -> StepEnd:
        """For `after=`: it has ended, and not COMPLETED."""
        return self._end("failure", "failed")

    @property
    def ended(self) -> StepEnd:
        """For `after=`: it has ended, however."""
        return self._end("always", "ended", cleanup=True)

    def remedy(self) -> str:
        return f"{self.name} is a step: write {self.name}.result for its value"

    def _placeholder(self, kind: Kind, value: Any) -> Placeholder:
        text = f"{self.name}.{kind}"
        return Placeholder(Reference(self._owner, kind, (self._index,), value, text))

    def _end(self, on: On, word: str, *, cleanup: bool = False) -> StepEnd:
        text = f"{self.name}.{word}"
        return StepEnd(self._owner, ((self._index, on),), text, cleanup=cleanup)

    def __repr__(self) -> str:
        return f"<Step {self.name}>"


class Steps(NotAValue, Generic[R_co]):
    """The steps of a map, in the order of its items.

    Over a list that another step gives they are not known yet: then there is one step that stands
    for all of them, and they cannot be had one by one.
    """

    __slots__ = ("_kind", "_owner", "_steps", "_whole", "name")

    def __init__(
        self,
        owner: object,
        name: str,
        kind: Any,
        steps: Sequence[Step[R_co]] | None,
        whole: int | None = None,
    ) -> None:
        self._owner = owner
        self._kind = kind
        self._steps = steps
        self._whole = whole
        self.name = name
        """What the map is called in this workflow."""

    @property
    def result(self) -> list[R_co]:
        """Their values. Who takes them waits for the success of all."""
        return cast("list[R_co]", self._placeholder("result", self._kind))

    @property
    def outcome(self) -> list[TaskResult[R_co, TaskError]]:
        """Of each its value or its error. Who takes them runs however they ended."""
        self.known(f"{self.name}.outcome")
        found = self._placeholder("outcome", _outcome_kind(self._kind))
        return cast("list[TaskResult[R_co, TaskError]]", found)

    @property
    def succeeded(self) -> StepEnd:
        """For `after=`: all have COMPLETED."""
        return self._end("success", "succeeded")

    @property
    def failed(self) -> StepEnd:
        """For `after=`: one of them has ended, and not COMPLETED."""
        needed = None if self._steps is None else 1
        return self._end("failure", "failed", needed=needed)

    @property
    def ended(self) -> StepEnd:
        """For `after=`: all have ended, however."""
        return self._end("always", "ended", cleanup=True)

    def remedy(self) -> str:
        return f"{self.name} is a map: write {self.name}.result for the list of its values"

    def known(self, what: str) -> Sequence[Step[R_co]]:
        """The steps; refused where they are not known yet."""
        if self._steps is None:
            raise ConfigError(
                f"{what} needs the steps of {self.name} one by one, and they are known only when "
                "the list is: map over a list that is known now, or do it inside a task"
            )
        return self._steps

    @property
    def is_known(self) -> bool:
        """Whether its steps are known one by one."""
        return self._steps is not None

    def indexes(self) -> tuple[int, ...]:
        """Their places among all steps of the workflow; for Holdfast's own use."""
        if self._whole is not None:
            return (self._whole,)
        return tuple(step._index for step in self._steps or ())

    def __iter__(self) -> Iterator[Step[R_co]]:
        return iter(self.known("a loop"))

    def __getitem__(self, index: int) -> Step[R_co]:
        return self.known(f"{self.name}[{index!r}]")[index]

    def __len__(self) -> int:
        return len(self.known("len()"))

    def __bool__(self) -> bool:
        return bool(self.known("a test"))

    def _placeholder(self, what: str, kind: Any) -> Placeholder:
        one = self._whole is not None
        word: Kind = cast("Kind", what if one else f"{what}s")
        text = f"{self.name}.{what}"
        return Placeholder(Reference(self._owner, word, self.indexes(), list[kind], text))

    def _end(
        self, on: On, word: str, *, needed: int | None = None, cleanup: bool = False
    ) -> StepEnd:
        ends: tuple[tuple[int, On], ...] = tuple((index, on) for index in self.indexes())
        return StepEnd(self._owner, ends, f"{self.name}.{word}", needed, cleanup=cleanup)

    def __repr__(self) -> str:
        return f"<Steps {self.name}>"


def _outcome_kind(kind: Any) -> Any:
    return TaskResult[kind, TaskError]


@overload
def any_of(a: Step[A], b: Step[B], /) -> A | B: ...
@overload
def any_of(a: Step[A], b: Step[B], c: Step[C], /) -> A | B | C: ...
@overload
def any_of(*steps: Step[T]) -> T: ...
@overload
def any_of(steps: Steps[T] | Iterable[Step[T]], /) -> T: ...
@overload
def any_of(*ends: StepEnd) -> StepEnd: ...
@overload
def any_of(ends: Iterable[StepEnd], /) -> StepEnd: ...


def any_of(*things: Any) -> Any:
    """The first success among steps, or the first among ends of steps.

    The others run on, and the whole may complete without them.
    """
    one = len(things) == 1 and not isinstance(things[0], Step | StepEnd | Placeholder)
    return _join(things[0] if one else things, 1, "any_of", "first")


@overload
def at_least(n: int, steps: Steps[T] | Iterable[Step[T]], /) -> list[T]: ...
@overload
def at_least(n: int, ends: Iterable[StepEnd], /) -> StepEnd: ...


def at_least(n: int, things: Any, /) -> Any:
    """The values of those that have succeeded when `n` of these steps have."""
    if type(n) is not int or n < 1:
        raise ConfigError(f"at_least({n!r:.100}, …) makes no sense: give a number from 1 on")
    return _join(things, n, "at_least", "successes")


def _join(things: Any, n: int, word: str, kind: Kind) -> Any:
    what = f"{word}({n}, …)" if word == "at_least" else f"{word}(…)"
    found = list(things.known(what) if isinstance(things, Steps) else things)
    if len(found) < n:
        raise ConfigError(f"{what} over {len(found)} steps could never be satisfied")
    odd = next((one for one in found if not isinstance(one, Step | StepEnd)), None)
    if odd is not None:
        raise ConfigError(f"{what} takes steps, not {odd!r:.100}: write {word}(a, b), not a.result")
    ends = [one for one in found if isinstance(one, StepEnd)]
    owner = found[0]._owner if isinstance(found[0], Step) else found[0].owner
    for one in found:
        if (one._owner if isinstance(one, Step) else one.owner) is not owner:
            raise ConfigError(f"{what} joins steps of two workflows")
    if ends:
        if len(ends) < len(found) or any(end.is_of_all or end.needed for end in ends):
            raise ConfigError(f"{what} takes steps, or ends of single steps, not both")
        pairs = tuple(pair for end in ends for pair in end.steps)
        text = f"{word}({', '.join(end.text for end in ends[:5])})"
        return StepEnd(owner, pairs, text, n, cleanup=all(end.cleanup for end in ends))
    steps = cast("list[Step[Any]]", found)
    text = f"{word}({', '.join(step.name for step in steps[:5])})"
    kinds = tuple(dict.fromkeys(step._kind for step in steps if step._kind is not Any))
    value: Any = Any
    if kinds and all(step._kind is not Any for step in steps):
        value = kinds[0] if len(kinds) == 1 else Union[kinds]  # noqa: UP007  (of a tuple)
    if kind == "successes":
        value = list[value]
    indexes = tuple(dict.fromkeys(step._index for step in steps))
    return Placeholder(Reference(owner, kind, indexes, value, text, needed=n))
