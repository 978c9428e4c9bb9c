"""What a worker costs the server: five connections, whatever its children do."""

from __future__ import annotations

from pathlib import Path
from typing import LiteralString

import psycopg

from holdfast import Holdfast
from tests.support.deadline import until
from tests.support.pooler import TransactionPooler
from tests.support.postgres import PostgresServer
from tests.support.site import Site

PROMISED = 5
OPEN = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'holdfast'
"""
LEFT = "SELECT count(*) FROM holdfast_tasks WHERE finished_at IS NULL"
LISTENS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN "holdfast_%'
"""


def test_a_worker_behind_a_pooler_that_listens_beside_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.create_database()
    with TransactionPooler.to(url) as pooler:
        site = Site("tests.e2e.programs.executors", pooler.url, tmp_path)
        with psycopg.connect(url, autocommit=True) as observer:
            # It looks by itself too seldom for this test: it has to be told.
            worker = site.worker("-c", "1", "--poll", "60", "--listen-url", url).ready()
            until(lambda: (observer.execute(LISTENS).fetchone() or (0,))[0] == 1)
            with Holdfast(pooler.url, listen_url=url) as app:
                app.send("process").get(timeout=20)
        assert "do not arrive" not in worker.said
        assert "a connection pooler stands before" in worker.said
        site.close()
    postgres_server.drop_database(url)


def test_a_worker_whose_tasks_send_and_wait(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.create_database()
    site = Site("tests.e2e.programs.executors", url, tmp_path)
    most = 0
    with psycopg.connect(url, autocommit=True) as observer:

        def count(query: LiteralString) -> int:
            (found,) = observer.execute(query).fetchone() or (0,)
            return int(found)

        def all_ended() -> bool:
            nonlocal most
            most = max(most, count(OPEN))
            return count(LEFT) == 0

        with Holdfast(url) as app:
            for number in range(40):
                app.send("parent-async", number)
        # Ours are gone, so that all that follow are the worker's.
        until(lambda: count(OPEN) == 0)
        site.worker("-c", "6", "--lease", "5")
        until(all_ended, within=60)
        until(lambda: count(LISTENS) == 1)
    site.close()
    postgres_server.drop_database(url)
    assert 2 <= most <= PROMISED
