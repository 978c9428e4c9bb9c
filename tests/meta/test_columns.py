"""Rows become records by place: what a statement puts out stands in the order of the fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Final, get_args

import pytest

from holdfast.core.records import (
    AttemptRecord,
    ClaimedTask,
    QueueRecord,
    TaskRecord,
    WorkerRecord,
    WorkerState,
)
from holdfast.store import rows, statement
from holdfast.store.rows import LeasedTask
from holdfast.store.statement import Dialect
from tests.meta.tree import SOURCE

_ATTEMPT: Final = [field.name for field in fields(AttemptRecord)]
FIELDS: Final = {
    # The token is the worker's own: it is not read.
    "claim": ClaimedTask.__struct_fields__[:-1],
    "tasks_by_id": [*(field.name for field in fields(TaskRecord)), "key"],
    "attempts": _ATTEMPT,
    "last_errors": _ATTEMPT,
    "leased_tasks": LeasedTask._fields,
    "list_workers": [field.name for field in fields(WorkerRecord)],
    "list_queues": [field.name for field in fields(QueueRecord)],
}
"""Each statement, and what its columns become."""
STANDS_FOR: Final = {
    "key": ("id", "seq"),
    "task_id": ("id",),
    "locked": ("false",),
    "pending": ("ready",),
    "oldest_enqueued_at": ("enqueued_at",),
    "scheduled": ("due_at",),
}
"""Words by which the column of such a field is known, if not by the field's own name."""
_LISTS: Final = ("json_array(\n", "RETURNING\n", "SELECT\n")
"""What the list of the columns comes after; of several in a statement, the last."""
_TOKEN: Final = re.compile(r"'[^']*'|\bFROM\b|[(),]|[^'(),\s]+|\s+")


def columns(name: str, dialect: Dialect) -> list[str]:
    """The expressions that a statement puts out."""
    sql = statement.text(name, dialect)
    opening = next(text for text in _LISTS if text in sql)
    found, depth = [""], 0
    for token in _TOKEN.findall(sql[sql.rindex(opening) + len(opening) :]):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth < 0 or (token == "FROM" and not depth):
            break
        if token == "," and not depth:
            found.append("")
        else:
            found[-1] += token
    return [" ".join(column.split()) for column in found]


def misplaced(found: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns that do not speak of the field whose place they have."""
    return [
        f"{name}: {column}"
        for column, name in zip(found, names, strict=True)
        if not {name, *STANDS_FOR.get(name, ())} & set(re.findall(r"\w+", column))
    ]


@pytest.mark.parametrize("dialect", get_args(Dialect))
@pytest.mark.parametrize("name", FIELDS)
def test_columns_stand_in_the_order_of_the_record(name: str, dialect: Dialect) -> None:
    assert misplaced(columns(name, dialect), FIELDS[name]) == []


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_the_snapshot_of_a_worker_is_read_as_it_is_written(dialect: Dialect) -> None:
    found = columns("worker_states", dialect)
    state = rows.worker_state(tuple(found))
    assert {field.name: getattr(state, field.name) for field in fields(WorkerState)} == {
        column: column for column in found
    }


def test_columns_that_changed_places_are_found() -> None:
    found = columns("tasks_by_id", "sqlite")
    place = found.index("task.run_at")
    found[place : place + 2] = reversed(found[place : place + 2])
    assert misplaced(found, FIELDS["tasks_by_id"]) == ["run_at: task.due_at", "due_at: task.run_at"]


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_schema_is_put_before_every_table(dialect: str) -> None:
    made: set[str] = set()
    gone: set[str] = set()
    for path in (SOURCE / "store" / "migrations").glob(f"*.{dialect}.sql"):
        made |= set(re.findall(r"CREATE TABLE holdfast_(\w+)", path.read_text(encoding="utf-8")))
        gone |= set(re.findall(r"DROP TABLE holdfast_(\w+)", path.read_text(encoding="utf-8")))
    # This one is there before the first migration (`store/*/schema.py`).
    assert made - (gone - set(statement.TABLES)) | {"schema_version"} == set(statement.TABLES)
