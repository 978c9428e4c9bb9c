"""When a worker could run a task, and why not."""

from __future__ import annotations

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.supervisor import readiness as module
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.readiness import Readiness


class Clock:
    """Stands where it is put."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    return clock


def test_it_is_ready_once_it_claims_and_until_it_stops(clock: Clock) -> None:
    readiness = Readiness(Outage(1.0), poll=1.0)
    assert readiness.why_not() == "the worker is starting"
    readiness.is_open = True
    assert readiness.why_not() is None
    readiness.is_stopping = True
    assert readiness.why_not() == "the worker is stopping"


def test_it_is_not_while_the_store_is_away_or_silent(clock: Clock) -> None:
    outage = Outage(1.0)
    readiness = Readiness(outage, poll=1.0)
    readiness.is_open = True
    outage.noted(StoreUnavailable("refused"))
    assert "the store has been away" in str(readiness.why_not())
    outage.over()
    assert readiness.why_not() is None
    clock.now += 20
    assert readiness.why_not() == "the store has not answered for 20 s"
    readiness.heard()
    assert readiness.why_not() is None
    # Who looks once a minute is not silent within it.
    slow = Readiness(outage, poll=60.0)
    slow.is_open = True
    clock.now += 100
    assert slow.why_not() is None


def test_it_is_not_while_claims_fail_or_hang(clock: Clock) -> None:
    readiness = Readiness(Outage(1.0), poll=1.0)
    readiness.is_open = True
    readiness.claims()
    readiness.claim_failed()
    assert "the last claim failed" in str(readiness.why_not())
    readiness.claims()
    assert "the last claim failed" in str(readiness.why_not())
    readiness.claimed()
    assert readiness.why_not() is None
    readiness.claims()
    clock.now += 20
    readiness.heard()
    assert readiness.why_not() == "a claim has not been answered for 20 s"
    readiness.claimed()
    readiness.claims()
    readiness.claim_failed()
    # No child has been free since: whether claims still fail, nobody knows.
    clock.now += 20
    readiness.heard()
    assert readiness.why_not() is None
