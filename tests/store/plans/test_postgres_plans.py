"""The plans of the hot statements on PostgreSQL: on an empty table, and on 200,000 rows.

A worker that was started before the first task keeps the plans that were made for an empty
table that was never analyzed; one bad plan among them costs ten times the speed of all.
Plans are generic, as in our sessions, and come from a connection that the store opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg.adapt import PyFormat, Transformer

from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store.op import At, Statement, Texts
from holdfast.store.open import open_store
from holdfast.store.postgres.binding import PostgresBinder
from holdfast.store.postgres.connection import Opener, OwnConnection
from holdfast.store.settings import parse_url
from holdfast.store.statement import text
from holdfast.store.verbs import inspect, queues
from tests.store.plans import filled
from tests.store.plans.asked import record, statements
from tests.support.postgres import PostgresServer

KEYS = [number.to_bytes(16) for number in range(1, 101)]
ASKED = statements(KEYS)

BY_KEY = "(id = ANY"
WANTED = {
    "claim": {
        "holdfast_tasks_claim": "(ROW(priority, enqueued_at, id) > ROW(",
        "holdfast_tasks_pkey": BY_KEY,
    },
    "claim_horizon": {"holdfast_tasks_claim": "(ROW(priority, enqueued_at, id) > ROW("},
    "limited_candidates": {"holdfast_tasks_claim": "(ROW(priority, enqueued_at, id) > ROW("},
    "keyed_candidates": {"holdfast_tasks_claim": "(queue_name = "},
    "claim_chosen": {"holdfast_tasks_pkey": BY_KEY},
    "mark_slots": {"holdfast_tasks_pkey": BY_KEY},
    "ready_queues": {"holdfast_tasks_claim": "(queue_name = wanted.queue_name)"},
    "start": {"holdfast_tasks_pkey": BY_KEY},
    "statuses": {"holdfast_tasks_pkey": BY_KEY},
    "tasks_by_id": {"holdfast_tasks_pkey": BY_KEY},
    "find_ids": {"holdfast_tasks_pkey": "((id >= "},
    "list_newest": {
        "holdfast_tasks_own": "(ROW(created_at, id) < ROW(",
        "holdfast_tasks_pkey": "(id < ",
    },
    "release": {"holdfast_tasks_pkey": BY_KEY},
    "complete": {"holdfast_tasks_pkey": BY_KEY},
    "end": {"holdfast_tasks_pkey": BY_KEY},
    "lock": {"holdfast_tasks_pkey": BY_KEY},
    "lock_tasks": {"holdfast_tasks_pkey": BY_KEY},
    "free_tasks": {"holdfast_tasks_pkey": BY_KEY},
    "write_notes": {"holdfast_tasks_pkey": BY_KEY},
    "cancel": {"holdfast_tasks_pkey": BY_KEY},
    "count_ended": {"holdfast_tasks_pkey": BY_KEY},
    "promote": {"holdfast_tasks_due": "(due_at <= ", "holdfast_tasks_pkey": BY_KEY},
    "expire": {"holdfast_tasks_expire": "(expire_at <= ", "holdfast_tasks_pkey": BY_KEY},
    "unknown_pending": {
        "holdfast_tasks_claim": "(ROW(priority, enqueued_at, id) > ROW(",
        "holdfast_tasks_pkey": "(id = examined.id)",
    },
    "drop": {"holdfast_tasks_pkey": BY_KEY},
    "leased_tasks": {"holdfast_tasks_pkey": BY_KEY},
    "prunable": {"holdfast_tasks_pkey": "(id > "},
    "audit": {"holdfast_tasks_pkey": "(id > "},
    "deletable": {"holdfast_tasks_pkey": BY_KEY},
    "delete": {"holdfast_tasks_pkey": BY_KEY},
}
"""The indexes of `holdfast_tasks` that a statement uses, and what it looks up in them."""

THE_FIRST = {"next_due"}
"""Reads one entry at the beginning of an index."""


@dataclass(frozen=True)
class Scan:
    """One node that reads a table."""

    kind: str
    table: str | None
    index: str | None
    condition: str

    @property
    def of_tasks(self) -> bool:
        return self.table == "holdfast_tasks" or (self.index or "").startswith("holdfast_tasks_")


@pytest.fixture(scope="module")
def session(postgres_server: PostgresServer) -> Iterator[OwnConnection]:
    """A connection as the store opens it, on a database that nobody analyzes."""
    url = postgres_server.create_database()
    settings = parse_url(url)
    open_store(settings).close()
    with closing(Opener(settings).open()) as connection:
        connection.execute("ALTER TABLE holdfast_tasks SET (autovacuum_enabled = off)")
        yield connection
    postgres_server.drop_database(url)


@pytest.fixture(scope="module")
def on_empty(session: OwnConnection) -> dict[str, list[Scan]]:
    return {name: explain(session, asked) for name, asked in ASKED.items()}


@pytest.fixture(scope="module")
def on_full(session: OwnConnection, on_empty: object) -> dict[str, list[Scan]]:
    """Planned anew on 200,000 rows that were never analyzed."""
    del on_empty
    session.execute(filled.POSTGRES.encode())
    return {name: explain(session, asked) for name, asked in ASKED.items()}


@pytest.fixture(scope="module")
def on_analyzed(session: OwnConnection, on_full: object) -> dict[str, list[Scan]]:
    del on_full
    session.execute("ANALYZE")
    return {name: explain(session, asked) for name, asked in ASKED.items()}


@pytest.fixture(params=["on_empty", "on_full", "on_analyzed"])
def plans(request: pytest.FixtureRequest) -> dict[str, list[Scan]]:
    found: dict[str, list[Scan]] = request.getfixturevalue(request.param)
    return found


def test_every_statement_is_judged() -> None:
    reach_tasks = {name for name in ASKED if "holdfast_tasks" in text(name, "postgresql")}
    assert reach_tasks == set(WANTED) | THE_FIRST


@pytest.mark.parametrize("name", sorted(WANTED))
def test_tasks_are_reached_by_the_intended_indexes(plans: dict[str, list[Scan]], name: str) -> None:
    scans = [scan for scan in plans[name] if scan.of_tasks]
    assert {scan.index for scan in scans if scan.index} == set(WANTED[name]), scans
    for index, condition in WANTED[name].items():
        assert any(scan.index == index and condition in scan.condition for scan in scans), scans


@pytest.mark.parametrize("name", sorted(ASKED))
def test_no_statement_reads_the_table_or_an_index_from_end_to_end(
    plans: dict[str, list[Scan]], name: str
) -> None:
    for scan in plans[name]:
        if scan.of_tasks:
            assert scan.kind != "Seq Scan", scan
            assert scan.index is None or scan.condition or name in THE_FIRST, scan


def test_candidates_are_locked_by_primary_key(plans: dict[str, list[Scan]]) -> None:
    """The partial index on `ready` also offers itself, and would be read whole for each one."""
    looked_up = [scan for scan in plans["claim"] if "(id = examined.id)" in scan.condition]
    assert [scan.index for scan in looked_up] == ["holdfast_tasks_pkey"]


IN_THE_ORDER_OF_AN_INDEX = [
    "claim",
    "claim_horizon",
    "limited_candidates",
    "keyed_candidates",
    "promote",
    "expire",
    "unknown_pending",
    "find_ids",
]


@pytest.mark.parametrize("name", IN_THE_ORDER_OF_AN_INDEX)
def test_what_comes_first_is_read_in_the_order_of_its_index(
    plans: dict[str, list[Scan]], name: str
) -> None:
    """A bitmap has no order: the whole queue would be read and sorted for each claim."""
    kinds = {scan.kind for scan in plans[name] if scan.of_tasks}
    assert kinds <= {"Index Scan", "Index Only Scan"}


def test_the_janitor_asks_for_workflows_one_by_one(plans: dict[str, list[Scan]]) -> None:
    found = [scan for scan in plans["prunable"] if not scan.of_tasks]
    assert [(scan.kind, scan.index) for scan in found] == [
        ("Index Scan", "holdfast_workflows_pkey")
    ]


# (A table that is analyzed while it is empty may be read anyhow.)
@pytest.mark.parametrize("plans", ["on_empty", "on_full"], indirect=True)
def test_the_audit_asks_of_each_step_what_it_waits_for(plans: dict[str, list[Scan]]) -> None:
    """Else each of its pages would read all edges, and all workflows."""
    found = [scan for scan in plans["audit"] if "holdfast_leases" not in (scan.index or "")]
    assert {"holdfast_task_dependencies_child", "holdfast_workflows_pkey"} <= {
        scan.index for scan in found
    }
    assert all(scan.condition for scan in found), found


@pytest.mark.usefixtures("on_analyzed")
def test_a_claim_reads_no_more_than_it_takes(session: OwnConnection) -> None:
    """The 1,000 entries it may examine are read lazily."""
    wanted = 20
    asked = ASKED["claim"]
    params = {**asked.params, "wanted": wanted}
    query = PostgresBinder(None).bind(Statement("claim", params))
    with session.transaction(force_rollback=True):
        # Every third task is known to this worker.
        nodes = list(
            _nodes(_ask(session, b"EXPLAIN (ANALYZE, FORMAT JSON) " + query.sql, query.params))
        )
    examined = next(n for n in nodes if n.get("Alias") == "task" and "Index Name" in n)
    locked = [n for n in nodes if n["Node Type"] == "LockRows"]
    assert examined["Actual Rows"] <= 4 * wanted
    assert sum(n["Actual Rows"] * n["Actual Loops"] for n in locked) == wanted


@pytest.mark.usefixtures("on_analyzed")
def test_a_drop_examines_a_bounded_part_of_a_queue_that_everybody_knows(
    session: OwnConnection,
) -> None:
    asked = ASKED["unknown_pending"]
    params = {**asked.params, "known": Texts(["known@1", "other@1"]), "before": At(2**50)}
    query = PostgresBinder(None).bind(Statement("unknown_pending", params))
    with session.transaction(force_rollback=True):
        plan = _ask(session, b"EXPLAIN (ANALYZE, FORMAT JSON) " + query.sql, query.params)
    examined = next(n for n in _nodes(plan) if n.get("Index Name") == "holdfast_tasks_claim")
    locked = next(n for n in _nodes(plan) if n["Node Type"] == "LockRows")
    assert examined["Actual Rows"] == 1000
    assert locked["Actual Loops"] == 0


@pytest.mark.usefixtures("on_analyzed")
@pytest.mark.parametrize("queue", [None, "q1", "no such queue"])
def test_counting_examines_no_more_than_its_cap(session: OwnConnection, queue: str | None) -> None:
    (asked,) = record(inspect.counts(queue, cap=100), {})
    query = PostgresBinder(None).bind(asked)
    with session.transaction(force_rollback=True):
        plan = _ask(session, b"EXPLAIN (ANALYZE, FORMAT JSON) " + query.sql, query.params)
    scans = [n for n in _nodes(plan) if n.get("Relation Name") == "holdfast_tasks"]
    assert len(scans) >= 5
    for scan in scans:
        assert scan["Node Type"] in ("Index Scan", "Index Only Scan")
        assert scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) <= 100, scan


@pytest.mark.usefixtures("on_analyzed")
def test_listing_queues_examines_no_more_than_is_counted(session: OwnConnection) -> None:
    """Of 7 queues with 50,000 waiting tasks: 100 of each that wait, 100 that are scheduled."""
    (asked,) = record(queues.list_queues(100, few=100, heads=700), {})
    assert examined(session, asked) < 7 * (100 + 100 + 10)
    scans = [scan for scan in explain(session, asked) if scan.of_tasks]
    assert {scan.index for scan in scans} == {"holdfast_tasks_claim", "holdfast_tasks_due_of"}
    assert any("ROW(COALESCE(concurrency_key" in scan.condition for scan in scans)


@pytest.mark.usefixtures("on_analyzed")
def test_counting_dead_letters_examines_no_more_than_is_counted(session: OwnConnection) -> None:
    asked = Statement("dead_counts", {"cap": 100})
    assert examined(session, asked) < 7 * (100 + 10)
    scans = [scan for scan in explain(session, asked) if scan.of_tasks]
    assert {scan.index for scan in scans} == {"holdfast_tasks_dead"}


RARE = "rare"
LISTS = {
    "pending": TaskFilter(status=frozenset({TaskStatus.PENDING}), queue_name=RARE),
    "scheduled": TaskFilter(status=frozenset({TaskStatus.SCHEDULED}), queue_name=RARE),
    "dead": TaskFilter(dead=True, queue_name=RARE),
    "parent": TaskFilter(parent_id=bytes(16)),
}


@pytest.mark.usefixtures("on_analyzed")
@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_of_one_queue_examines_no_entry_of_others(session: OwnConnection, name: str) -> None:
    (asked,) = record(inspect.list_tasks(LISTS[name]), {})[:1]
    assert examined(session, asked) == 0


@pytest.mark.usefixtures("on_analyzed")
def test_counting_one_queue_examines_no_scheduled_task_of_others(session: OwnConnection) -> None:
    (asked,) = record(inspect.counts(RARE), {})
    query = PostgresBinder(None).bind(asked)
    with session.transaction(force_rollback=True):
        plan = _ask(session, b"EXPLAIN (ANALYZE, FORMAT JSON) " + query.sql, query.params)
    for node in _nodes(plan):
        if node.get("Index Name") in ("holdfast_tasks_due", "holdfast_tasks_due_of"):
            assert node["Actual Rows"] + node.get("Rows Removed by Filter", 0) == 0, node


def examined(session: OwnConnection, asked: Statement) -> int:
    """How many entries of tasks a statement looks at, by the plan that our sessions make."""
    query = PostgresBinder(None).bind(asked)
    with session.transaction(force_rollback=True):
        plan = _ask(session, b"EXPLAIN (ANALYZE, FORMAT JSON) " + query.sql, query.params)
    return sum(
        int(node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in _nodes(plan)
        if node.get("Relation Name") == "holdfast_tasks" and node["Actual Loops"]
    )


def explain(session: OwnConnection, asked: Statement) -> list[Scan]:
    """The scans of the generic plan that a session of ours makes for a statement."""
    query = PostgresBinder(None).bind(asked)
    known = Transformer(session.main)
    types = [
        "unknown" if value is None else _type(session, known.get_dumper(value, PyFormat.BINARY).oid)
        for value in query.params
    ]
    head = f"PREPARE asked ({', '.join(types)}) AS " if types else "PREPARE asked AS "
    session.execute(head.encode() + query.sql, prepare=False)
    try:
        nulls = f"({', '.join(['NULL'] * len(types))})" if types else ""
        plan = _ask(session, f"EXPLAIN (FORMAT JSON) EXECUTE asked{nulls}".encode())
    finally:
        session.execute("DEALLOCATE asked", prepare=False)
    return [
        Scan(
            node["Node Type"],
            node.get("Relation Name"),
            node.get("Index Name"),
            node.get("Index Cond", ""),
        )
        for node in _nodes(plan)
        if "Relation Name" in node or "Index Name" in node
        if node["Node Type"] not in ("ModifyTable", "LockRows")
    ]


def _type(session: OwnConnection, oid: int) -> str:
    found = session.execute("SELECT format_type(%s, NULL)", [oid]).fetchone()
    assert found is not None
    return str(found[0])


def _ask(session: OwnConnection, sql: bytes, params: list[Any] | None = None) -> dict[str, Any]:
    rows = session.main.execute(sql, params, prepare=False).rows()
    plan: dict[str, Any] = json.loads(rows[0][0])[0]["Plan"]
    return plan


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
