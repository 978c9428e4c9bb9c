"""The SQL files: finding them by name and compiling them for one dialect.

Owns the mapping from a statement's name to its text. `name.sql` serves both
engines; where the dialects differ there are `name.postgres.sql` and
`name.sqlite.sql`, side by side. Never builds SQL from values: what varies is a
parameter, and the only text put in is the schema's (checked) name.

Conventions inside the files:

    :name           a parameter
    :now            the database's own clock (see `compile_postgres`)
    holdfast_tasks  a table of ours; qualified by the schema when there is one
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

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
    "keys",
    "schedules",
    "workflows",
    "task_dependencies",
    "stats",
    "audit",
    "meta",
    "schema_version",
)

_SUFFIX: dict[Dialect, str] = {"postgresql": "postgres", "sqlite": "sqlite"}
_OURS = re.compile(r"\bholdfast_(?:" + "|".join((*TABLES, "now")) + r")\b")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_COMMENT = re.compile(r"--[^\n]*")


@cache
def text(name: str, dialect: Dialect, schema: str | None = None) -> str:
    """The compiled text of the statement `name`."""
    source = _COMMENT.sub("", _source("sql", name, dialect)).strip().rstrip(";")
    if dialect == "sqlite":
        return source
    return compile_postgres(source, schema)


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


def compile_postgres(source: str, schema: str | None) -> str:
    """Turn our notation into psycopg's.

    `:now` becomes a scalar subquery over `holdfast_now()`: an InitPlan, evaluated once, and
    usable as an index condition whatever the planner knows of the function.
    """

    def parameter(found: re.Match[str]) -> str:
        name = found.group(1)
        return "(SELECT holdfast_now())" if name == "now" else f"%({name})s"

    return qualify(_PARAMETER.sub(parameter, source.replace("%", "%%")), schema)


def _source(folder_name: str, name: str, dialect: Dialect) -> str:
    folder = resources.files("holdfast.store") / folder_name
    for candidate in (f"{name}.{_SUFFIX[dialect]}.sql", f"{name}.sql"):
        file = folder / candidate
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LookupError(f"no statement named {name!r} for {dialect}")
