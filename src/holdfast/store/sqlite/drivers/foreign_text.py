"""Text in the file that is not UTF-8: read all the same.

SQLite stores whatever bytes it is given as text, and both libraries refuse a whole answer for one
such value. Here each value is read by itself: bytes that are not UTF-8 become lone surrogates
(`surrogateescape`), so that the row comes through and whoever decodes it can say which column is
wrong. Nobody pays for it who meets no such value, except for texts that RETURNING gives (a change
cannot be made twice, so those are asked for as bytes from the start).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from holdfast.store.op import Row

_RETURNING = re.compile(r"\bRETURNING\b(?P<columns>[^()]*?)(?P<end>;?\s*)\Z", re.IGNORECASE)
_TEXTS = frozenset(
    {
        "id",
        "status",
        "queue_name",
        "task_name",
        "workflow_id",
        "parent_id",
        "child_id",
        "token",
        "worker_id",
        "worker_hostname",
        "worker_process_name",
        "command",
        "name",
        "value",
    }
)
"""The columns of text that statements of ours return from a change."""


@cache
def as_bytes(sql: str) -> str | None:
    """A statement that returns its texts as bytes; None if it is not one that returns texts."""
    found = _RETURNING.search(sql)
    if found is None:
        return None
    columns = [column.strip() for column in found["columns"].split(",")]
    if _TEXTS.isdisjoint(columns):
        return None
    asked = ", ".join(f"CAST({c} AS BLOB)" if c in _TEXTS else c for c in columns)
    return f"{sql[: found.start()]}RETURNING {asked}{found['end']}"


@cache
def with_types(sql: str, columns: int) -> str:
    """A query that gives, for each of its columns, the type and then the value, texts as bytes."""
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
