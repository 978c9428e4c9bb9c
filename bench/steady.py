"""Figures that no other load disturbs: bytes, rows and statements instead of seconds."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import monotonic, sleep

from bench import fill
from bench.figure import Figure, Sizes, at_least, at_most
from bench.lifecycle import BATCH, finish, open_raw, take, work
from bench.place import ENGINES, PgConnection, Place, Places, connect_postgres
from bench.raw import drain
from holdfast.core.records import HEAD
from holdfast.store.verbs import claims, leases

_UPDATES = """
SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'holdfast_tasks'
"""


def heap_only(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """The share of starts and finishes that touch no index."""
    tasks = sizes.steady_batches * BATCH
    with places.postgres() as place, connect_postgres(place) as connection:
        fill.pending(place, tasks)
        fill.settle(place)
        work(place, sizes.steady_batches)
        # A backend reports what it did when it ends, at the latest.
        place.store.close()
        updates, hot = _counted(connection, 3 * tasks)
    # A claim leaves the index of what can be claimed; it is never heap-only.
    yield at_least(
        "heap-only share of start + complete",
        "postgresql",
        hot / (updates - tasks),
        0.85,
        detail=f"{hot:,} of {updates - tasks:,} updates",
    )


def _counted(connection: PgConnection, expected: int) -> tuple[int, int]:
    deadline = monotonic() + 10
    while True:
        rows = connection.execute(_UPDATES).fetchall()
        updates, hot = rows[0]
        if updates >= expected or monotonic() > deadline:
            return updates, hot
        sleep(0.05)


def write_ahead(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Bytes of write-ahead log for one task, against hand-written SQL."""
    batches = max(1, sizes.steady_batches // (sizes.rounds * 5))
    with places.postgres() as ours, places.postgres() as theirs:
        for place in (ours, theirs):
            fill.pending(place, sizes.rounds * batches * BATCH)
        raw = open_raw(theirs)
        found: list[tuple[float, float]] = []
        with connect_postgres(ours) as connection:
            for _ in range(sizes.rounds):
                before = _position(connection)
                work(ours, batches)
                between = _position(connection)
                drain(raw, batches, BATCH)
                after = _position(connection)
                tasks = batches * BATCH
                found.append(((between - before) / tasks, (after - between) / tasks))
        raw.close()
    yield at_most(
        "write-ahead log of a task",
        "postgresql",
        median(mine / other for mine, other in found),
        1.1,
        detail=(
            f"{median(mine for mine, _ in found):,.0f} bytes against "
            f"{median(other for _, other in found):,.0f} raw"
        ),
    )


def _position(connection: PgConnection) -> float:
    rows = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchall()
    return float(rows[0][0])


def statements(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """How often the server is asked for one task, counted by the server."""
    batches = max(1, sizes.steady_batches // 20)
    with places.postgres() as place:
        fill.pending(place, (batches + 1) * BATCH)
        work(place, 1)
        with connect_postgres(place) as connection:
            _log_statements(connection, on=True)
            seen = len(places.server.log)
            work(place, batches)
            _log_statements(connection, on=False)
        said = places.server.log[seen:].splitlines()
    asked = sum(("LOG:  execute " in line or "LOG:  statement: " in line) for line in said)
    # What it was asked to stop logging does not count.
    asked -= sum("log_statement" in line or "pg_reload_conf" in line for line in said)
    yield at_most(
        "statements per task, batches of 100",
        "postgresql",
        asked / (batches * BATCH),
        0.05,
        detail=f"{asked} for {batches * BATCH:,} tasks",
    )


def _log_statements(connection: PgConnection, *, on: bool) -> None:
    connection.execute(f"ALTER SYSTEM SET log_statement = '{'all' if on else 'none'}'")
    connection.execute("SELECT pg_reload_conf()")
    deadline = monotonic() + 10
    wanted = ("all",) if on else ("none",)
    while connection.execute("SHOW log_statement").fetchone() != wanted:
        assert monotonic() < deadline, "the server did not change its log"
        sleep(0.01)


def lease_rows(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Lease rows that are there while a worker drains and its keeper cleans once a second."""
    for engine in ENGINES:
        with places.of(engine) as place:
            fill.pending(place, sizes.steady_batches * BATCH)
            most, allowed = _most_leases(place, sizes.steady_batches)
        yield at_most(
            f"lease rows in {sizes.steady_batches * BATCH:,} tasks, of those allowed",
            engine,
            most / allowed,
            1.0,
            detail=f"at most {most}, allowed {allowed}: one in flight and a second of batches",
        )


def _most_leases(place: Place, batches: int) -> tuple[int, int]:
    spent: list[bytes] = []
    most = busiest = 0
    cleaned_at = monotonic()
    after = HEAD
    for _ in range(batches):
        claimed = take(place, BATCH, after)
        after = claimed.last or HEAD
        if monotonic() - cleaned_at >= 1.0:
            most = max(most, place.store.run(leases.count()))
            busiest = max(busiest, len(spent))
            place.store.run(claims.clean(spent))
            spent.clear()
            cleaned_at = monotonic()
        finish(place, claimed)
        spent.append(claimed.token)
    most = max(most, place.store.run(leases.count()))
    return most, 1 + max(busiest, len(spent))
