"""The plans of the hot statements on SQLite: empty, at 200,000 rows, and analyzed.

Both libraries plan for themselves, and the standard one is older. On connections as the store
opens them: what these are told about planning is part of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import apsw
import pytest

from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store import statement
from holdfast.store.open import open_store
from holdfast.store.settings import SqliteDriver, parse_url
from holdfast.store.sqlite.binding import prepare
from holdfast.store.sqlite.drivers.driver import load
from holdfast.store.verbs import inspect, queues
from tests.store.plans import filled
from tests.store.plans.asked import record, statements

ASKED = statements(list(range(1, 101)))

BY_KEY = "USING INTEGER PRIMARY KEY (rowid=?)"
BY_ID = "USING INDEX sqlite_autoindex_holdfast_tasks_1 (id=?)"
IN_ORDER = (
    "USING INDEX holdfast_tasks_claim "
    "(queue_name=? AND <expr>=? AND (priority,enqueued_at,id)>(?,?,?))"
)
WANTED = {
    "claim": {IN_ORDER, BY_KEY},
    "claim_horizon": {IN_ORDER},
    "limited_candidates": {IN_ORDER},
    "keyed_candidates": {
        "USING INDEX holdfast_tasks_claim (queue_name=? AND <expr>>?)",
        "USING INDEX holdfast_tasks_claim (queue_name=? AND <expr>=?)",
        BY_KEY,
    },
    "claim_chosen": {BY_KEY},
    "mark_slots": {BY_KEY},
    "ready_queues": {"USING INDEX holdfast_tasks_claim (queue_name=?)"},
    "start": {BY_KEY},
    "release": {BY_KEY},
    "complete": {BY_KEY},
    "end": {BY_KEY},
    "lock": {BY_KEY},
    "free_tasks": {BY_KEY},
    "write_notes": {BY_KEY},
    "leased_tasks": {BY_KEY},
    "cancel": {BY_ID},
    "count_ended": {BY_ID},
    "lock_tasks": {BY_ID},
    "statuses": {BY_ID},
    "tasks_by_id": {BY_ID, BY_KEY},
    "find_ids": {"USING COVERING INDEX sqlite_autoindex_holdfast_tasks_1 (id>? AND id<?)"},
    "list_newest": {
        "USING COVERING INDEX holdfast_tasks_own ((created_at,id)<(?,?))",
        "USING INDEX sqlite_autoindex_holdfast_tasks_1 (id<?)",
        BY_ID,
    },
    "drop": {BY_ID},
    "deletable": {BY_ID},
    "promote": {"USING INDEX holdfast_tasks_due (due_at<?)", BY_KEY},
    "next_due": {"USING INDEX holdfast_tasks_due (due_at>?)"},
    "expire": {"USING INDEX holdfast_tasks_expire (expire_at<?)", BY_KEY},
    "unknown_pending": {IN_ORDER},
    "prunable": {"USING INDEX sqlite_autoindex_holdfast_tasks_1 (id>?)"},
    "audit": {"USING INDEX sqlite_autoindex_holdfast_tasks_1 (id>?)"},
    "delete": {BY_KEY},
}
"""How a statement reaches tasks."""

NAMES = ("holdfast_tasks", "task", "held", "head")
"""What the statements call the table of tasks."""

LIBRARIES: Final[tuple[SqliteDriver, ...]] = ("apsw", "sqlite3")
Explain: TypeAlias = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "tasks.db"
    open_store(parse_url(f"sqlite:///{path}")).close()
    return path


@pytest.fixture(scope="module")
def full(path: Path) -> Path:
    """A copy with 200,000 rows."""
    copied = path.with_name("full.db")
    copied.write_bytes(path.read_bytes())
    connection = apsw.Connection(str(copied))
    connection.execute(filled.SQLITE)
    connection.close()
    return copied


@pytest.fixture(scope="module")
def analyzed(full: Path) -> Path:
    copied = full.with_name("analyzed.db")
    copied.write_bytes(full.read_bytes())
    connection = apsw.Connection(str(copied))
    connection.execute("ANALYZE")
    connection.close()
    return copied


@pytest.fixture(params=["path", "full", "analyzed"])
def file(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=LIBRARIES)
def explain(request: pytest.FixtureRequest, file: Path) -> Iterator[Explain]:
    """The lines of a statement's plan, by one of the libraries."""
    with closing(load(request.param).open(str(file), 0.0)) as connection:

        def explain(name: str) -> list[str]:
            lines: list[str] = []
            for text in statement.texts(name):
                prepared = prepare(text)
                values = (None,) * len(prepared.names)
                found = connection.execute(f"EXPLAIN QUERY PLAN {prepared.sql}", values)
                lines += [str(row[3]) for row in found]
            return lines

        yield explain


def test_every_statement_is_judged() -> None:
    reach_tasks = {name for name in ASKED if "holdfast_tasks" in statement.text(name, "sqlite")}
    assert reach_tasks == set(WANTED)


def test_tasks_are_reached_by_the_intended_indexes(explain: Explain) -> None:
    for name, wanted in WANTED.items():
        reached = {
            how
            for line in explain(name)
            for verb, table, how in [_parts(line.removesuffix(" LEFT-JOIN"))]
            if verb == "SEARCH" and table in NAMES and "VIRTUAL" not in how
        }
        assert reached == wanted, name


def test_no_statement_reads_all_tasks(explain: Explain) -> None:
    for name in ASKED:
        for line in explain(name):
            verb, table, how = _parts(line)
            assert not (verb == "SCAN" and table in NAMES and "VIRTUAL" not in how), (name, line)


def test_claims_need_no_sorting(explain: Explain) -> None:
    for name in ("claim", "claim_horizon", "promote", "expire", "prunable", "unknown_pending"):
        assert not [line for line in explain(name) if "TEMP B-TREE" in line], name


@pytest.mark.parametrize("queue", [None, "q1", "no such queue"])
def test_counting_examines_no_more_than_its_cap(analyzed: Path, queue: str | None) -> None:
    """It takes some ten instructions for each of 500 rows, and there are 200,000."""
    connection = load("apsw").open(str(analyzed), 0.0)
    steps = count()
    connection._raw.set_progress_handler(lambda: next(steps) < 0, 1)
    prepared = prepare(*statement.texts("counts"))
    given = {"cap": 100, "queue_name": queue}
    rows = connection.execute(prepared.sql, [given[name] for name in prepared.names])
    found = {kind: number for kind, number, *_ in rows}
    connection.close()
    assert found["newest"] == found["failed"] == 100
    assert found["due"] == (0 if queue == "no such queue" else 100)
    assert next(steps) < 500 * 50


@pytest.mark.parametrize("which", ["full", "analyzed"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_listing_queues_examines_no_more_than_is_counted(
    which: str, library: SqliteDriver, request: pytest.FixtureRequest
) -> None:
    """Some ten instructions for each of 200 entries of 7 queues; 50,000 tasks are waiting."""
    path = request.getfixturevalue(which)
    (asked,) = record(queues.list_queues(100, few=100, heads=700), {})
    prepared = prepare(*statement.texts("list_queues"))
    steps = count()
    connection = load(library).open(str(path), 0.0)
    connection._raw.set_progress_handler(lambda: next(steps) < 0, 1)
    found = connection.execute(prepared.sql, [asked.params[name] for name in prepared.names])
    connection.close()
    assert [(row[0], row[3], row[5]) for row in found] == [(f"q{n}", 100, 100) for n in range(7)]
    assert next(steps) < 7 * 3 * 100 * 15


RARE = "rare"
LISTS = {
    "pending": TaskFilter(status=frozenset({TaskStatus.PENDING}), queue_name=RARE),
    "scheduled": TaskFilter(status=frozenset({TaskStatus.SCHEDULED}), queue_name=RARE),
    "dead": TaskFilter(dead=True, queue_name=RARE),
    "parent": TaskFilter(parent_id=bytes(16)),
}


@pytest.mark.parametrize("name", sorted(LISTS))
@pytest.mark.parametrize("which", ["full", "analyzed"])
def test_a_list_of_one_queue_examines_no_entry_of_others(
    name: str, which: str, request: pytest.FixtureRequest
) -> None:
    store = open_store(parse_url(f"sqlite:///{request.getfixturevalue(which)}"))
    (asked,) = record(inspect.list_tasks(LISTS[name]), {})[:1]
    connection = load("apsw").open(str(request.getfixturevalue(which)), 0.0)
    steps = count()
    connection._raw.set_progress_handler(lambda: next(steps) < 0, 1)
    prepared = prepare(*statement.texts("list_tasks"))
    plain = {
        **asked.params,
        "before": "f" * 36,
        "statuses": json.dumps(list(asked.params["statuses"])),
    }
    found = connection.execute(prepared.sql, [plain[name] for name in prepared.names])
    connection.close()
    store.close()
    assert found == []
    assert next(steps) < 10_000, "each entry would take some ten, and others have 50,000"


def _parts(line: str) -> tuple[str, str, str]:
    verb, _, rest = line.partition(" ")
    table, _, how = rest.partition(" ")
    return verb, table, how
