"""Why a worker ends code, and what is then said to have become of the run."""

from __future__ import annotations

from typing import get_args

from holdfast.core.options.policy import Policy
from holdfast.core.outcome import (
    CancelAcknowledged,
    Interrupted,
    StalledBySilence,
    StoppedByShutdown,
    TimedOut,
    Why,
    ended_because,
)


def test_every_reason_to_end_code_has_one_meaning() -> None:
    policy = Policy(timeout=3, max_heartbeat_interval=2)
    assert {why: ended_because(why, policy) for why in get_args(Why)} == {
        "cancel": CancelAcknowledged(),
        "timeout": TimedOut(3),
        "silence": StalledBySilence(2),
        "shutdown": StoppedByShutdown(),
        "lost": Interrupted("its worker lost the lease while it ran"),
    }
