"""The end of a task in its own transaction: its effects and its end commit together."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import ErrorCode, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite


def execute(site: Site, statement: str) -> list[Any]:
    if site.app.config.store.engine == "sqlite":
        # The library of this process, as the app's own connections are.
        import apsw

        connection = apsw.Connection(site.app.config.store.address)
        # The worker writes, too.
        connection.set_busy_timeout(10_000)
        try:
            return [row[0] for row in connection.execute(statement)]
        finally:
            connection.close()
    import psycopg

    with psycopg.connect(site.url, autocommit=True) as other:
        cursor = other.execute(statement.encode())
        return [row[0] for row in cursor] if cursor.description else []


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.evidence")
    site.worker("-c", "2", "--lease", "5").ready()
    execute(site, "CREATE TABLE entries (name text)")
    return site


def entries(site: Site, name: str) -> int:
    found: int = execute(site, f"SELECT count(*) FROM entries WHERE name = '{name}'")[0]
    return found


def test_committed(site: Site) -> None:
    handle = site.send("complete-in", "commit", "committed")
    assert handle.get(20) == ["by my own hand", 1]
    assert entries(site, "committed") == 1
    assert only_attempt(handle).outcome is AttemptOutcome.COMPLETED


def test_with_progress_noted_since_the_transaction_began(site: Site) -> None:
    handle = site.send("complete-in", "noted", "noted")
    assert handle.get(20) == ["by my own hand", 1]
    assert entries(site, "noted") == 1


def test_rolled_back(site: Site) -> None:
    handle = site.send("complete-in", "rollback", "rolled-back")
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.COMPLETION_ROLLED_BACK
    assert entries(site, "rolled-back") == 0


def test_its_process_dies_before_the_commit(site: Site) -> None:
    handle = site.send("complete-in", "die-before-commit", "before")
    assert handle.get(20) == ["by my own hand", 2]
    assert entries(site, "before") == 1
    assert [a.outcome for a in handle.attempts()] == [
        AttemptOutcome.WORKER_FAILURE,
        AttemptOutcome.COMPLETED,
    ]


def test_its_process_dies_after_the_commit(site: Site) -> None:
    handle = site.send("complete-in", "die-after-commit", "after")
    assert handle.get(20) == ["by my own hand", 1]
    # The death of its process must not start it again.
    assert site.send("complete-in", "commit", "next").get(20) == ["by my own hand", 1]
    assert handle.status() is TaskStatus.COMPLETED
    assert entries(site, "after") == 1


def test_it_fails_after_the_commit(site: Site) -> None:
    handle = site.send("complete-in", "raise-after-commit", "raised")
    assert handle.get(20) == ["by my own hand", 1]
    assert site.send("complete-in", "commit", "next").get(20) == ["by my own hand", 1]
    assert handle.status() is TaskStatus.COMPLETED
    assert entries(site, "raised") == 1
    assert len(handle.attempts()) == 1


def test_on_an_async_connection(site: Site) -> None:
    handle = site.send("acomplete-in", "async")
    assert handle.get(20) == "async"
    assert entries(site, "async") == 1
