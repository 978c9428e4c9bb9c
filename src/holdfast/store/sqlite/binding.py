"""Neutral parameters in SQLite's types, bound by position.

Owns the translation of one `Statement` into what a connection executes. Runs for
every row that is sent and every batch that is finished, so it decides once for
each statement what there is to convert, and then only converts; before the turn to write
has come, if it can. So the time, which only the transaction knows, is put in last. Never
reads the clock and never touches a connection.

    bytes(16)             36 characters, dashed        bool         0 or 1
    At                    integer                      Uuids        JSON of dashed texts
    Texts, Ints, Keys     JSON                         Changes      see `Changes`
    dict                  JSON                         Table        one tuple of values a row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple, Self

import msgspec

from holdfast.core.errors import StoreError
from holdfast.store import statement
from holdfast.store.op import (
    Alike,
    At,
    Changes,
    Column,
    Ints,
    Keys,
    Row,
    Statement,
    Table,
    Texts,
    Uuids,
)

NOW = "now"
_PLAIN = (tuple, list)
_NUL = r"\u0000"
_MOST_JSON = 16 * 1024 * 1024


def dashed(raw: bytes) -> str:
    """A uuid as SQLite stores it."""
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _plain(given: Any) -> Any:
    if isinstance(given, int):
        return int(given)
    if isinstance(given, str):
        return str.__str__(given)
    raise TypeError(f"{type(given).__name__} cannot be a parameter")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def _json(given: Any) -> str:
    return _encode(given).decode()


class Execution(NamedTuple):
    """One execution: a text with its values, or with one set of values a row."""

    sql: str
    values: list[Any] | None
    rows: Sequence[list[Any]] = ()
    now: int | None = None
    """Where among the values the time goes."""
    gives_bytes: bool = False
    """Whether its texts come as bytes (`driver.from_bytes`)."""
    returns: bool = True
    """Whether a text that runs for each row has rows to return."""
    all_or_none: bool = False
    """Whether it writes all rows of a table, or fails."""

    @property
    def is_insert(self) -> bool:
        """Whether it is one change of a table that returns nothing."""
        return self.all_or_none or (len(self.rows) == 1 and not self.returns)

    def at(self, now: int) -> Self:
        """Put in the time of the transaction."""
        place = self.now
        if place is not None:
            if self.values is not None:
                self.values[place] = now
            for row in self.rows:
                row[place] = now
        return self


class SqliteBinder:
    """Binds statements by name; remembers what it has prepared."""

    def __init__(self, texts: Callable[[str], Sequence[str]]) -> None:
        self._texts = texts
        self._prepared: dict[str, tuple[Prepared, ...]] = {}
        self._layouts: dict[str, tuple[Mapping[str, Column], tuple[Layout | Prepared, ...]]] = {}

    def bind(self, asked: Statement, *, row_by_row: bool = False) -> list[Execution]:
        """What to execute, in order; the rows of the last are the answer.

        The rows of a table that are alike are written by a single call, `all_or_none`.
        """
        name, params, table = asked.name, _with_texts(asked.params), asked.table
        if table is None:
            return [_call(one, params) for one in self._prepare(name)]
        if table.plain is not None and table.is_plain:
            name = table.plain.statement
        if table.alike is not None and len(table.rows) > 1 and not row_by_row:
            call = self._bind_alike(table, table.alike)
            if call is not None:
                return [call]
        return [
            _calls(one, table.rows, params) if isinstance(one, Layout) else _call(one, params)
            for one in self._lay_out(name, table.columns)
        ]

    def _bind_alike(self, table: Table, alike: Alike) -> Execution | None:
        """None if the rows are not alike, or have something that JSON does not carry."""
        common = table.common(alike)
        if common is None:
            return None
        columns, own = [*table.columns], alike.own
        uuids = [at for at in range(own) if table.columns[columns[at]] is Column.UUID]
        rows = _json(_in_text([[*row[:own]] for row in table.rows], uuids))
        if _NUL in rows or len(rows) > _MOST_JSON:
            # NUL is what older versions of SQLite take for the end of a text from a JSON.
            return None
        (one,) = self._prepare(alike.statement)
        params = {**dict(zip(columns[own:], common, strict=True)), "rows": rows}
        return _call(one, params)._replace(all_or_none=True)

    def _prepare(self, name: str) -> Sequence[Prepared]:
        prepared = self._prepared.get(name)
        if prepared is None:
            prepared = self._prepared[name] = tuple(map(prepare, self._texts(name)))
        return prepared

    def _lay_out(self, name: str, columns: Mapping[str, Column]) -> Sequence[Layout | Prepared]:
        # A statement has the same columns each time; computing this takes longer than a row.
        known, layouts = self._layouts.get(name, _UNKNOWN)
        if known is not columns:
            layouts = tuple(lay_out(text, columns) for text in self._texts(name))
            self._layouts[name] = columns, layouts
        return layouts


@dataclass(frozen=True, slots=True)
class Prepared:
    """One SQL text with numbered parameters, and the names that belong to the numbers."""

    sql: str
    names: tuple[str, ...]
    now: int | None
    """Which of them is the time."""
    returns: bool
    """Whether it is a change that returns rows."""
    gives_bytes: bool
    """Whether these have texts, which then come as bytes."""


def prepare(sql: str, first: Iterable[str] = ()) -> Prepared:
    """Number the parameters of a text, those named in `first` before the others."""
    text, names = statement.number(sql, "?", first)
    _, returns, columns = text.rpartition("RETURNING")
    return Prepared(
        text,
        names,
        now=names.index(NOW) if NOW in names else None,
        returns=bool(returns),
        gives_bytes=bool(returns) and "AS BLOB)" in columns,
    )


def _call(prepared: Prepared, params: Mapping[str, Any]) -> Execution:
    now = None if NOW in params else prepared.now
    return Execution(
        prepared.sql, bind(prepared, params), now=now, gives_bytes=prepared.gives_bytes
    )


def bind(prepared: Prepared, params: Mapping[str, Any]) -> list[Any]:
    """The values of one execution, except for the time if it is not given."""
    try:
        return [
            None if name == NOW and name not in params else value(params[name])
            for name in prepared.names
        ]
    except KeyError as missing:
        raise StoreError(f"no value for the parameter {missing} of: {prepared.sql}") from None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the values of an execution for each row come from.

    A parameter is a column of the table if there is one of its name; the others are the
    same for all rows, and are numbered behind the columns.
    """

    pick: Callable[[Row], Row] | None
    """Takes the columns that the text mentions out of a row; None where it is all of them."""
    uuids: tuple[int, ...]
    shared: Prepared
    """The text, with the names of the parameters behind the columns."""


def lay_out(sql: str, columns: Mapping[str, Column]) -> Layout | Prepared:
    """The layout of a text that runs for each row, unless it mentions no column."""
    plain = prepare(sql)
    used = [name for name in columns if name in plain.names]
    if not used:
        return plain
    prepared = prepare(sql, used)
    return Layout(
        pick=None if len(used) == len(columns) else _picker([*map([*columns].index, used)]),
        uuids=tuple(place for place, name in enumerate(used) if columns[name] is Column.UUID),
        shared=replace(prepared, names=prepared.names[len(used) :]),
    )


def _picker(places: list[int]) -> Callable[[Row], Row]:
    if len(places) == 1:
        return lambda row: (row[places[0]],)
    return itemgetter(*places)


_UNKNOWN: tuple[None, tuple[Layout | Prepared, ...]] = (None, ())


def _calls(layout: Layout, rows: Sequence[Row], params: Mapping[str, Any]) -> Execution:
    text, pick = layout.shared, layout.pick
    shared = bind(text, params)
    own = _in_text([[*(row if pick is None else pick(row))] for row in rows], layout.uuids)
    return Execution(
        text.sql,
        None,
        [[*values, *shared] for values in own],
        now=None if NOW in params else text.now,
        gives_bytes=text.gives_bytes,
        returns=text.returns,
    )


def _in_text(rows: list[list[Any]], uuids: Sequence[int]) -> list[list[Any]]:
    """The rows with the ids at these places as SQLite stores them."""
    for values in rows:
        for place in uuids:
            raw = values[place]
            if raw is not None:
                values[place] = dashed(raw)
    return rows


def value(given: Any) -> Any:
    """One parameter."""
    convert = _CONVERT.get(type(given))
    return given if convert is None else convert(given)


def _uuid(raw: bytes) -> str | bytes:
    return dashed(raw) if len(raw) == 16 else raw


def _uuids(batch: Iterable[bytes]) -> str:
    texts = '","'.join([dashed(raw) for raw in batch])
    return f'["{texts}"]' if texts else "[]"


def _integers(batch: Iterable[int]) -> str:
    return f"[{','.join(map(str, batch))}]"


def _keys(batch: Iterable[bytes | int]) -> str:
    return _json([dashed(key) if type(key) is bytes else key for key in batch])


def _changes(changes: Changes) -> str:
    # Nearly every change of a batch carries the token of the same claim.
    tokens: dict[bytes, str] = {}
    found: list[list[Any]] = []
    for key, token, fields in changes.rows:
        text = tokens.get(token)
        if text is None:
            text = tokens[token] = dashed(token)
        # The usual types first: asking an abstract class is slow.
        if type(fields) in _PLAIN or not isinstance(fields, Mapping):
            row = [key, text, *fields]
        else:
            row = [key, text, {name: _inner(field) for name, field in fields.items()}]
        # Rarely: keys are integers here. Asking like this costs a tenth of looking at each.
        if bytes in map(type, row):
            row = list(map(_inner, row))
        found.append(row)
    return _json(found)


def _with_texts(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters; those texts that `Changes` names stand beside the JSON.

    In it SQLite would read and write each of them three times: of results of 1 KB that took a fifth
    of the time of `complete`.
    """
    for name, value in params.items():
        if type(value) is Changes and value.text is not None:
            changes, texts = _texts_apart(value.rows, value.text)
            return {**params, name: changes, f"{name}_texts": texts}
    return params


def _texts_apart(rows: Sequence[Any], place: int) -> tuple[Changes, bytearray]:
    texts = [fields[place].encode() for _, _, fields in rows]
    found: list[tuple[Any, bytes, Sequence[Any]]] = []
    begin = 1
    for (key, token, fields), text in zip(rows, texts, strict=True):
        size = len(text)
        found.append((key, token, (*fields[:place], begin, size, *fields[place + 1 :])))
        begin += size
    # No `bytes`: sixteen of them would be taken for an id.
    return Changes(found), bytearray().join(texts)


def _inner(field: Any) -> Any:
    return dashed(field) if type(field) is bytes else field


_CONVERT: dict[type, Callable[[Any], Any]] = {
    bytes: _uuid,
    At: int,
    bool: int,
    Uuids: _uuids,
    Texts: _json,
    Ints: _integers,
    Keys: _keys,
    Changes: _changes,
    dict: _json,
}
