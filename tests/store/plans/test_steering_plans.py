"""What every worker asks once a second of workflows: by indexes that hold only those in need.

Workflows that have ended stay for weeks, so none of these statements may read the whole table.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.store import statement
from holdfast.store.op import Op, Statement
from holdfast.store.open import open_store
from holdfast.store.postgres.connection import Opener
from holdfast.store.settings import parse_url
from holdfast.store.sqlite.binding import prepare
from holdfast.store.verbs import cancel, steering
from tests.store.plans.asked import record
from tests.store.plans.test_postgres_plans import explain
from tests.support.postgres import PostgresServer

OPERATIONS: list[Op[Any]] = [
    steering.is_needed(),
    steering.tended(),
    steering.unheld([bytes(16)]),
    steering.resolve_later(),
    cancel.cancel_added(),
]
ASKED: dict[str, Statement] = {
    asked.name: asked for operation in OPERATIONS for asked in record(operation, {})
}
OF_THOSE_IN_NEED = {
    "holdfast_workflows_tended",
    "holdfast_workflows_deadline",
    "holdfast_tasks_parked",
    # One by one, for what the others have found.
    "holdfast_workflows_pkey",
    "holdfast_tasks_pkey",
    "holdfast_tasks_workflow",
    "holdfast_task_dependencies_pkey",
}


def test_all_of_them_are_judged() -> None:
    assert set(ASKED) == {
        *("steering_needed", "tended_workflows", "unheld_workflows"),
        *("take_parked", "parked_adders"),
    }


def test_on_postgresql(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    settings = parse_url(url)
    open_store(settings).close()
    with closing(Opener(settings).open()) as session:
        for name, asked in ASKED.items():
            for scan in explain(session, asked):
                assert scan.index is None or scan.index in OF_THOSE_IN_NEED, (name, scan)
                assert scan.kind != "Seq Scan", (name, scan)
    postgres_server.drop_database(url)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_on_sqlite(name: str, tmp_path: Path) -> None:
    open_store(parse_url(f"sqlite:///{tmp_path}/tasks.db")).close()
    with closing(apsw.Connection(f"{tmp_path}/tasks.db")) as connection:
        for text in statement.texts(name):
            prepared = prepare(text)
            values = (None,) * len(prepared.names)
            for row in connection.execute(f"EXPLAIN QUERY PLAN {prepared.sql}", values):
                line = str(row[3])
                is_by_index = any(index in line for index in OF_THOSE_IN_NEED)
                assert is_by_index or not line.startswith("SCAN holdfast_"), line
                assert is_by_index or not line.startswith("SCAN whole"), line
