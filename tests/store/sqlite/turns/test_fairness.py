"""Who gets how much of the one writer's place. Measured with processes at full speed."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import apsw
import pytest

from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import Start

pytestmark = pytest.mark.alone

SECONDS = 3.0


@pytest.mark.parametrize("drains", [pytest.param(1, marks=pytest.mark.slow), 2, 4])
def test_everyone_gets_a_fair_share(store: SqliteStore, start: Start, drains: int) -> None:
    children = [start("drain", store.path, SECONDS, 100) for _ in range(drains)]
    for child in children:
        assert child.hear() == "ready"
    for child in children:
        child.tell()

    waits: list[float] = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.perf_counter()
        store.run(verbs.put("from somebody who sends now and then"))
        waits.append(time.perf_counter() - began)
    batches = [int(child.hear()) for child in children]

    assert min(batches) >= 0.5 * sum(batches) / drains, batches
    if drains == 1:
        # What is promised; each further one adds a commit of its own to the wait.
        assert statistics.quantiles(waits, n=100)[98] <= 0.060


def test_a_write_costs_little_more_than_sqlite_itself(store: SqliteStore, tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / "raw.db"))
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    for text in verbs.TEXTS["make"]:
        raw.execute(text)
    cursor = raw.cursor()
    body = "x" * 200

    def by_hand() -> None:
        cursor.execute("BEGIN IMMEDIATE")
        now = time.time_ns() // 1_000
        cursor.execute(
            "INSERT INTO notes (body, at) VALUES (?, ?) RETURNING seq", (body, now)
        ).fetchall()
        cursor.execute("COMMIT")

    def ours() -> None:
        store.run(verbs.put(body))

    times: dict[str, list[float]] = {"by hand": [], "ours": []}
    # Turn and turn about, so that whatever else the machine does hits both.
    for _ in range(1_000):
        for name, work in (("by hand", by_hand), ("ours", ours)):
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    raw.close()
    ratio = statistics.median(times["by hand"]) / statistics.median(times["ours"])

    assert ratio >= 0.7


def test_a_turn_costs_little(store: SqliteStore) -> None:
    turns = store._turns
    began = time.perf_counter()
    for _ in range(5_000):
        turns.enter(1)
        turns.leave()
    each = (time.perf_counter() - began) / 5_000

    # Some 3 µs, of the 200 and more that a commit takes.
    assert each < 30e-6
