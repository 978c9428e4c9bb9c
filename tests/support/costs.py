"""What a worker has cost so far, in numbers that a busy machine changes little.

Owns the reading. Statements, transactions and bytes are the database's own account, switches the
system's. What a client does on the same database meanwhile is counted with it, but not on SQLite,
where the worker's process alone is counted.
"""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Self

import psycopg
from psycopg import sql

from tests.support.counted.sitecustomize import FILE
from tests.support.deadline import passed
from tests.support.postgres import PostgresServer
from tests.support.site import Site
from tests.support.worker import WorkerProcess

_ASKED = ("LOG:  execute ", "LOG:  statement: ")


class Costs(NamedTuple):
    """Totals, or what each task has cost."""

    statements: float
    transactions: float
    written: float
    """Bytes: of write-ahead log on PostgreSQL, to the file and its log on SQLite."""
    switches: float
    """How often threads of the supervisor were switched to, or away from."""
    wakeups: float
    """How many of these were waits that came to an end: what it woke for."""
    children: float
    """The wake-ups of the template's and the children's threads."""

    def each(self, before: Self, tasks: int) -> Costs:
        """What each of so many tasks has cost since then."""
        pairs = zip(self, before, strict=True)
        return Costs(*((now - then) / tasks for now, then in pairs))


class CostMeter:
    """Counts one worker; make it before the worker is started, with its `environment`."""

    def __init__(self, site: Site, server: PostgresServer) -> None:
        self._site = site
        self._server = server
        self._counts = site.directory / "counted"
        self._counts.write_bytes(bytes(16))
        folder = Path(__file__).parent / "counted"
        path = f"{folder}:{site.environment['PYTHONPATH']}"
        self.environment = {FILE: str(self._counts), "PYTHONPATH": path}
        if not self._on_sqlite:
            with closing(psycopg.connect(site.url, autocommit=True)) as connection:
                alter = sql.SQL("ALTER DATABASE {} SET log_statement = 'all'")
                connection.execute(alter.format(sql.Identifier(connection.info.dbname)))

    def read(self, worker: WorkerProcess) -> Costs:
        """Until now."""
        statements, transactions, written = (
            self._of_sqlite(worker) if self._on_sqlite else self._of_postgres()
        )
        woken, displaced = _switches({worker.pid})
        children, _ = _switches(worker.descendants())
        return Costs(statements, transactions, written, woken + displaced, woken, children)

    @property
    def _on_sqlite(self) -> bool:
        return self._site.url.startswith("sqlite")

    def _of_sqlite(self, worker: WorkerProcess) -> tuple[int, int, int]:
        statements, transactions = struct.unpack("=QQ", self._counts.read_bytes())
        # Pages are mapped nowhere but in the index of the log: what is written, is written.
        (written,) = (
            int(line.split()[1])
            for line in Path(f"/proc/{worker.pid}/io").read_text().splitlines()
            if line.startswith("wchar")
        )
        return statements, transactions, written

    def _of_postgres(self) -> tuple[int, int, int]:
        # Before anything is asked here, which would be logged as well.
        said = self._server.log
        statements = sum(said.count(words) for words in _ASKED)
        with closing(psycopg.connect(self._site.url, autocommit=True)) as connection:
            # The server adds up what its processes have told it, a second later at the most.
            passed(1.5)
            connection.execute("SELECT pg_stat_clear_snapshot()")
            row = connection.execute(
                "SELECT xact_commit, pg_current_wal_insert_lsn() - '0/0' FROM pg_stat_database"
                " WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        return statements, int(row[0]), int(row[1])


def _switches(pids: set[int]) -> tuple[int, int]:
    """How often threads of these processes waited, and how often they were displaced."""
    found = {"voluntary_ctxt_switches": 0, "nonvoluntary_ctxt_switches": 0}
    for pid in pids:
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            for line in status.read_text().splitlines():
                name, _, number = line.partition(":")
                if name in found:
                    found[name] += int(number)
    return found["voluntary_ctxt_switches"], found["nonvoluntary_ctxt_switches"]
