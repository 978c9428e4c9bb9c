"""What the child itself costs: a guard against forgetting, far above what is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.runtime.wire import messages
from tests.support.nursery import Kid, job

pytestmark = pytest.mark.alone

WINDOW, ROUNDS = 256, 80
LIMIT_US = 60


def test_a_short_task_costs_microseconds(kid: Kid) -> None:
    orders = [job("noop") for _ in range(WINDOW)]
    kid.do_all(orders)
    before = _cpu_us(kid.pid)
    for _ in range(ROUNDS):
        kid.say(messages.Run(orders))
        found = 0
        while found < WINDOW:
            found += len(kid.hear(messages.Done).reports)
    assert (_cpu_us(kid.pid) - before) / (WINDOW * ROUNDS) < LIMIT_US


def _cpu_us(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")
