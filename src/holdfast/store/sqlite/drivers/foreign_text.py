"""Text in the file that is not UTF-8: read all the same.

SQLite stores whatever bytes it is given as text, and both libraries refuse a whole answer for one
such value. Here each value is read by itself: bytes that are not UTF-8 become lone surrogates
(`surrogateescape`), so that the row comes through and whoever decodes it can say which column is
wrong. Nobody pays for it who meets no such value, except for texts that RETURNING gives: a change
cannot be made twice, so the files have those as `CAST(column AS BLOB)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from holdfast.store.op import Row


@cache
def with_types(sql: str, columns: int) -> str:
    """A query around a query, which gives for each column the type and then the value, texts as
    bytes. (Put together and not rewritten: the text in the middle is the one of the file.)
    """
    names = [f"c{place}" for place in range(columns)]
    values = ", ".join(
        f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END"
        for c in names
    )
    query = sql.rstrip().rstrip(";")
    return f"WITH asked ({', '.join(names)}) AS ({query}) SELECT {values} FROM asked"


def from_bytes(rows: Sequence[Row]) -> list[Row]:
    """Rows whose bytes are all texts."""
    return [tuple(text(v) if type(v) is bytes else v for v in row) for row in rows]


def from_types(rows: Sequence[Row]) -> list[Row]:
    """The rows of a query that was made `with_types`."""
    return [
        tuple(
            text(value) if kind == "text" else value
            for kind, value in zip(row[::2], row[1::2], strict=True)
        )
        for row in rows
    ]


def text(raw: bytes) -> str:
    """Bytes as text; those that are not UTF-8 as lone surrogates."""
    return raw.decode("utf-8", "surrogateescape")
