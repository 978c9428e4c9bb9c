"""Claims that do not wait for their own commit, on a server that crashes.

The server's writer sleeps, so what nobody waited for is in memory only and dies with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from holdfast.core.records import LOST, Answer, ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.store import claims, inspect
from holdfast.store.claims import Begin, Child, Request
from holdfast.store.open import open_store
from holdfast.store.settings import parse_url
from tests.support.postgres import PostgresServer
from tests.support.stores import Kind, Lab
from tests.support.verbs import HOST, KNOWN, LEASE_US, PID, PROCESS, QUEUE, WORKER, new_token


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"wal_writer_delay": "10s"}) as server:
        yield server


@pytest.fixture
def lab(server: PostgresServer) -> Iterator[Lab]:
    store = open_store(parse_url(server.create_database()))
    yield Lab(Kind.POSTGRES, store, clock=None)  # type: ignore[arg-type]
    store.close()


def request(wanted: int = 1) -> Request:
    return Request(new_token(), WORKER, QUEUE, [KNOWN], wanted, LEASE_US)


def begins(tasks: Sequence[ClaimedTask]) -> list[Begin]:
    return [Begin(task.key, task.token, PID, PROCESS) for task in tasks]


def crash(server: PostgresServer) -> None:
    server.kill()
    server.start()


def status(lab: Lab, task: ClaimedTask) -> TaskStatus:
    return lab.run(inspect.statuses([task.id]))[task.id]


def leases(lab: Lab) -> set[bytes]:
    with psycopg.connect(lab.store.settings.address) as connection:
        return {token.bytes for (token,) in connection.execute("SELECT token FROM holdfast_leases")}


def claim_ahead(lab: Lab) -> ClaimedTask:
    (task,) = lab.run(claims.turn((), request(), hostname=HOST, begin_now=None)).claimed
    return task


def test_a_claim_that_is_lost_in_a_crash_is_lost_whole(server: PostgresServer, lab: Lab) -> None:
    lab.send()
    task = claim_ahead(lab)
    assert status(lab, task) is TaskStatus.CLAIMED
    crash(server)
    # The writer may have been awake in that moment; then it is there whole.
    kept = status(lab, task) is TaskStatus.CLAIMED
    assert leases(lab) == ({task.token} if kept else set())
    (started,) = lab.start(task)
    assert started == LOST or kept
    assert started.answer is Answer.LANDED or not kept


def test_a_start_makes_its_claim_durable_too(server: PostgresServer, lab: Lab) -> None:
    lab.send()
    task = claim_ahead(lab)
    lab.started(task)
    crash(server)
    assert status(lab, task) is TaskStatus.RUNNING
    assert leases(lab) == {task.token}
    lab.complete(task)
    crash(server)
    assert status(lab, task) is TaskStatus.COMPLETED


def test_a_claim_that_starts_at_once_is_durable(server: PostgresServer, lab: Lab) -> None:
    lab.send()
    turn = claims.turn((), request(), hostname=HOST, begin_now=begins)
    (task,) = lab.run(turn).claimed
    crash(server)
    assert status(lab, task) is TaskStatus.RUNNING
    assert leases(lab) == {task.token}


def test_a_claim_for_a_child_is_durable(server: PostgresServer, lab: Lab) -> None:
    lab.send()
    asked = request()._replace(child=Child(HOST, PID, PROCESS))
    (task,) = lab.run(claims.claim(**asked._asdict(), provisional=True)).tasks
    crash(server)
    assert status(lab, task) is TaskStatus.RUNNING
    assert leases(lab) == {task.token}


def test_a_claim_that_starts_the_last_batch_is_durable(server: PostgresServer, lab: Lab) -> None:
    lab.send_many(2)
    first = claim_ahead(lab)
    turn = claims.turn(begins([first]), request(), hostname=HOST, begin_now=None)
    (second,) = lab.run(turn).claimed
    crash(server)
    assert status(lab, first) is TaskStatus.RUNNING
    assert status(lab, second) is TaskStatus.CLAIMED
    assert leases(lab) == {first.token, second.token}
