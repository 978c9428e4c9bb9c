"""What tasks are thought to cost."""

from __future__ import annotations

import pytest

from holdfast.runtime.supervisor.state.child_handle import LEAST_US, MOST_TASKS, WINDOW_US
from holdfast.runtime.supervisor.state.costs import Costs, Mix

QUICK, LONG = 10, 400_000


def window(costs: Costs, name: str) -> int:
    return WINDOW_US // costs.of(name)


def test_what_nobody_has_seen_gets_a_window_to_itself() -> None:
    assert window(Costs(), "new") == 1


def test_trust_grows_with_what_was_seen() -> None:
    costs = Costs()
    windows: list[int] = []
    for _ in range(4):
        costs.learn("short", [QUICK] * (windows[-1] if windows else 1))
        windows.append(window(costs, "short"))
    assert windows[0] <= 8 < windows[1] < windows[2] <= windows[3] == MOST_TASKS
    assert costs.of("short") == LEAST_US


def test_slowness_is_believed_at_once_and_speed_slowly() -> None:
    costs = Costs()
    costs.learn("changing", [QUICK] * 1000)
    costs.learn("changing", [LONG])
    assert window(costs, "changing") == 0
    costs.learn("changing", [QUICK] * 5)
    assert window(costs, "changing") == 0


def test_a_mix_costs_what_its_latest_tasks_cost() -> None:
    costs, mix = Costs(), Mix()
    assert mix.typical(costs) == WINDOW_US
    costs.learn("short", [QUICK] * 1000)
    costs.learn("long", [LONG])
    mix.add("short", 100)
    assert mix.typical(costs) == pytest.approx(LEAST_US)
    mix.add("long", 2)
    assert LONG / 10 < mix.typical(costs) < LONG / 4
    mix.add("long", 100)
    assert mix.typical(costs) == pytest.approx(LONG, rel=0.01)
