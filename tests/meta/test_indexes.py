"""No index names a column that running a task changes.

On PostgreSQL such an index takes heap-only updates from nine in ten to none: every start and
every finish would write to all indexes. The catalogue of both engines is read, and compared
with what the statements say they SET. Three columns are exceptions, because an ordinary
success leaves them null: `unique_slot`, `error_code` and `dead`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import apsw
import psycopg
import pytest

from holdfast.core.identity import new_id
from holdfast.core.records import Submission
from holdfast.store import statement
from holdfast.store.op import Op, Rows, Statement, drive
from holdfast.store.open import open_store
from holdfast.store.postgres.binding import PostgresBinder
from holdfast.store.postgres.connection import Opener, OwnConnection
from holdfast.store.settings import parse_url
from holdfast.store.statement import Dialect
from holdfast.store.verbs import claims, finish
from holdfast.store.verbs.submit import submit

T = TypeVar("T")

RUNNING_A_TASK = ("start", "complete")
"""What happens to a task that ends well: these, and nothing else, once it is claimed."""
EXCEPTIONS = {"unique_slot", "error_code", "dead"}

_POSTGRES_COLUMNS = """
SELECT index.indexrelid::regclass::text, attribute.attname
FROM pg_index AS index
JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid
WHERE index.indrelid = 'holdfast_tasks'::regclass
    AND (
        attribute.attnum = ANY (index.indkey)
        OR EXISTS (  -- in an expression or a predicate
            SELECT FROM pg_depend AS needs
            WHERE needs.classid = 'pg_class'::regclass AND needs.objid = index.indexrelid
                AND needs.refobjid = index.indrelid AND needs.refobjsubid = attribute.attnum
        )
    )
"""


def changed(name: str, dialect: Dialect) -> dict[str, str]:
    """The columns of tasks that a statement sets, and to what."""
    text = statement.text(name, dialect)
    found = re.search(r"UPDATE holdfast_tasks(?: AS \w+)?\s+SET\s", text)
    assert found is not None, name
    parts: list[str] = [""]
    depth = 0
    for token in re.findall(r"[()]|\w+|[^\w()]", text[found.end() :]):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and token.upper() in ("FROM", "WHERE"):
            break
        if depth == 0 and token == ",":
            parts.append("")
        else:
            parts[-1] += token
    pairs = (part.split("=", 1) for part in parts)
    return {column.strip(): value.strip() for column, value in pairs}


@pytest.fixture
def in_postgres(postgres_url: str) -> dict[str, set[str]]:
    """Every index on tasks with the columns of its key and its predicate."""
    open_store(parse_url(postgres_url)).close()
    found: dict[str, set[str]] = {}
    with psycopg.connect(postgres_url) as connection:
        for index, column in connection.execute(_POSTGRES_COLUMNS).fetchall():
            found.setdefault(index, set()).add(column)
    return found


@pytest.fixture
def in_sqlite(tmp_path: Path) -> dict[str, set[str]]:
    path = tmp_path / "tasks.db"
    open_store(parse_url(f"sqlite:///{path}")).close()
    found: dict[str, set[str]] = {}
    with closing(apsw.Connection(str(path))) as connection:
        columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(holdfast_tasks)")}
        for _, index, *_ in connection.execute("PRAGMA index_list(holdfast_tasks)").fetchall():
            keys = {str(row[2]) for row in connection.execute(f"PRAGMA index_info({index})")}
            texts = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,))
            text = str(texts.fetchall()[0][0] or "").partition(" ON ")[2].partition("(")[2]
            # An expression has no name among the keys.
            found[str(index)] = (keys - {"None"}) | (columns & set(re.findall(r"\w+", text)))
    return found


def test_the_statements_are_read_rightly() -> None:
    for dialect in ("postgresql", "sqlite"):
        assert set(changed("start", dialect)) >= {"status", "attempt", "heartbeat_at", "updated_at"}
        assert set(changed("complete", dialect)) >= {"status", "claim_token", "result"}


def test_the_catalogues_are_read_rightly(
    in_postgres: dict[str, set[str]], in_sqlite: dict[str, set[str]]
) -> None:
    claim = {"queue_name", "concurrency_key", "priority", "enqueued_at", "id", "ready"}
    assert in_postgres["holdfast_tasks_claim"] == in_sqlite["holdfast_tasks_claim"] == claim
    assert in_postgres["holdfast_tasks_dead"] == in_sqlite["holdfast_tasks_dead"] == {
        "queue_name", "id", "dead",
    }  # fmt: skip
    ours = {name for name in in_sqlite if not name.startswith("sqlite_")}
    assert ours == {name for name in in_postgres if not name.endswith("_pkey")}


def test_notes_leave_the_tasks_row_alone() -> None:
    """So that the task can complete itself in a transaction that has begun before them."""
    for dialect in ("postgresql", "sqlite"):
        text = statement.text("write_notes", dialect)
        assert re.findall(r"(?:UPDATE|INTO) holdfast_\w+", text) == ["INTO holdfast_task_notes"]


@pytest.mark.parametrize("name", RUNNING_A_TASK)
def test_no_index_names_what_running_a_task_changes(
    name: str, in_postgres: dict[str, set[str]], in_sqlite: dict[str, set[str]]
) -> None:
    catalogues: tuple[tuple[Dialect, dict[str, set[str]]], ...] = (
        ("postgresql", in_postgres),
        ("sqlite", in_sqlite),
    )
    for dialect, catalogue in catalogues:
        changes = changed(name, dialect)
        for index, columns in catalogue.items():
            assert not columns & set(changes) - EXCEPTIONS, f"{index} and {name} on {dialect}"


def test_the_exceptions_stay_null_on_success() -> None:
    """Of a task that is not unique: what was null is null, so no index changes."""
    for dialect in ("postgresql", "sqlite"):
        touched = {
            (name, column): value
            for name in RUNNING_A_TASK
            for column, value in changed(name, dialect).items()
            if column in EXCEPTIONS
        }
        assert touched == {
            ("start", "unique_slot"): (
                "CASE WHEN unique_until = 'started' THEN NULL ELSE unique_slot END"
            ),
            ("complete", "unique_slot"): "CASE WHEN unique_until = 'deleted' THEN unique_slot END",
        }


class Server:
    """One transaction on a connection of ours, and how many updates in it were heap-only."""

    def __init__(self, connection: OwnConnection) -> None:
        self._connection = connection
        self._binder = PostgresBinder(None)

    def run(self, op: Op[T]) -> T:
        return drive(op, self._execute)

    def _execute(self, asked: Statement) -> Rows:
        query = self._binder.bind(asked)
        return self._connection.main.execute(query.sql, query.params, binary=True).rows()

    def heap_only(self) -> tuple[int, int]:
        """Heap-only updates of tasks so far, and all of them."""
        rows = self._connection.main.execute(
            b"SELECT pg_stat_get_xact_tuples_hot_updated(oid), pg_stat_get_xact_tuples_updated(oid)"
            b" FROM pg_class WHERE oid = 'holdfast_tasks'::regclass"
        ).rows()
        hot, all_of_them = rows[0]
        return int(hot), int(all_of_them)


@contextmanager
def server(url: str) -> Iterator[Server]:
    settings = parse_url(url)
    open_store(settings).close()
    with closing(Opener(settings).open()) as connection, connection.transaction():
        yield Server(connection)


def _task(**fields: str) -> Submission:
    return Submission(new_id(), "t", 1, "q", 50, "[]", "{}", "sha", 1, **fields)  # type: ignore[arg-type]


def _run_through(server: Server, after_claim: Callable[[], None] = lambda: None) -> None:
    token = new_id()
    claimed = server.run(
        claims.claim(
            claims.Request(
                token=token, worker_id="w", queue="q", known=["t@1"], wanted=1, lease_us=1
            )
        )
    )
    after_claim()
    (task,) = claimed.tasks
    server.run(claims.start([claims.Begin(task.key, token, 1, "p")], hostname="h"))
    server.run(finish.complete([finish.Completion(task.key, token, "null", 1)]))


def test_start_and_complete_are_heap_only(postgres_url: str) -> None:
    """What all this is for, asked of the server: only the claim has touched an index."""
    with server(postgres_url) as one:
        one.run(submit([_task()]))
        claim: list[tuple[int, int]] = []
        _run_through(one, lambda: claim.append(one.heap_only()))
        assert claim == [(0, 1)]
        assert one.heap_only() == (2, 3)


def test_a_unique_task_pays_for_its_slot(postgres_url: str) -> None:
    with server(postgres_url) as one:
        one.run(submit([_task(unique_key="k", unique_slot="k")]))
        _run_through(one)
        assert one.heap_only() == (1, 3)
