"""What a worker tells of itself and of the fleet, while its store answers and while it hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.metrics import FleetReading
from holdfast.runtime.supervisor import worker_metrics
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.readiness import Readiness
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.worker_metrics import WorkerMetrics
from tests.support.deadline import until

READING = FleetReading([], {}, {"alive": 1}, 0, 0, 0, 0)


class SlowStore:
    """Answers when it is let."""

    engine = "sqlite"

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.fails = False
        self.asked = 0

    def run(self, _: object) -> FleetReading:
        self.asked += 1
        assert self.answers.wait(20)
        if self.fails:
            raise StoreUnavailable("gone")
        return READING


class NoTasks:
    """A ledger in which there is nothing."""

    class roster:  # noqa: N801 - the name it has
        @staticmethod
        def all() -> list[Any]:
            return []

    @staticmethod
    def counts() -> tuple[int, int]:
        return 0, 0


@pytest.fixture
def store() -> Iterator[SlowStore]:
    made = SlowStore()
    yield made
    made.answers.set()


@pytest.fixture
def metrics(store: SlowStore, monkeypatch: pytest.MonkeyPatch) -> WorkerMetrics:
    monkeypatch.setattr(worker_metrics, "_WAIT", 0.1)
    outage = Outage(1.0)
    readiness = Readiness(outage, 1.0)
    return WorkerMetrics(
        cast("Any", store),
        cast("Ledger", NoTasks()),
        outage,
        readiness,
        worker_id="w",
        version="0",
    )


def tells(metrics: WorkerMetrics) -> bool:
    """Whether it tells of the fleet; of itself it always does."""
    text = metrics.text()
    assert 'holdfast_worker_info{worker="w",version="0",engine="sqlite"} 1' in text
    found = "holdfast_workers{" in text
    assert f"holdfast_worker_store_up {int(found)}\n" in text
    return found


def test_the_store_is_not_asked_again_at_once(metrics: WorkerMetrics, store: SlowStore) -> None:
    assert tells(metrics)
    assert tells(metrics)
    assert store.asked == 1


def test_a_store_that_hangs_is_waited_for_by_one_thread(
    metrics: WorkerMetrics, store: SlowStore
) -> None:
    store.answers.clear()
    assert not tells(metrics)
    assert not tells(metrics)
    assert store.asked == 1
    store.answers.set()
    until(lambda: tells(metrics))
    assert store.asked == 1


def test_what_was_known_is_not_told_for_ever(metrics: WorkerMetrics, store: SlowStore) -> None:
    assert tells(metrics)
    store.answers.clear()
    metrics._stale_at = 0.0
    assert not tells(metrics)


def test_a_store_that_fails_is_asked_again_later(metrics: WorkerMetrics, store: SlowStore) -> None:
    store.fails = True
    assert not tells(metrics)
    assert not tells(metrics)
    assert store.asked == 1


def test_without_another_thread_it_tells_of_itself(
    metrics: WorkerMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    assert not tells(metrics)
