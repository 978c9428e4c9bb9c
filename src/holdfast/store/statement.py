"""The SQL files: finding them by name, and their notation.

Owns the mapping from a statement's name to its text. `name.sql` serves both
engines; where the dialects differ there are `name.postgres.sql` and
`name.sqlite.sql`, side by side. The text in the file is the text that runs, except for its
comments and for what this notation stands for:

    :name           a parameter; the engines see its number (`number`)
    :now            the database's own clock (see `for_postgres`)
    holdfast_tasks  a table of ours; qualified by the (checked) schema when there is one
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple, TypeAlias

Dialect: TypeAlias = Literal["postgresql", "sqlite"]

TABLES = (
    "tasks",
    "leases",
    "task_attempts",
    "task_notes",
    "task_logs",
    "checkpoints",
    "workers",
    "worker_states",
    "queues",
    "limits",
    "routes",
    "counters",
    "freed",
    "schedules",
    "schedule_ticks",
    "workflows",
    "scopes",
    "step_counts",
    "task_dependencies",
    "stats",
    "stats_series",
    "depths",
    "audit",
    "meta",
    "schema_version",
)

_NO_TABLES = ("now", "free_slots", "keys")
"""Functions of ours, and tables that a migration has removed."""
_SUFFIX: dict[Dialect, str] = {"postgresql": "postgres", "sqlite": "sqlite"}
_OURS = re.compile(
    r"\bholdfast_(?:" + "|".join((*TABLES, *_NO_TABLES)) + r")\b"
    # An index is found in its schema, a new one is made where its table is.
    r"|(?<=DROP INDEX )holdfast_\w+"
)
_NOW = re.compile(r"(?<![:\w]):now\b")
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(
    r"""'(?:[^']|'')*'          # a string
      | "(?:[^"]|"")*"          # a quoted name
      | --[^\n]*                # a comment
      | /\*.*?\*/               # the other comment
      | (?<![:\w]):([A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


class Numbered(NamedTuple):
    """A text whose parameters have numbers, and the names that belong to the numbers."""

    sql: str
    names: tuple[str, ...]


def number(source: str, sign: Literal["$", "?"], first: Iterable[str] = ()) -> Numbered:
    """Number the parameters of a text, so that every library can bind a plain list.

    They are numbered in the order of their first use, except for those named in `first`.
    """
    numbers = {name: place for place, name in enumerate(first, 1)}

    def numbered(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return found.group()
        return f"{sign}{numbers.setdefault(name, len(numbers) + 1)}"

    sql = _PARAMETER.sub(numbered, source)
    return Numbered(sql, tuple(numbers))


@cache
def text(name: str, dialect: Dialect, schema: str | None = None) -> str:
    """The text of the statement `name`."""
    source = _COMMENT.sub("", _source("sql", name, dialect)).strip().rstrip(";")
    return source if dialect == "sqlite" else for_postgres(source, schema)


@cache
def texts(name: str) -> tuple[str, ...]:
    """The statement `name` for SQLite, which may need several, run in order.

    SQLite has no data-modifying CTEs; what PostgreSQL does in one statement is two or
    three there. They share their parameters, and the rows of the last are the answer.
    """
    return tuple(part.strip() for part in text(name, "sqlite").split(";\n"))


def script(name: str, dialect: Dialect, schema: str | None = None) -> str:
    """A migration: several statements, no parameters."""
    source = _source("migrations", name, dialect)
    return source if dialect == "sqlite" else qualify(source, schema)


def qualify(source: str, schema: str | None) -> str:
    """Put the schema before every table and function of ours."""
    if schema is None:
        return source
    return _OURS.sub(lambda found: f'"{schema}".{found.group()}', source)


def for_postgres(source: str, schema: str | None) -> str:
    """Name the tables in their schema, and the clock.

    `:now` becomes a scalar subquery over `holdfast_now()`: an InitPlan, evaluated once, and
    usable as an index condition whatever the planner knows of the function.
    """
    return qualify(_NOW.sub("(SELECT holdfast_now())", source), schema)


def _source(folder_name: str, name: str, dialect: Dialect) -> str:
    folder = resources.files("holdfast.store") / folder_name
    for candidate in (f"{name}.{_SUFFIX[dialect]}.sql", f"{name}.sql"):
        file = folder / candidate
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LookupError(f"no statement named {name!r} for {dialect}")
