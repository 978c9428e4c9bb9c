"""From a `Statement` to what the wire takes: numbered SQL and a list of parameters.

Owns the binding of the neutral types on this engine. Executes nothing and knows no
connection, so our own connections and a caller's are bound by the same code.

    Changes named x     x       jsonb {"<id>": [token, field, …]}
                                or    {"<id>": {"token": token, name: field, …}}
                        x_ids   uuid[] of the ids
    Table               an array under the name of each column; of rows that are alike, a value
                        for each column that is not their own
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
    Statement,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.postgres import values as encoded
from holdfast.store.postgres.hints import channel_name, short
from holdfast.store.postgres.values import BinaryArray, Jsonb

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Query(NamedTuple):
    """One statement, ready to send."""

    name: str
    sql: bytes
    params: list[Any]


class PostgresBinder:
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
        self._numbered: dict[str, tuple[bytes, tuple[str, ...]]] = {}

    def bind(self, asked: Statement, payloads: Sequence[str] | None = None) -> Query:
        """The query of a statement; `payloads` are those of its hint that are due now."""
        name, values = asked.name, _values(asked.params)
        if asked.table is not None:
            name = _spread(name, asked.table, values)
        numbered = self._numbered.get(name)
        if numbered is None:
            # psycopg would number at every execution, and parses a text longer than 4 kB anew
            # each time: 66 µs for a long statement.
            sql, names = statement.number(self._text(name), "$")
            numbered = self._numbered[name] = sql.encode(), names
        if asked.hint is not None:
            heard = short(asked.hint.queues) if payloads is None else payloads
            values["hint_channel"] = channel_name(asked.hint.channel, self._schema)
            if heard:
                values["hint_payloads"] = encoded.texts(heard)
        try:
            params = [values[name] for name in numbered[1]]
        except KeyError as missing:
            raise LookupError(f"statement {name!r} lacks the parameter {missing}") from None
        return Query(name, numbered[0], params)


def _values(params: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"hint_channel": "", "hint_payloads": _NO_TEXTS}
    for name, value in params.items():
        if isinstance(value, Changes):
            values[name], values[f"{name}_ids"] = _changes(value)
        else:
            encode = _ENCODE.get(type(value))
            values[name] = encode(value) if encode else value
    return values


def _spread(name: str, table: Table, values: dict[str, Any]) -> str:
    """Put the columns of a table among the values; the name of the text that takes them so."""
    rows, columns = table.rows, [*table.columns.items()]
    if table.plain is not None and table.is_plain:
        values.update(zip(table.columns, rows[0], strict=True))
        for column in table.plain.times:
            values[column] = At(values[column])
        return table.plain.statement
    if table.alike is not None:
        common = table.common(table.alike)
        if common is not None:
            name, own = table.alike
            for (column, kind), value in zip(columns[own:], common, strict=True):
                values[column] = value
                if kind is Column.TIME and value is not None:
                    values[column] = At(value)
            rows, columns = [row[:own] for row in rows], columns[:own]
    batches = zip(*rows, strict=True) if rows else repeat(())
    for (column, kind), batch in zip(columns, batches, strict=bool(rows)):
        values[column] = encoded.ENCODERS[kind](batch)
    return name


def _changes(changes: Changes) -> tuple[Jsonb, BinaryArray]:
    if not changes.rows:
        return _jsonb({}), encoded.uuids([])
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
    return _jsonb(dict(zip([id.hex() for id in ids], values, strict=True))), encoded.uuids(ids)


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


_NO_TEXTS = encoded.texts([])
_AS_IT_IS = frozenset({str, int, bool, float, type(None)})
_ENCODE: dict[type, Callable[[Any], Any]] = {
    Uuids: encoded.uuids,
    Keys: encoded.uuids,
    Texts: encoded.texts,
    Ints: encoded.bigints,
    dict: _jsonb,
}
