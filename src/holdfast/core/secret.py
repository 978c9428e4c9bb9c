"""`Secret`: a value that travels like any other and is shown nowhere.

Owns the type, its form among stored values (`{"$secret": …}`), and the hiding of that form wherever
stored values are shown. The form says what must be hidden without the code at hand: to a command
that was given a URL only, and inside lists and objects. Nothing is encrypted: whoever can read the
database can read it.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any, Final, Generic, NoReturn, TypeVar
from urllib.parse import quote, quote_plus

from holdfast.core.redaction import HIDDEN, SECRET_MARK

__all__ = ["MARK", "Secret", "hide_secrets", "secret_texts", "without"]

T_co = TypeVar("T_co", covariant=True)

MARK: Final = SECRET_MARK
_SHORTEST: Final = 4
"""Characters; shorter values would be found everywhere in a text."""
_SHORTEST_BASE64: Final = 8


class Secret(Generic[T_co]):
    """An argument or a result that nobody should see: `login.send(Secret("hunter2"))`.

    Annotate the parameter `Secret[str]`, and take the value with `reveal()`. Wherever it is shown
    (in `repr`, logs, errors, tracebacks, commands, the dashboard) it is `***`. It is stored as it
    is.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        inner: Any = value._value if isinstance(value, Secret) else value
        self._value: T_co = inner

    def reveal(self) -> T_co:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret[T_co]:
        return self

    def __deepcopy__(self, memo: object) -> Secret[T_co]:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: take its value with reveal() where it is needed")


def hide_secrets(value: Any) -> Any:
    """Plain data as it was stored, with every secret in it hidden."""
    try:
        return _hidden(value)
    except RecursionError:
        # Written by hand: what Holdfast stores is not nested so deeply.
        return HIDDEN


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        if MARK in value:
            return HIDDEN
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return value


def secret_texts(value: Any) -> list[str]:
    """The texts of the secrets in plain data, as they could stand in a message; longest first."""
    try:
        found = set(_texts(value, inside=False))
    except RecursionError:
        return []
    return sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True)


def _texts(value: Any, *, inside: bool) -> Iterator[str]:
    match value:
        case dict():
            inside = inside or MARK in value
            for inner in value.values():
                yield from _texts(inner, inside=inside)
        case list():
            for inner in value:
                yield from _texts(inner, inside=inside)
        case str() if inside:
            yield value
            yield from _disguised(value)
        case int() | float() if inside and not isinstance(value, bool):
            yield str(value)


def _disguised(value: str) -> Iterator[str]:
    """A text as it stands in the `repr` of something that holds it, in JSON, in a URL, and inside a
    longer text in Base64, as in a header that gives a name and a password."""
    yield repr(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw))
    for before in range(3):
        # Without the digits at both ends that depend on what stands beside it.
        first = -(-before * 8 // 6)
        whole = b2a_base64(bytes(before) + raw).decode()
        inner = whole[first : (before + len(raw)) * 8 // 6]
        if len(inner) >= _SHORTEST_BASE64:
            yield inner


def without(text: str, secrets: list[str]) -> str:
    """A text in which none of these is left."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
