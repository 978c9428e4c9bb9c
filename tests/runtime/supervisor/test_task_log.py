"""The worker's lines about tasks: what they say, that no value forges one, and how many."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.core.decide import decide
from holdfast.core.identity import short_id
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.outcome import Crashed, Failed, NotBegun, Outcome, RetryAsked, TimedOut
from holdfast.core.payload.failure import describe
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.task_log import SUMMARY_EVERY, TaskLog

TOO_LONG = "the task ran longer than its timeout of 5 s"
KILLED = "its process was killed by SIGSEGV (11)"
ID = bytes.fromhex("0197f3c25b1e7d449a013c5e6f708192")


@dataclass(frozen=True)
class Row:
    id: bytes = ID
    task_name: str = "mail.send"
    queue_name: str = "mail"
    retry_count: int = 0
    max_retries: int = 3
    crash_count: int = 0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said(clock: Clock, caplog: pytest.LogCaptureFixture) -> TaskLog:
    caplog.set_level(logging.INFO, logger="holdfast")
    return TaskLog(clock)


def tell(said: TaskLog, outcome: Outcome, row: Row | None = None, **policy: Any) -> None:
    rules = Policy(**policy)
    row = row or Row(max_retries=rules.max_retries)
    change = decide(row, outcome, rules, lambda: 0.5)
    said.ended(row, 1, outcome, change, change.target, rules, 12_000)


def test_a_retry_that_was_asked_for_without_a_policy_is_counted(
    said: TaskLog, caplog: pytest.LogCaptureFixture
) -> None:
    tell(said, RetryAsked(describe(KeyError("x")), 600_000_000))
    assert caplog.messages[0].endswith(
        "asked for a retry in attempt 1 of 4: KeyError: 'x'; retry 1 of 3 in 10 min"
    )


def test_a_failure_says_what_happened_and_what_comes_next(
    said: TaskLog, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Failed(describe(KeyError("x")), listed=True)
    tell(said, broken, retry=Retry(3, delay=10))
    tell(said, broken)
    tell(said, TimedOut(5))
    tell(said, Crashed(None, 11))
    name = f"mail.send {short_id(ID)}"
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"{name} failed in attempt 1 of 4: KeyError: 'x'; retry 1 of 3 in 10 s"),
        ("ERROR", f"{name} failed in attempt 1 of 1: KeyError: 'x'; FAILED, dead letter"),
        ("ERROR", f"{name} timed out in attempt 1 of 1: {TOO_LONG}; FAILED, dead letter"),
        ("WARNING", f"{name} crashed in attempt 1: {KILLED}; runs again at once (crash 1 of 3)"),
    ]
    fields: dict[str, Any] = caplog.records[0].holdfast  # type: ignore[attr-defined]
    assert fields["event"] == "failed"
    assert fields["task"] == "mail.send"
    assert fields["task_id"] == "0197f3c2-5b1e-7d44-9a01-3c5e6f708192"
    assert (fields["attempt"], fields["max_attempts"], fields["retry_in"]) == (1, 4, 10.0)
    assert fields["exception"] == "builtins.KeyError"


def test_what_never_began_is_not_told(said: TaskLog, caplog: pytest.LogCaptureFixture) -> None:
    tell(said, NotBegun())
    assert not caplog.records


def test_no_value_forges_a_line(said: TaskLog, caplog: pytest.LogCaptureFixture) -> None:
    evil = "x\n2026-11-16 00:00:00.000 worker: all is well\x1b[2J"
    row = Row(task_name=evil)
    outcome = Failed(describe(ValueError(evil)))
    tell(said, outcome, row)
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "\x1b" not in record.getMessage()


def test_a_flood_is_counted_instead_of_told(
    said: TaskLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(332):
        tell(said, Failed(describe(KeyError("x"))))
    tell(said, TimedOut(5))
    assert len(caplog.records) == 21
    said.flush()
    assert len(caplog.records) == 21
    clock.now += 1
    said.flush()
    assert caplog.records[-1].getMessage() == "… and 312 more line(s) of this kind: failed"
    assert len(caplog.records) == 22


def test_work_is_summed_up_every_so_often(
    said: TaskLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def waiting() -> str:
        asked.append(1)
        return "1,000+"

    clock.now += SUMMARY_EVERY
    said.sum_up(Counter(), waiting, 2)
    assert not asked
    said.sum_up(Counter(completed=12_345, failed=3), waiting, 2)
    (record,) = caplog.records
    assert record.getMessage() == (
        "in the last 30 s: 12,345 completed, 3 failed; 2 running here, 1,000+ waiting"
    )
    said.sum_up(Counter(completed=12_346, failed=3), waiting, 2)
    assert len(caplog.records) == 1
    clock.now += SUMMARY_EVERY
    said.sum_up(Counter(completed=12_346, failed=3), waiting, 2)
    assert "30 s: 1 completed; 2 running" in caplog.records[-1].getMessage()


def test_completions_are_for_debugging(said: TaskLog, caplog: pytest.LogCaptureFixture) -> None:
    said.completed(Row(), 1, 12_000)
    assert not caplog.records
    caplog.set_level(logging.DEBUG, logger="holdfast")
    said.completed(Row(), 1, 12_000)
    (record,) = caplog.records
    assert record.getMessage().endswith("completed in attempt 1, 12 ms")
    assert TaskStatus.COMPLETED.value in str(record.__dict__["holdfast"])
