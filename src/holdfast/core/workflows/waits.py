"""What one step waits for, put together from its arguments and from `after`.

Owns the rules of edges: one kind for each parent, joins alone, tails behind tails. Each refusal
names the step and both of what it was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.core.records import On
from holdfast.core.workflows.placeholder import Kind, Reference
from holdfast.core.workflows.plan import StepEdge, Tail
from holdfast.core.workflows.step import StepEnd

__all__ = ["StepWaits", "Taken"]

Taken: TypeAlias = Literal["join", "outcome", "other"]
"""How a step is taken by a later one; who is taken by the first two only, may fail."""

_ON: Final[dict[Kind, On]] = {
    "result": "success",
    "results": "success",
    "first": "success",
    "successes": "success",
    "error": "failure",
    "outcome": "always",
    "outcomes": "always",
}


class EarlierStep(Protocol):
    """An earlier step, as far as a later one needs it."""

    @property
    def name(self) -> str: ...

    @property
    def waits(self) -> StepWaits: ...


class StepWaits:
    """What a step waits for."""

    __slots__ = ("_earlier", "_step", "_words", "cleanup", "edges", "handler", "needed", "taken",
                 "tail")  # fmt: skip

    def __init__(self, step: str, earlier: Sequence[EarlierStep]) -> None:
        self._step = step
        self._earlier = earlier
        self._words: list[str] = []
        """What it waits for, as it was written."""
        self.edges: dict[int, On] = {}
        self.taken: dict[int, Taken] = {}
        self.needed: int | None = None
        self.tail: Tail | None = None
        self.handler = False
        self.cleanup = False

    def take(self, reference: Reference) -> None:
        """It takes this value."""
        if reference.kind == "failure":
            self._release("error", reference.text)
            return
        on = _ON[reference.kind]
        how: Taken = "other"
        if reference.needed is not None:
            how = "join"
            self._join(reference.steps, reference.needed, reference.text)
        elif on == "always":
            how = "outcome"
        elif self.needed is not None:
            raise self._not_alone(reference.text)
        for parent in reference.steps:
            self._edge(parent, on, reference.text, how)
        self._words.append(reference.text)

    def wait(self, end: StepEnd) -> None:
        """It waits for this end."""
        if end.is_of_all:
            self._release("ended", end.text)
            return
        parents = tuple(parent for parent, _ in end.steps)
        if end.needed is not None:
            self._join(parents, end.needed, end.text)
        elif self.needed is not None:
            raise self._not_alone(end.text)
        for parent, on in end.steps:
            self._edge(parent, on, end.text, "join" if end.is_join else "other")
        self.cleanup |= end.cleanup
        self._words.append(end.text)

    def settle(self) -> None:
        """Everything has been said: what follows from the steps before it."""
        before = [self._earlier[parent] for parent in self.edges]
        behind = [one for one in before if one.waits.tail is not None]
        if behind and self.tail is None:
            other = next((one for one in before if one.waits.tail is None), None)
            if other is not None:
                raise ConfigError(
                    f"step {self._step!r} follows {behind[0].name!r}, which waits for the whole, "
                    f"and {other.name!r}, which does not: let it wait for wf.ended itself"
                )
            self.tail = "below"
        above = [one.waits for one in before]
        self.cleanup |= self.tail == "ended" or any(one.cleanup for one in above)
        self.handler = (
            self.tail is not None
            or self.cleanup
            or any(on != "success" for on in self.edges.values())
            or any(one.handler for one in above)
        )

    def as_edges(self) -> tuple[StepEdge, ...]:
        """The edges of the plan, by parent."""
        return tuple(StepEdge(parent, on) for parent, on in sorted(self.edges.items()))

    def _edge(self, parent: int, on: On, text: str, how: Taken) -> None:
        known = self.edges.setdefault(parent, on)
        if known != on:
            name = self._earlier[parent].name
            raise ConfigError(
                f"step {self._step!r} waits for the {known} and the {on} of {name!r} "
                f"({', '.join(self._words)}, {text}): it can wait for one of them only; take "
                f"{name}.outcome, or make two steps"
            )
        if self.taken.setdefault(parent, how) != how:
            self.taken[parent] = "other"

    def _join(self, parents: tuple[int, ...], needed: int, text: str) -> None:
        again = self.needed == needed and set(parents) == set(self.edges)
        if self._words and not again:
            raise self._not_alone(text)
        self.needed = needed

    def _release(self, tail: Tail, text: str) -> None:
        if self.tail not in (None, tail):
            raise ConfigError(
                f"step {self._step!r} waits for wf.error and for wf.ended: it can wait for one "
                "of them only; make two steps"
            )
        if self.needed is not None:
            raise self._not_alone(text)
        self.tail = tail

    def _not_alone(self, text: str) -> ConfigError:
        words = ", ".join(dict.fromkeys((*self._words, text)))
        return ConfigError(
            f"step {self._step!r} waits for {words}: any_of, at_least and the .failed of a map "
            "can only be all that a step waits for; put a step between"
        )
