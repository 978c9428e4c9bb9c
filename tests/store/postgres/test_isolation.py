"""Completing a task in a transaction that sees the past: REPEATABLE READ and SERIALIZABLE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from holdfast import Holdfast, StoreUnavailable, TaskStatus
from holdfast.core.records import Answer, ClaimedTask
from holdfast.store.callers.postgres_connection import run_on
from holdfast.store.verbs import evidence
from holdfast.store.verbs.evidence import TaskNote
from holdfast.store.verbs.finish import Completion, complete
from tests.client.conftest import Hands

LEVELS = [
    IsolationLevel.READ_COMMITTED,
    IsolationLevel.REPEATABLE_READ,
    IsolationLevel.SERIALIZABLE,
]


@pytest.fixture
def app(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url) as app:
        yield app


@contextmanager
def transaction(app: Holdfast, level: IsolationLevel) -> Iterator[psycopg.Connection[Any]]:
    """A caller's transaction that has read something, so that it has its snapshot."""
    with psycopg.connect(app.config.store.address) as connection:
        connection.isolation_level = level
        connection.execute("SELECT count(*) FROM pg_class")
        yield connection


def completion(task: ClaimedTask) -> Completion:
    return Completion(task.key, task.token, '"done"')


@pytest.mark.parametrize("level", LEVELS)
def test_a_task_completes_although_it_has_noted_its_progress_since(
    app: Holdfast, level: IsolationLevel
) -> None:
    hands, handle = Hands(app), app.send("any")
    task = hands.take(handle)
    note = TaskNote(task.key, task.token, progress='{"done":1}', output="line\n", heartbeat=True)
    hands.run(evidence.write_notes([note]))
    with transaction(app, level) as connection:
        for _ in range(2):
            assert hands.run(evidence.write_notes([note])) == {task.key}
        landed = run_on(connection, complete([completion(task)]))
        assert landed[task.key].answer is Answer.LANDED
    assert handle.status() is TaskStatus.COMPLETED
    info = handle.info()
    assert info.progress is not None
    assert handle.output() == "line\n" * 3


@pytest.mark.parametrize("level", LEVELS[1:])
def test_what_makes_it_impossible_is_explained(app: Holdfast, level: IsolationLevel) -> None:
    hands, handle = Hands(app), app.send("any")
    task = hands.take(handle)
    with transaction(app, level) as connection:
        handle.cancel()
        with pytest.raises(StoreUnavailable, match=r"roll it back and repeat") as caught:
            run_on(connection, complete([completion(task)]))
        assert caught.value.conflict
        connection.rollback()
        landed = run_on(connection, complete([completion(task)]))
        assert landed[task.key].answer is Answer.LANDED
    assert handle.status() is TaskStatus.COMPLETED
