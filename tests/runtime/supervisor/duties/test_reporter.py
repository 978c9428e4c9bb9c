"""The reporter: what a worker says about its work every so often."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from holdfast.core.outcome import Returned
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.duties.reporter import Reporter
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.task_log import SUMMARY_EVERY, TaskLog
from tests.support.hands import Hands
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import HOST, WORKER


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@on_each_engine
def test_work_is_summed_up_while_there_is_any(
    lab: Lab, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    task_log = TaskLog(lambda: now)
    outage = Outage(1.0)
    finisher = Finisher(
        lab.store,
        hands.ledger,
        outage,
        cast("Any", None),
        worker_id=WORKER,
        kill=lambda child: None,
        put_off=lambda: None,
        task_log=task_log,
    )
    reporter = Reporter(
        lab.store,
        hands.ledger,
        outage,
        worker_id=WORKER,
        hostname=HOST,
        version="1.0",
        tasks=hands.known,
        task_log=task_log,
    )
    done = lab.running()
    lab.send_many(3)
    hands.ended(done, Returned("1"))
    finisher.tick()
    with caplog.at_level(logging.INFO, "holdfast"):
        reporter.tick()
        assert caplog.messages == []
        now += SUMMARY_EVERY
        reporter.tick()
        now += SUMMARY_EVERY
        reporter.tick()
    assert caplog.messages == ["in the last 30 s: 1 completed; 0 running here, 3 waiting"]
