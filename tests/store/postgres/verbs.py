"""A few operations over the statements of this package's conftest."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.store.op import (
    Channel,
    Column,
    Hint,
    Statement,
    Steps,
    Table,
    alone,
    reads,
    writes,
)

COLUMNS = {"id": Column.UUID, "body": Column.TEXT}


def new_id() -> bytes:
    return os.urandom(16)


@alone
def put(*bodies: str) -> Steps[int]:
    rows = yield Statement("put", table=Table(COLUMNS, [(new_id(), body) for body in bodies]))
    return len(rows)


@writes
def put_each(bodies: Sequence[str], before_commit: Callable[[], Any] = lambda: None) -> Steps[int]:
    for body in bodies:
        yield Statement("put_silently", {"id": new_id(), "body": body})
    before_commit()
    return len(bodies)


@writes
def put_together(bodies: Sequence[str]) -> Steps[int]:
    answers = yield tuple(
        Statement("put_silently", {"id": new_id(), "body": body}) for body in bodies
    )
    return len(answers)


@alone
def put_and_tell(body: str, *queues: str) -> Steps[int]:
    rows = yield Statement(
        "put_and_tell",
        {"id": new_id(), "body": body},
        hint=Hint(Channel.READY, queues),
    )
    sent: int = rows[0][0]
    return sent


@reads
def bodies() -> Steps[list[str]]:
    rows = yield Statement("bodies")
    return [body for (body,) in rows]


@reads
def value(statement: str, /, **params: Any) -> Steps[Any]:
    rows = yield Statement(statement, params)
    return rows[0][0] if rows else None


@writes
def values(*names: str) -> Steps[list[Any]]:
    found = []
    for name in names:
        rows = yield Statement(name)
        found.append(rows[0][0])
    return found
