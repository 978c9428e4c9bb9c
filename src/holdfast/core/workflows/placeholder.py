"""What `step.result` is until the step has run: it stands for a value, and is none.

Owns the recording of `[key]` and `.field`, each checked against the annotation where it is
written, and the refusal of everything else: what a program does with a value that is not there
yet would be done to the wrong thing, and the line that does it is where that must be said.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.core.workflows.value_kind import Key, NoMember, member

__all__ = ["Kind", "NotAValue", "Placeholder", "Reference", "reference_of"]

Kind: TypeAlias = Literal[
    "result", "error", "outcome", "results", "outcomes", "first", "successes", "failure"
]
"""What is taken of the steps that a reference names. The plurals are lists, in their order;
"first" and "successes" are of `any_of` and `at_least`; "failure" is `wf.error`."""


class Reference(NamedTuple):
    """Which value a placeholder stands for."""

    owner: object
    """The builder whose steps these are."""
    kind: Kind
    steps: tuple[int, ...]
    value: Any
    """The annotation of the value."""
    text: str
    """As it was written, for messages: `raw.result.rows`."""
    path: tuple[Key, ...] = ()
    needed: int | None = None
    """How many of the steps must succeed: of "first" and "successes"."""

    def at(self, key: Key, *, attribute: bool) -> Reference:
        """The part of it that `.key` or `[key]` stands for."""
        text = f"{self.text}.{key}" if attribute else f"{self.text}[{key!r}]"
        try:
            found = member(self.value, key, attribute=attribute)
        except NoMember as why:
            raise ConfigError(f"{text} does not exist: {why}") from None
        return self._replace(value=found.kind, path=(*self.path, found.key), text=text)


class NotYetKnown(TypeError):
    """Something was done with a value that is known only when its step has run."""


class NotAValue:
    """A step, or a moment of one: what is often written where its value is meant."""

    __slots__ = ()

    def remedy(self) -> str:
        """What to write instead."""
        raise NotImplementedError


class Placeholder:
    """Stands for a value of a step; `[key]` and `.field` stand for its parts."""

    __slots__ = ("_holdfast_reference",)

    _holdfast_reference: Reference

    def __init__(self, reference: Reference) -> None:
        object.__setattr__(self, "_holdfast_reference", reference)

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("_"):
            raise AttributeError(name)
        return Placeholder(self._holdfast_reference.at(name, attribute=True))

    def __getitem__(self, key: Key) -> Placeholder:
        if type(key) is not str and type(key) is not int:
            self._refuse()
        return Placeholder(self._holdfast_reference.at(key, attribute=False))

    def __repr__(self) -> str:
        return f"<{self._holdfast_reference.text}>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotYetKnown(
            f"{self._holdfast_reference.text} is known only when that step has run: only [key] "
            "and .field can be taken of it here, everything else is done inside a task"
        )

    __setattr__ = __delattr__ = _refuse
    __iter__ = __len__ = __bool__ = __call__ = __contains__ = __reversed__ = _refuse
    __setitem__ = __delitem__ = __await__ = __aiter__ = __enter__ = __exit__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __lshift__ = __rshift__ = __neg__ = __pos__ = __abs__ = __invert__ = __divmod__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = __round__ = _refuse
    __str__ = __format__ = __bytes__ = __fspath__ = _refuse
    __reduce_ex__ = __copy__ = _refuse
    __hash__ = _refuse  # it is equal to nothing


_KIND: Final = Placeholder


def reference_of(value: object) -> Reference | None:
    """What a value refers to, if it is a placeholder."""
    if type(value) is _KIND:
        return value._holdfast_reference
    return None
