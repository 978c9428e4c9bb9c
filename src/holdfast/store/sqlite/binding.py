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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, Self

import msgspec

from holdfast.core.errors import StoreError
from holdfast.store.op import (
    At,
    Changes,
    Column,
    Ints,
    Keys,
    Row,
    Statement,
    Texts,
    Uuids,
)

NOW = "now"
_PLAIN = (tuple, list)
RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)
_VALUES = re.compile(
    r"^INSERT\b.*\b(?P<values>VALUES\s*\((?P<row>.*)\))\s*(?:ON CONFLICT DO NOTHING\s*)?;?\s*$",
    re.DOTALL,
)
_NUMBER = re.compile(r"\?(\d+)")
_NUL = r"\u0000"
_MOST_TEXTS = 32
_MOST_JSON = 16 * 1024 * 1024

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'          # a string
      | "(?:[^"]|"")*"          # a quoted name
      | --[^\n]*                # a comment
      | /\*.*?\*/               # the other comment
      | (?<![:\w]):([A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


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


class Call(NamedTuple):
    """One execution: a text with its values, or with one set of values a row."""

    sql: str
    values: list[Any] | None
    rows: Sequence[list[Any]] = ()
    returns: bool = True
    """Whether a text that runs for each row has rows to return."""
    now: int | None = None
    """Where among the values the time goes."""
    whole: bool = False
    """Whether it writes all rows of a table at once, and returns none of them."""

    def at(self, now: int) -> Self:
        """Put in the time of the transaction."""
        place = self.now
        if place is not None:
            if self.values is not None:
                self.values[place] = now
            for row in self.rows:
                row[place] = now
        return self


class Binder:
    """Binds statements by name; remembers what it has prepared."""

    def __init__(self, texts: Callable[[str], Sequence[str]]) -> None:
        self._texts = texts
        self._prepared: dict[str, tuple[Prepared, ...]] = {}
        self._layouts: dict[str, tuple[Mapping[str, Column], tuple[Layout | Prepared, ...]]] = {}

    def bind(self, statement: Statement, *, row_by_row: bool = False) -> list[Call]:
        """What to execute, in order; the rows of the last are the answer.

        The rows of a table are written by a single call that is `whole`, if that can be.
        """
        name, params, table = statement.name, statement.params, statement.table
        if table is None:
            prepared = self._prepared.get(name)
            if prepared is None:
                prepared = self._prepared[name] = tuple(map(prepare, self._texts(name)))
            return [_call(one, params) for one in prepared]
        layouts = self._lay_out(name, table.columns)
        if len(layouts) == 1 and isinstance(layouts[0], Layout) and not row_by_row:
            call = _whole(layouts[0], table.rows, params)
            if call is not None:
                return [call]
        return [
            _calls(one, table.rows, params) if isinstance(one, Layout) else _call(one, params)
            for one in layouts
        ]

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


def prepare(sql: str, first: Iterable[str] = ()) -> Prepared:
    """Number the parameters of a text, so that both libraries can bind plain tuples.

    They are numbered in the order of their first use, but for those named in `first`.
    """
    numbers = {name: place for place, name in enumerate(first, 1)}

    def number(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return found.group()
        return f"?{numbers.setdefault(name, len(numbers) + 1)}"

    text = _TOKEN.sub(number, sql)
    return Prepared(text, tuple(numbers), numbers[NOW] - 1 if NOW in numbers else None)


def _call(prepared: Prepared, params: Mapping[str, Any]) -> Call:
    now = None if NOW in params else prepared.now
    return Call(prepared.sql, bind(prepared, params), now=now)


def bind(prepared: Prepared, params: Mapping[str, Any]) -> list[Any]:
    """The values of one execution, but for the time if it is not given."""
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

    sql: str
    returns: bool
    pick: Callable[[Row], Row] | None
    """Takes the columns that the text mentions out of a row; None where it is all of them."""
    uuids: tuple[int, ...]
    shared: Prepared
    gathering: Gathering | None
    """How it takes all rows at once; None if it is no plain INSERT, or a JSON cannot carry them."""


def lay_out(sql: str, columns: Mapping[str, Column]) -> Layout | Prepared:
    """The layout of a text that runs for each row, unless it mentions no column."""
    plain = prepare(sql)
    used = [name for name in columns if name in plain.names]
    if not used:
        return plain
    prepared = prepare(sql, used)
    names = prepared.names[len(used) :]
    returns = RETURNING.search(sql) is not None
    binary = any(columns[name] is Column.BYTES for name in used)
    return Layout(
        sql=prepared.sql,
        returns=returns,
        pick=None if len(used) == len(columns) else _picker([*map([*columns].index, used)]),
        uuids=tuple(place for place, name in enumerate(used) if columns[name] is Column.UUID),
        shared=Prepared(prepared.sql, names, prepared.now),
        gathering=None if returns or binary else Gathering.of(prepared.sql, len(prepared.names)),
    )


@dataclass(frozen=True, slots=True)
class Gathering:
    """An INSERT of one row as one of many rows, whose values come in a JSON.

    The JSON has only those columns in which the rows differ; it is the parameter behind the last.
    """

    before: str
    row: str
    after: str
    width: int
    """How many parameters the INSERT of one row has."""
    texts: dict[tuple[int, ...], str] = field(default_factory=dict)

    @classmethod
    def of(cls, sql: str, width: int) -> Self | None:
        found = _VALUES.search(sql)
        if found is None:
            return None
        return cls(sql[: found.start("values")], found["row"], sql[found.end("values") :], width)

    def text(self, apart: tuple[int, ...]) -> str:
        """The text for rows that differ in these columns."""
        text = self.texts.get(apart)
        if text is None:
            if len(self.texts) >= _MOST_TEXTS:
                self.texts.clear()
            text = self.texts[apart] = self._write(apart)
        return text

    def _write(self, apart: tuple[int, ...]) -> str:
        def value(number: re.Match[str]) -> str:
            at = int(number[1]) - 1
            return f"c{at}" if at in apart else number[0]

        columns = ", ".join(
            f"json_extract(value, '$[{place}]') AS c{at}" for place, at in enumerate(apart)
        )
        # The LIMIT has each value taken out of the JSON once, however often it is mentioned.
        return (
            f"{self.before}SELECT {_NUMBER.sub(value, self.row)} "
            f"FROM (SELECT {columns} FROM json_each(?{self.width + 1}) LIMIT -1) "
            f"WHERE true{self.after}"
        )


def _picker(places: list[int]) -> Callable[[Row], Row]:
    if len(places) == 1:
        return lambda row: (row[places[0]],)
    return itemgetter(*places)


_UNKNOWN: tuple[None, tuple[Layout | Prepared, ...]] = (None, ())


def _calls(layout: Layout, rows: Sequence[Row], params: Mapping[str, Any]) -> Call:
    now = None if NOW in params else layout.shared.now
    shared = bind(layout.shared, params)
    bound = [[*values, *shared] for values in bind_rows(layout, rows)]
    return Call(layout.sql, None, bound, layout.returns, now)


def bind_rows(layout: Layout, rows: Sequence[Row]) -> list[list[Any]]:
    """The values of the columns that the text mentions, for each row of a table."""
    uuids, pick = layout.uuids, layout.pick
    found: list[list[Any]] = []
    for row in rows:
        values = [*(row if pick is None else pick(row))]
        for place in uuids:
            raw = values[place]
            if raw is not None:
                values[place] = dashed(raw)
        found.append(values)
    return found


def _whole(layout: Layout, rows: Sequence[Row], params: Mapping[str, Any]) -> Call | None:
    """One execution for all rows, if the text can be run so."""
    if layout.gathering is None or not rows:
        return None
    shared, bound = bind(layout.shared, params), bind_rows(layout, rows)
    now = None if NOW in params else layout.shared.now
    if len(bound) == 1:
        return Call(layout.sql, [*bound[0], *shared], now=now, whole=True)
    columns = [*zip(*bound, strict=True)]
    apart = tuple(at for at, of in enumerate(columns) if of.count(of[0]) != len(of))
    gathered = _json([*zip(*(columns[at] for at in apart), strict=True)])
    if not apart or _NUL in gathered or len(gathered) > _MOST_JSON:
        # NUL is what older versions of SQLite take for the end of a text from a JSON.
        return None
    values = [*(None if at in apart else of[0] for at, of in enumerate(columns)), *shared, gathered]
    return Call(layout.gathering.text(apart), values, now=now, whole=True)


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
