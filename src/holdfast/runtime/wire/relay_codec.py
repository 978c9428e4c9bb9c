"""Statements, rows and errors on the wire between a child and its supervisor.

Owns both directions. A plain value (None, bool, int, float, str, bytes) travels as itself;
the types of `store.op` that a plain value would lose travel as an array that begins with a
tag. An error travels as the name of its class in `core.errors` and its fields; no other
class can be named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.core import errors
from holdfast.core.errors import HoldfastError, StoreError
from holdfast.runtime.wire.messages import Reply
from holdfast.store.op import (
    At,
    Changes,
    Channel,
    Column,
    Hint,
    Ints,
    Keys,
    Row,
    Statement,
    Table,
    Texts,
    Uuids,
)

Asked: TypeAlias = "Statement | tuple[Statement, ...]"

_NAME: Final = re.compile(r"[a-z_]+")


def encode_asked(asked: Asked) -> Any:
    """What an operation yielded."""
    if isinstance(asked, Statement):
        return _encode_statement(asked)
    return [_encode_statement(statement) for statement in asked]


def decode_asked(plain: Any) -> Asked:
    """The same on the other side; ValueError if it is nothing of the kind."""
    try:
        if isinstance(plain[0], str):
            return _decode_statement(plain)
        return tuple(_decode_statement(statement) for statement in plain)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"this is not a statement: {plain!r:.200}") from error


def _encode_statement(statement: Statement) -> list[Any]:
    table, hint = statement.table, statement.hint
    return [
        statement.name,
        {name: _encode(value) for name, value in statement.params.items()},
        None
        if table is None
        else [[(name, kind.value) for name, kind in table.columns.items()], list(table.rows)],
        None if hint is None else [hint.channel.value, list(hint.queues)],
    ]


def _decode_statement(plain: Sequence[Any]) -> Statement:
    name, params, table, hint = plain
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.100} is not the name of a statement")
    return Statement(
        name,
        {key: _decode(value) for key, value in params.items()},
        None
        if table is None
        else Table({key: Column(kind) for key, kind in table[0]}, [tuple(r) for r in table[1]]),
        None if hint is None else Hint(Channel(hint[0]), hint[1]),
    )


def _encode(value: Any) -> Any:
    tag = _TAGS.get(type(value))
    if tag is not None:
        return [tag, list(value)]
    if isinstance(value, At):
        return ["at", int(value)]
    if isinstance(value, Changes):
        rows = [(key, token, _encode_fields(f)) for key, token, f in value.rows]
        return ["changes", (value.text, rows)]
    if isinstance(value, dict):
        return ["map", value]
    return value


def _encode_fields(fields: Sequence[Any] | Mapping[str, Any]) -> Any:
    if isinstance(fields, Mapping):
        return {name: _encode(field) for name, field in fields.items()}
    return [_encode(field) for field in fields]


def _decode(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tag, content = value
    return _MAKE[tag](content)


def _decode_changes(content: Sequence[Any]) -> Changes:
    text, rows = content
    return Changes([(key, token, _decode_fields(fields)) for key, token, fields in rows], text=text)


def _decode_fields(fields: Any) -> Any:
    if isinstance(fields, dict):
        return {name: _decode(field) for name, field in fields.items()}
    return [_decode(field) for field in fields]


_TAGS: Final[dict[type, str]] = {Uuids: "uuids", Texts: "texts", Ints: "ints", Keys: "keys"}
_MAKE: Final[dict[str, Callable[[Any], Any]]] = {
    "uuids": Uuids,
    "texts": Texts,
    "ints": Ints,
    "keys": Keys,
    "at": At,
    "changes": _decode_changes,
    "map": dict,
}


def decode_rows(asked: Asked, plain: Any) -> list[Row] | list[list[Row]]:
    """The answer in the shape that the operation expects: tuples, in a list for each statement."""
    if isinstance(asked, Statement):
        return [tuple(row) for row in plain]
    return [[tuple(row) for row in rows] for rows in plain]


def refusal(ticket: int, error: Exception) -> Reply:
    """An error, as an answer."""
    if not isinstance(error, HoldfastError) or type(error).__name__ not in _ERRORS:
        error = StoreError(f"{type(error).__name__}: {error}")
    fields = {
        name: value
        for name, value in vars(error).items()
        if value is None or isinstance(value, bool | int | float | str)
    }
    return Reply(ticket, fields, error=str(error), error_kind=type(error).__name__)


def rebuild(answer: Reply) -> HoldfastError:
    """The error of an answer, of the same class and with the same fields."""
    kind = _ERRORS.get(answer.error_kind or "", StoreError)
    error = kind.__new__(kind)
    error.args = (answer.error or "",)
    vars(error).update(answer.rows or {})
    return error


_ERRORS: Final[dict[str, type[HoldfastError]]] = {
    name: getattr(errors, name) for name in errors.__all__
}
