"""What code can do inside a task, with the real store behind the supervisor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import apsw
import psycopg
import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.identity import new_id
from holdfast.core.outcome import Failed, Returned
from holdfast.core.records import ClaimedTask, TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.runtime.child.context import current_task
from holdfast.runtime.wire import messages
from holdfast.runtime.wire.messages import Job, Kind
from holdfast.store.open import open_store
from holdfast.store.protocol import Store
from holdfast.store.settings import parse_url
from holdfast.store.verbs import cancel, claims, finish, inspect
from holdfast.store.verbs.submit import submit
from tests.support.nursery import Kid, Nursery, Ran, job
from tests.support.postgres import PostgresServer
from tests.support.relay import Relay
from tests.support.verbs import submission

TARGET = "tests.runtime.apps.storing:app"


class Worker:
    """Claims and starts by hand, as a supervisor would, for children of the application."""

    def __init__(self, url: str) -> None:
        self.store: Store = open_store(parse_url(url))
        self._relay = Relay(self.store)
        self.server = self._relay.server
        self.nursery = Nursery(TARGET, HOLDFAST_URL=url)
        self.nursery.manifest()
        self.sent: list[ClaimedTask] = []

    def fork(self, kind: Kind = "process") -> Kid:
        kid = self.nursery.fork(kind, 10, greeted=False)
        kid.serve(self.server)
        kid.hear(messages.Hello)
        return kid

    def start(self, name: str, *args: Any) -> Job:
        """A job of this task, RUNNING in the store."""
        one = submission(task_name=name, queue_name="mine", args=json.dumps(args))
        self.store.run(submit([one]))
        return self.job(self.take("mine", name))

    def take(self, queue: str, name: str) -> ClaimedTask:
        (task,) = self.store.run(
            claims.claim(
                claims.Request(
                    token=new_id(),
                    worker_id="w",
                    queue=queue,
                    known=[f"{name}@1"],
                    wanted=1,
                    lease_us=60_000_000,
                )
            )
        ).tasks
        self.store.run(claims.start([claims.Begin(task.key, task.token, 1, "c")], hostname="h"))
        return task

    def job(self, task: ClaimedTask) -> Job:
        record = self.store.run(inspect.tasks_by_id([task.id]))[task.id]
        return job(
            task.task_name,
            id=task.id,
            key=task.key,
            token=task.token,
            args=task.args,
            kwargs=task.kwargs,
            attempt=record.attempt,
            queue=task.queue_name,
        )

    @property
    def pending(self) -> int:
        return self.store.run(inspect.counts()).by_status.get(TaskStatus.PENDING, 0)

    def cancel_everything(self) -> None:
        wanted = TaskFilter(status=frozenset({TaskStatus.PENDING}))
        waiting = self.store.run(inspect.list_tasks(wanted)).tasks
        self.store.run(cancel.cancel([task.id for task in waiting]))

    def status(self, task_id: bytes) -> TaskStatus:
        return self.store.run(inspect.statuses([task_id]))[task_id]

    def close(self) -> None:
        self.nursery.close()
        self._relay.close()
        self.store.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('inside') / 'tasks.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database()


@pytest.fixture(scope="module")
def shared(url: str) -> Iterator[Worker]:
    found = Worker(url)
    _ledger(url, "CREATE TABLE ledger (entry text)")
    yield found
    found.close()


@pytest.fixture
def worker(shared: Worker, url: str) -> Worker:
    """One for each engine; every test finds an empty queue."""
    shared.cancel_everything()
    _ledger(url, "DELETE FROM ledger")
    return shared


def done(kid: Kid, order: Job) -> Ran:
    return kid.do_all([order])[0]


def test_outside_a_task_there_is_no_task() -> None:
    with pytest.raises(ConfigError, match="outside a task"):
        current_task()


@pytest.mark.parametrize("name", ["send", "send_many"])
def test_a_task_sends(worker: Worker, name: str) -> None:
    kid = worker.fork()
    order = worker.start(name, 5)
    outcome = done(kid, order)
    assert outcome.kind is Returned, outcome
    ids = [UUID(text).bytes for text in json.loads(outcome.result)]
    records = worker.store.run(inspect.tasks_by_id(ids))
    assert {record.status for record in records.values()} == {TaskStatus.PENDING}
    assert {record.parent_id for record in records.values()} == {order.id}
    assert {record.root_id for record in records.values()} == {order.id}


def test_a_task_waits_for_another(worker: Worker) -> None:
    kid = worker.fork()
    order = worker.start("send_and_get")
    kid.say(messages.Run([order]))
    kid.until(lambda: worker.pending)
    task = worker.take("default", "inner")
    worker.store.run(finish.complete([finish.Completion(task.key, task.token, "42")]))
    assert kid.outcomes(1)[order.slot].result == "42"


def test_coroutines_send_and_wait(worker: Worker) -> None:
    kid = worker.fork("async")
    order = worker.start("send_and_get_async")
    kid.say(messages.Run([order]))
    for _ in range(5):
        kid.until(lambda: worker.pending)
        task = worker.take("default", "inner")
        worker.store.run(finish.complete([finish.Completion(task.key, task.token, "2")]))
    assert kid.outcomes(1)[order.slot].result == "10"


def test_a_task_operates_on_others(worker: Worker) -> None:
    kid = worker.fork()
    sent = json.loads(done(kid, worker.start("send", 1)).result)[0]
    outcome = done(kid, worker.start("operate", sent))
    assert outcome.result == '"CANCELLED"', outcome
    assert worker.status(UUID(sent).bytes) is TaskStatus.CANCELLED


def test_a_process_that_a_task_forks_sends_by_itself(worker: Worker) -> None:
    kid = worker.fork()
    outcome = done(kid, worker.start("send_from_a_fork"))
    assert outcome.result == "0", outcome
    assert worker.pending == 1


def test_a_checkpoint_is_not_made_twice(worker: Worker) -> None:
    kid = worker.fork()
    order = worker.start("pay", True)
    outcome = done(kid, order)
    assert outcome.error.message == "after the charge"
    # Started once more, as after a retry.
    again = _with(order, slot=order.slot + 1000, attempt=2, args="[false]")
    outcome = done(kid, again)
    assert json.loads(outcome.result) == [[], None], outcome


def test_a_checkpoint_of_a_coroutine(worker: Worker) -> None:
    kid = worker.fork("async")
    order = worker.start("pay_async")
    assert json.loads(done(kid, order).result) == [["charge"], {"number": 5}]
    again = _with(order, slot=order.slot + 1000, attempt=2)
    assert json.loads(done(kid, again).result) == [[], {"number": 5}]


def test_a_lost_claim_stops_at_the_next_checkpoint(worker: Worker) -> None:
    kid = worker.fork()
    order = _with(worker.start("pay", False), token=new_id())
    error = done(kid, order).error
    assert error.exception == "holdfast.core.errors.ClaimLost"


def _with(order: Job, **fields: Any) -> Job:
    return Job(**{**{f: getattr(order, f) for f in order.__struct_fields__}, **fields})


@pytest.mark.parametrize(
    ("how", "committed", "status", "entries"),
    [
        ("commit", True, TaskStatus.COMPLETED, 1),
        ("rollback", True, TaskStatus.RUNNING, 0),
        ("raise", False, TaskStatus.RUNNING, 0),
    ],
)
def test_a_task_completes_in_its_own_transaction(
    worker: Worker, url: str, how: str, committed: bool, status: TaskStatus, entries: int
) -> None:
    kid = worker.fork()
    order = worker.start("complete", how)
    outcome = done(kid, order)
    assert outcome.kind is (Returned if committed else Failed), outcome
    assert outcome.report.committed is committed
    record = worker.store.run(inspect.tasks_by_id([order.id]))[order.id]
    assert record.status is status
    if status is TaskStatus.COMPLETED:
        assert record.result == '"by my own hand"'
        (attempt,) = worker.store.run(inspect.attempts(order.id))
        assert attempt.worker_pid == kid.pid
    assert len(_ledger(url, "SELECT * FROM ledger")) == entries


def test_a_lost_claim_cannot_complete(worker: Worker, url: str) -> None:
    kid = worker.fork()
    order = _with(worker.start("complete", "commit"), token=new_id())
    error = done(kid, order).error
    assert error.exception == "holdfast.core.errors.ClaimLost"
    assert worker.status(order.id) is TaskStatus.RUNNING
    assert _ledger(url, "SELECT * FROM ledger") == []


def _ledger(url: str, sql: str) -> list[Any]:
    settings = parse_url(url)
    if settings.engine == "sqlite":
        # The library of this process's own store: two on one file would harm it.
        connection = apsw.Connection(settings.address)
        try:
            return list(connection.execute(sql))
        finally:
            connection.close()
    with psycopg.connect(settings.address, autocommit=True) as other:
        cursor = other.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []
