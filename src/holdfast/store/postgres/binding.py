"""From a `Statement` to what the wire takes: numbered SQL and a list of parameters.

Owns the binding of the neutral types on this engine. Executes nothing and knows no
connection, so our own connections and a caller's are bound by the same code.

    Changes named x     x       jsonb {"<id>": [token, field, …]}
                                or    {"<id>": {"token": token, name: field, …}}
                        x_ids   uuid[] of the ids
    Table               under the name of each column: an array if it varies from row to row,
                        otherwise its value
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
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from holdfast.core.payload.codec import to_json
from holdfast.store import statement
from holdfast.store.op import (
    At,
    Changes,
    Column,
    Ints,
    Key,
    Keys,
    Row,
    Statement,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.postgres import arrays
from holdfast.store.postgres.arrays import BinaryArray, Encoder
from holdfast.store.postgres.hints import channel_name, short
from holdfast.store.postgres.value_adapters import Jsonb

_PLACEHOLDER = re.compile(r"%%|%\(([a-z_]+)\)s")
_TABLE = re.compile(
    r"unnest\(((?:\s*%\([a-z_]+\)s::[a-z]+\[\],)+\s*%\([a-z_]+\)s::[a-z]+\[\])\s*\)"
)
"""Where the arrays of a `Table` become rows."""
_ARRAY = re.compile(r"(%\(([a-z_]+)\)s)::([a-z]+)\[\]")
_MOST_SHAPES = 32
"""Each is a statement for the server to prepare; a verb has a handful."""
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Query(NamedTuple):
    """One statement, ready to send."""

    name: str
    sql: bytes
    params: list[Any]


class _Numbered(NamedTuple):
    sql: bytes
    names: tuple[str, ...]


class _Template:
    """The text of a statement, and the shapes it takes for the tables it is given.

    A set-returning function costs the server 2 µs to set up and 0.1 µs a row, and a bulk send
    has 26 columns. Most hold one value throughout, so they are named as what they are; those
    of a single row all do.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._has_table = _TABLE.search(text) is not None
        self._columns: Mapping[str, Column] | None = None
        self._encoders: tuple[tuple[str, Column, Encoder], ...] = ()
        self._names: tuple[str, ...] = ()
        self._times: tuple[int, ...] = ()
        self._of_one: _Numbered | None = None
        self._shapes: dict[tuple[str, ...], _Numbered] = {}
        self.whole = _number(text)

    def spread(self, table: Table, values: dict[str, Any]) -> _Numbered:
        """Put the columns of the table among the values; the text that takes them so."""
        rows = table.rows
        # A verb always gives the same mapping, so its columns are looked at once.
        if self._columns is not table.columns:
            self._look_at(table.columns)
        if len(rows) == 1 and self._of_one is not None:
            values.update(zip(table.columns, self._one(rows[0]), strict=True))
            return self._of_one
        if not self._has_table or not rows:
            return self._spread_all(rows, values)
        count = len(rows)
        varying: list[str] = []
        for (name, kind, encoder), column in zip(
            self._encoders, zip(*rows, strict=True), strict=True
        ):
            first = column[0]
            # The first column always: it says how many rows there are.
            if varying and kind is not Column.BYTES and column.count(first) == count:
                values[name] = At(first) if kind is Column.TIME and first is not None else first
            else:
                values[name] = encoder(column)
                varying.append(name)
        return self._shape(tuple(varying)) or self._spread_all(rows, values)

    def of_one(self, table: Table) -> tuple[_Numbered, list[Any]] | None:
        """The text that takes the only row of a table, and its first parameters: that row.

        None if it is another table, or its columns are not the first parameters.
        """
        if self._columns is not table.columns or self._of_one is None or len(table.rows) != 1:
            return None
        if self._of_one.names[: len(table.columns)] != self._names:
            return None
        return self._of_one, self._one(table.rows[0])

    def _one(self, row: Row) -> list[Any]:
        values = list(row)
        for place in self._times:
            if values[place] is not None:
                values[place] = At(values[place])
        return values

    def _spread_all(self, rows: Sequence[Row], values: dict[str, Any]) -> _Numbered:
        """As one array per column, whatever is in it."""
        columns = zip(*rows, strict=True) if rows else repeat(())
        for (name, _, encoder), column in zip(self._encoders, columns, strict=bool(rows)):
            values[name] = encoder(column)
        return self.whole

    def _look_at(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns
        self._encoders = tuple((n, k, arrays.ENCODERS[k]) for n, k in columns.items())
        self._names = tuple(columns)
        self._times = tuple(at for at, k in enumerate(columns.values()) if k is Column.TIME)
        # Bytes as a value of their own are an id; others stay in an array, which knows its type.
        if self._has_table and Column.BYTES not in columns.values():
            self._of_one = _number(_TABLE.sub(partial(_rows, ()), self._text))

    def _shape(self, varying: tuple[str, ...]) -> _Numbered | None:
        """The text for a table of many rows in which these columns vary; None for one too many."""
        shape = self._shapes.get(varying)
        if shape is None and len(self._shapes) < _MOST_SHAPES:
            text = _TABLE.sub(partial(_rows, varying), self._text)
            shape = self._shapes[varying] = _number(text)
        return shape


def _rows(varying: Sequence[str], found: re.Match[str]) -> str:
    """The rows of a table of which only these columns are arrays; without any, one row."""
    columns: list[str] = []
    spread: dict[str, str] = {}
    for array, name, kind in _ARRAY.findall(found.group(1)):
        if name in varying:
            columns.append(f"varying.{name}")
            spread[name] = f"{array}::{kind}[]"
        else:
            columns.append(f"{array}::{kind}")
    rows = f"SELECT {', '.join(columns)}"
    if spread:
        rows += f" FROM unnest({', '.join(spread.values())}) AS varying ({', '.join(spread)})"
    return f"({rows})"


class Binder:
    """Binds the statements of one schema; `text` replaces those of `store/sql` in tests.

    `schema` names the channels of hints, and the tables unless `tables_in` says where these are:
    a store without a schema finds them by its search_path, which another connection may not share.
    """

    def __init__(
        self,
        schema: str | None,
        text: Callable[[str], str] | None = None,
        *,
        tables_in: str | None = None,
    ) -> None:
        self._schema = schema
        place = tables_in or schema
        self._text = text or partial(statement.text, dialect="postgresql", schema=place)
        self._templates: dict[str, _Template] = {}

    def bind(self, asked: Statement, payloads: Sequence[str] | None = None) -> Query:
        """The query of a statement; `payloads` are those of its hint that are due now."""
        template = self._templates.get(asked.name)
        if template is None:
            template = self._templates[asked.name] = _Template(self._text(asked.name))
        values = _values(asked)
        if asked.hint is not None:
            heard = short(asked.hint.queues) if payloads is None else payloads
            values["hint_channel"] = channel_name(asked.hint.channel, self._schema)
            if heard:
                values["hint_payloads"] = arrays.texts(heard)
        params: list[Any] = []
        numbered = template.whole
        if asked.table is not None:
            # A lone send: its row goes as it is.
            of_one = template.of_one(asked.table)
            if of_one is not None:
                numbered, params = of_one
            else:
                numbered = template.spread(asked.table, values)
        try:
            params += [values[name] for name in numbered.names[len(params) :]]
        except KeyError as missing:
            raise LookupError(f"statement {asked.name!r} lacks the parameter {missing}") from None
        return Query(asked.name, numbered.sql, params)


def _number(text: str) -> _Numbered:
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

    sql = _PLACEHOLDER.sub(number, text)
    return _Numbered(sql.encode(), tuple(names))


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
