"""Rows that the store refuses: passed over, and tried again ever less often."""

from __future__ import annotations

import pytest

from holdfast.runtime.supervisor.state import blocked_rows
from holdfast.runtime.supervisor.state.blocked_rows import FIRST_S, LONGEST_S, MOST, RefusedRows

ERROR = ValueError("refused")


class Clock:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(blocked_rows, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_row_is_tried_again_ever_less_often(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    refused = RefusedRows()
    pause = FIRST_S
    for _ in range(12):
        refused.add(17, ERROR, "claim")
        clock.now += pause - 1.0
        assert list(refused.keys) == [17]
        assert refused.keys is refused.keys
        clock.now += 2.0
        assert not refused.keys
        pause = min(pause * 2, LONGEST_S)
    assert len(caplog.records) == 1, "it is named once"


def test_only_those_whose_time_has_come(clock: Clock) -> None:
    refused = RefusedRows()
    refused.add(1, ERROR, "claim")
    clock.now += FIRST_S / 2
    refused.add(2, ERROR, "claim")
    clock.now += FIRST_S / 2
    assert list(refused.keys) == [2]


def test_the_oldest_are_forgotten(clock: Clock) -> None:
    refused = RefusedRows()
    for key in range(MOST + 5):
        refused.add(key, ERROR, "claim")
    assert list(refused.keys) == list(range(5, MOST + 5))
