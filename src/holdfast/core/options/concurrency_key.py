"""Whose turn a call takes: the concurrency key, and the template that makes it from arguments.

Owns the key's checks. A template names parameters of the task, as in "{tenant}" or
"{host}:{port}"; one that names anything else fails where the task is defined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any, Final

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.payload.signature import argument_path
from holdfast.core.secret import Secret

__all__ = ["LONGEST_KEY", "KeyTemplate", "check_key"]

LONGEST_KEY: Final = 255
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def check_key(key: object) -> str:
    """A concurrency key: 1 to 255 characters without NUL."""
    wrong = _wrong(key)
    if wrong is not None:
        raise ConfigError(
            f"concurrency_key={key!r:.300} {wrong}: give 1 to {LONGEST_KEY} characters",
            option="concurrency_key",
        )
    assert isinstance(key, str)
    return key


def _wrong(key: object) -> str | None:
    if not isinstance(key, str):
        return "is not a string"
    if not key:
        return "is empty"
    if len(key) > LONGEST_KEY:
        return f"has {len(key)} characters"
    if "\x00" in key:
        return "has a NUL in it"
    try:
        key.encode()
    except UnicodeEncodeError:
        return "is not text"
    return None


class KeyTemplate:
    """Makes the key of a call from its arguments."""

    __slots__ = ("_parts", "text")

    def __init__(self, text: object, function: Callable[..., Any], name: str) -> None:
        if not isinstance(text, str) or not text:
            raise _unusable(text, name, "it is not a text such as '{tenant}'")
        self.text = text
        parameters = list(inspect.signature(function).parameters.values())
        by_name = {p.name: (place, p) for place, p in enumerate(parameters)}
        self._parts: list[tuple[str, str | None, int, Any]] = []
        """Fixed text before it, and a parameter: its name, its place among the positional ones
        (-1: none), and its default."""
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise _unusable(text, name, str(error)) from None
        for before, field, spec, conversion in parsed:
            if field is None:
                self._parts.append((before, None, -1, None))
                continue
            if spec or conversion:
                raise _unusable(text, name, f"{{{field}…}} has a format: name the parameter only")
            if field not in by_name or by_name[field][1].kind not in (*_NAMED, *_POSITIONAL):
                known = ", ".join(n for n, (_, p) in by_name.items() if p.kind in _NAMED)
                raise _unusable(
                    text, name, f"it has no parameter {field!r} (there is {known or 'none'})"
                )
            place, parameter = by_name[field]
            place = place if parameter.kind in _POSITIONAL else -1
            self._parts.append((before, field, place, parameter.default))
        if not any(field for _, field, *_ in self._parts):
            raise _unusable(text, name, "it names no parameter; give one as in '{tenant}'")

    def __repr__(self) -> str:
        return f"<KeyTemplate {self.text!r}>"

    def fill(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The key of a call; None if what it is made of is None: the call has no key."""
        parts: list[str] = []
        path: str | None = None
        for before, field, place, default in self._parts:
            parts.append(before)
            if field is None:
                continue
            is_placed = 0 <= place < len(args)
            value = args[place] if is_placed else kwargs.get(field, default)
            path = argument_path(place if is_placed else field)
            if value is None:
                return None
            if isinstance(value, Secret):
                raise PayloadError(
                    f"the concurrency key {self.text!r} is made of the secret {field}, and keys "
                    "are shown: name another parameter, or options(concurrency_key=…)",
                    path=path,
                )
            if isinstance(value, list | tuple | dict | set | frozenset | bytes):
                raise PayloadError(
                    f"the concurrency key {self.text!r} is made of {field}={value!r:.100}, which "
                    "is no single value: name a parameter that is a text or a number",
                    path=path,
                )
            parts.append(str(value))
        key = "".join(parts)
        wrong = _wrong(key)
        if wrong is not None:
            raise PayloadError(
                f"the concurrency key {self.text!r} of this call is {key!r:.300}, which {wrong}: "
                f"give 1 to {LONGEST_KEY} characters, or options(concurrency_key=…)",
                path=path,
            )
        return key


def _unusable(text: object, name: str, why: str) -> ConfigError:
    return ConfigError(
        f"concurrency_key={text!r:.200} of task {name!r} is not usable: {why}",
        option="concurrency_key",
    )
