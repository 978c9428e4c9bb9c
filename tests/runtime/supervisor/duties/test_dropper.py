"""A task is dropped when the fleet has not known it for long enough, and not before."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from holdfast.core.errors import ConfigError, StoreUnavailable
from holdfast.core.options.retention import Retention
from holdfast.core.payload.codec import to_json
from holdfast.core.status import TaskStatus
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.duties.dropper import Dropper
from holdfast.runtime.supervisor.outage import Outage
from holdfast.store.verbs import queues, workers
from tests.support.stores import Lab, on_each_engine

S = TaskStatus
LEASE = 10.0
AFTER = 100.0
"""`drop_unknown_after` of the worker; its watch is as long."""
WALK = 60.0 * 1.25
"""The longest time between two walks."""


class Watchman:
    """The dropper of one worker, on the store's own clock."""

    def __init__(self, lab: Lab, *, known: Iterable[str] = (), after: float = AFTER) -> None:
        self._lab = lab
        self.outage = Outage(1.0)
        self.duty = Dropper(
            lab.store,
            WorkerOptions(lease=LEASE, drop_unknown_after=after),
            self.outage,
            known=known,
            clock=lambda: lab.clock.now / 1_000_000,
        )

    def work(self, seconds: float) -> None:
        """Do the duty for so long."""
        end = self._lab.clock.now + round(seconds * 1_000_000)
        while self._lab.clock.now < end:
            self._lab.clock.advance(max(self.duty.tick(), 0.05))


def register(lab: Lab, worker: str, *known: str) -> None:
    lab.run(
        workers.register(
            worker,
            hostname="host",
            pid=1,
            version="0",
            lease_us=round(LEASE * 1_000_000),
            queues="[]",
            known=to_json(known),
            settings="{}",
        )
    )


@on_each_engine
def test_what_nobody_knows_is_dropped_from_every_queue(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    strays = [*lab.send_many(2, task_name="gone"), lab.send(task_name="gone", queue_name="other")]
    newer = lab.send(version=2)
    ours = lab.send()
    lab.clock.advance(1)
    watchman = Watchman(lab, known=["t@1"])
    watchman.work(AFTER + 1)
    assert lab.statuses([*strays, newer]) == [S.DROPPED] * 4
    assert lab.status(ours) is S.PENDING
    assert "dropped 4 task(s)" in caplog.text
    assert "3 of gone@1, 1 of t@2" in caplog.text


@on_each_engine
def test_what_has_not_waited_for_so_long_is_not(lab: Lab) -> None:
    watchman = Watchman(lab)
    watchman.work(AFTER + 1)
    young = lab.send()
    later = lab.send(delay_us=round(AFTER * 1_000_000))
    watchman.work(AFTER - 1)
    assert lab.statuses([young, later]) == [S.PENDING, S.SCHEDULED]
    watchman.work(WALK + 1)
    assert lab.statuses([young, later]) == [S.DROPPED, S.SCHEDULED]


@on_each_engine
def test_a_worker_speaks_for_its_tasks_until_it_has_been_gone_for_so_long(lab: Lab) -> None:
    task = lab.send()
    watchman = Watchman(lab)
    watchman.work(AFTER)
    register(lab, "a", "t@1")
    watchman.work(LEASE + AFTER - 1)
    assert lab.status(task) is S.PENDING
    watchman.work(WALK + 2)
    assert lab.status(task) is S.DROPPED


@on_each_engine
def test_one_that_has_stopped_speaks_for_them_no_longer_than_that(lab: Lab) -> None:
    task = lab.send()
    watchman = Watchman(lab)
    watchman.work(AFTER - 1)
    register(lab, "a", "t@1")
    lab.run(workers.stop("a"))
    watchman.work(AFTER - 1)
    assert lab.status(task) is S.PENDING
    watchman.work(WALK + 2)
    assert lab.status(task) is S.DROPPED


def test_a_worker_that_starts_anew_does_not_judge_before_it_has_watched(lab: Lab) -> None:
    task = lab.send()
    lab.clock.advance(10 * AFTER)  # all workers are stopped
    watchman = Watchman(lab)
    watchman.work(AFTER - 1)
    assert lab.status(task) is S.PENDING
    register(lab, "b", "t@1")
    watchman.work(AFTER)
    assert lab.status(task) is S.PENDING


@on_each_engine
@pytest.mark.parametrize("asleep", [False, True])
def test_after_an_outage_the_others_have_time_to_return(lab: Lab, asleep: bool) -> None:
    watchman = Watchman(lab)
    task = lab.send()
    register(lab, "b", "t@1")
    watchman.work(AFTER / 2)
    if asleep:
        lab.clock.advance(2 * AFTER)
    else:
        watchman.outage.noted(StoreUnavailable("it is away"))
        watchman.work(2 * AFTER)
        watchman.outage.over()
    watchman.work(AFTER - 2)
    assert lab.status(task) is S.PENDING
    register(lab, "b", "t@1")
    watchman.work(WALK)
    assert lab.status(task) is S.PENDING


@on_each_engine
def test_a_long_queue_is_walked_to_its_end(lab: Lab) -> None:
    strays: list[bytes] = []
    for _ in range(3):
        lab.send_many(700)
        strays += lab.send_many(600, task_name="gone")
    lab.clock.advance(1)
    Watchman(lab, known=["t@1"]).work(AFTER + 1)
    assert set(lab.statuses(strays)) == {S.DROPPED}
    (queue,) = lab.run(queues.list_queues())
    assert queue.pending == 2100


@pytest.mark.parametrize("after", [0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none(after: float) -> None:
    with pytest.raises(ConfigError, match=r"drop_unknown_after=.* seconds above 0") as caught:
        WorkerOptions(drop_unknown_after=after)
    assert caught.value.option == "drop_unknown_after"


def test_a_time_for_which_workers_are_not_remembered() -> None:
    with pytest.raises(ConfigError, match="workers are remembered for 60 seconds"):
        WorkerOptions(drop_unknown_after=61, retention=Retention(worker_states=60))
    WorkerOptions(drop_unknown_after=61, retention=Retention(worker_states=None))
