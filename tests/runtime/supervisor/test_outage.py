"""An outage is said when it begins and when it is over, and not for each of its moments."""

from __future__ import annotations

import logging
import time

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor import outage as module
from holdfast.runtime.supervisor.outage import Outage

FULL = StoreUnavailable("no space to write")


class Clock:
    """Stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    return clock


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "holdfast.worker")
    return caplog


def test_a_full_disk_that_takes_small_writes_is_one_outage(
    clock: Clock, said: pytest.LogCaptureFixture
) -> None:
    outage = Outage(1.0)
    for _ in range(100):
        outage.noted(FULL)
        clock.now += 0.1
        outage.over()
        assert not outage.is_on
        clock.now += 0.1
        outage.settle()

    assert said.text.count("is away") <= 5
    assert said.text.count("is back") == 0
    clock.now += 10
    outage.settle()
    assert said.text.count("is back") == 1
    assert "back after 19.9 s" in said.text


def test_the_end_of_an_outage_is_said_once_it_has_lasted(
    clock: Clock, said: pytest.LogCaptureFixture
) -> None:
    outage = Outage(1.0)
    outage.noted(FULL)
    clock.now += 3
    outage.over()
    outage.settle()
    assert "is back" not in said.text
    clock.now += module._BELIEVED_AFTER
    outage.over()
    outage.over()

    assert said.text.count("is back after 3.0 s") == 1


def test_two_outages_are_said_twice(clock: Clock, said: pytest.LogCaptureFixture) -> None:
    outage = Outage(1.0)
    for _ in range(2):
        outage.noted(FULL)
        clock.now += 1
        outage.over()
        clock.now += 60
        outage.settle()

    assert said.text.count("is away") == said.text.count("is back") == 2


def test_how_long_code_has_gone_on_without_the_store_is_counted_from_its_last_answer(
    clock: Clock,
) -> None:
    outage = Outage(1.0)
    outage.noted(FULL)
    clock.now += 30
    outage.over()
    clock.now += 0.1
    outage.noted(FULL)
    clock.now += 2

    assert outage.lasted == pytest.approx(2.0)


def test_pauses_grow_while_it_comes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    outage = Outage(0.2)
    for _ in range(4):
        outage.noted(FULL)
        outage.over()
    outage.noted(FULL)
    outage.over()
    began = time.monotonic()

    outage.wait()

    assert 0.19 < time.monotonic() - began < 5


def test_a_pause_ends_with_the_outage() -> None:
    outage = Outage(30.0)
    for _ in range(20):
        outage.noted(FULL)
    outage.over()
    began = time.monotonic()

    outage.wait()

    assert time.monotonic() - began < 5
