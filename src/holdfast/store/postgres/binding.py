"""From a `Statement` to what the wire takes: numbered SQL and a list of parameters.

Owns the binding of the neutral types on this engine. Executes nothing and knows no
connection, so our own connections and a caller's are bound by the same code.

    Changes named x     x       jsonb {"<id>": [token, field, …]}
                                or    {"<id>": {"token": token, name: field, …}}
                        x_ids   uuid[] of the ids
    Table               one array per column, under the column's name
    Uuids, Keys         uuid[]
    Texts               text[]
    Ints                int8[]
    a dict              jsonb
    Hint                hint_channel text, hint_payloads text[]

Inside the JSON a time is ISO 8601 text and an id is 32 hex digits, which PostgreSQL casts
exactly. Every string travels as a JSON string, so a stored JSON text that holds the six
characters \\u0000 survives although jsonb refuses the character itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from typing import Any

from holdfast.core.payload import to_json
from holdfast.store import statement
from holdfast.store.op import At, Changes, Column, Ints, Key, Keys, Statement, Table, Texts, Uuids
from holdfast.store.postgres import arrays
from holdfast.store.postgres.adapt import Jsonb
from holdfast.store.postgres.arrays import BinaryArray, Encoder
from holdfast.store.postgres.hint import channel_name

_PLACEHOLDER = re.compile(r"%%|%\(([a-z_]+)\)s")
_TABLE = re.compile(
    r"unnest\(((?:\s*%\([a-z_]+\)s::[a-z]+\[\],)+\s*%\([a-z_]+\)s::[a-z]+\[\])\s*\)"
)
"""Where the arrays of a `Table` become rows."""
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, ready to send."""

    name: str
    sql: bytes
    params: list[Any]


@dataclass(slots=True)
class _Template:
    sql: bytes
    sql_of_one: bytes
    """The same for a table of one row."""
    names: tuple[str, ...]
    columns: Mapping[str, Column] | None = None
    encoders: tuple[tuple[str, Encoder], ...] = ()

    def spread(self, table: Table, values: dict[str, Any]) -> None:
        """Put one array per column of the table among the values."""
        # A verb always gives the same mapping, so its columns are looked at once.
        if self.columns is not table.columns:
            self.encoders = tuple((n, arrays.ENCODERS[k]) for n, k in table.columns.items())
            self.columns = table.columns
        if len(table.rows) == 1:
            for (name, encoder), value in zip(self.encoders, table.rows[0], strict=True):
                values[name] = encoder.one(value)
            return
        columns = zip(*table.rows, strict=True) if table.rows else repeat(())
        for (name, encoder), column in zip(self.encoders, columns, strict=bool(table.rows)):
            # `unnest` fills up with nulls whatever ends before the longest array, which is the
            # one of the key. Half the columns of most sends hold nothing else.
            is_null = len(column) > 1 and column.count(None) == len(column)
            values[name] = encoder(() if is_null else column)


class Binder:
    """Binds the statements of one schema; `text` replaces those of `store/sql` in tests."""

    def __init__(self, schema: str | None, text: Callable[[str], str] | None = None) -> None:
        self._schema = schema
        self._text = text or partial(statement.text, dialect="postgresql", schema=schema)
        self._templates: dict[str, _Template] = {}

    def bind(self, asked: Statement, payloads: Sequence[str] | None = None) -> Query:
        """The query of a statement; `payloads` are those of its hint that are due now."""
        template = self._templates.get(asked.name)
        if template is None:
            template = self._templates[asked.name] = _number(self._text(asked.name))
        values = _values(asked)
        sql = template.sql
        if asked.table is not None:
            template.spread(asked.table, values)
            if len(asked.table.rows) == 1:
                sql = template.sql_of_one
        if asked.hint is not None:
            heard = asked.hint.queues if payloads is None else payloads
            values["hint_channel"] = channel_name(asked.hint.channel, self._schema)
            values["hint_payloads"] = arrays.texts(heard)
        try:
            params = [values[name] for name in template.names]
        except KeyError as missing:
            raise LookupError(f"statement {asked.name!r} lacks the parameter {missing}") from None
        return Query(asked.name, sql, params)


def _number(text: str) -> _Template:
    """Turn `%(name)s` into `$1`.

    psycopg would do it at every execution, and parses a text longer than 4 kB anew each
    time: 66 µs for a long statement.
    """
    names: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "%"
        return names.setdefault(name, f"${len(names) + 1}")

    of_many = _PLACEHOLDER.sub(number, text)
    of_one = _PLACEHOLDER.sub(number, _TABLE.sub(_first_row, text))
    return _Template(of_many.encode(), of_one.encode(), tuple(names))


def _first_row(found: re.Match[str]) -> str:
    """Name the only element of each array: 26 set-returning functions cost 60 µs to set up."""
    firsts = ", ".join(f"({array.strip()})[1]" for array in found.group(1).split(","))
    return f"(SELECT {firsts})"


def _values(asked: Statement) -> dict[str, Any]:
    values: dict[str, Any] = {"hint_channel": "", "hint_payloads": _NO_TEXTS}
    for name, value in asked.params.items():
        if isinstance(value, Changes):
            values[name], values[f"{name}_ids"] = _changes(value)
        else:
            encode = _ENCODE.get(type(value))
            values[name] = encode(value) if encode else value
    return values


def _changes(changes: Changes) -> tuple[Jsonb, BinaryArray]:
    if not changes.rows:
        return _jsonb({}), arrays.uuids([])
    keys, tokens, fields = zip(*changes.rows, strict=True)
    ids = list(map(_id, keys))
    # Nearly every change of a batch carries the token of the same claim.
    text = {token: token.hex() for token in set(tokens)}
    values: list[Any]
    # Looking at the types of all fields at once costs a fifth of looking at each.
    if {*map(type, fields)} == {tuple} and {*map(type, chain.from_iterable(fields))} <= _AS_IT_IS:
        values = [[text[token], *given] for token, given in zip(tokens, fields, strict=True)]
    else:
        values = [_fields(text[token], given) for token, given in zip(tokens, fields, strict=True)]
    return _jsonb(dict(zip([id.hex() for id in ids], values, strict=True))), arrays.uuids(ids)


def _fields(token: str, fields: Sequence[Any] | Mapping[str, Any]) -> object:
    if isinstance(fields, Mapping):
        return {"token": token, **{name: _plain(field) for name, field in fields.items()}}
    return [token, *map(_plain, fields)]


def _plain(field: Any) -> Any:
    if type(field) is bytes:
        return field.hex()
    if type(field) is At:
        return (_UNIX_EPOCH + timedelta(microseconds=field)).isoformat()
    return field


def _jsonb(value: object) -> Jsonb:
    return Jsonb(to_json(value))


def _id(key: Key) -> bytes:
    if isinstance(key, int):
        raise TypeError("a row key on PostgreSQL is the task's id, not a number")
    return key


_NO_TEXTS = arrays.texts([])
_AS_IT_IS = frozenset({str, int, bool, float, type(None)})
_ENCODE: dict[type, Callable[[Any], Any]] = {
    Uuids: arrays.uuids,
    Keys: arrays.uuids,
    Texts: arrays.texts,
    Ints: arrays.bigints,
    dict: _jsonb,
}
