"""When urgent tasks are looked for. (What is claimed when: `duties/test_claimer.py`.)"""

from __future__ import annotations

from math import inf
from time import monotonic

from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.state.costs import SHORT_US
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import QueueSource, sources
from holdfast.runtime.supervisor.state.turn_choice import TurnChoice
from holdfast.runtime.wire.messages import KnownTask

TASKS = [KnownTask("t", 1, "q", "process", None, None)]


def choice(*queues: str) -> tuple[TurnChoice, list[QueueSource]]:
    """One over these queues, of which the first is deep."""
    found = sources([QueueChoice(queue) for queue in queues], TASKS)
    ledger = Ledger(WorkerOptions(), TASKS, found)
    ledger._placement.costs.learn("t", [10 * SHORT_US] * 100)
    found[0].is_deep = True
    ledger._choice.set_reserve(monotonic())
    return ledger._choice, found


def test_nobody_looks_without_a_hint() -> None:
    chosen, _ = choice("q")
    assert chosen.until_look(monotonic()) == inf
    assert chosen.begin_look(monotonic()) == []
    assert chosen.heard()
    assert not chosen.heard(), "once is enough to wake the claimer"
    assert chosen.until_look(monotonic()) == 0.0


def test_after_a_look_there_is_a_rest() -> None:
    chosen, found = choice("q")
    chosen.heard()
    assert found[0] in chosen.begin_look(monotonic())
    chosen.looked(found[0], 1, 0.01)
    chosen.heard()
    # Ten times as long as the look took.
    assert 0.05 < chosen.until_look(monotonic()) <= 0.09


def test_where_nothing_is_deep_there_is_nothing_to_look_for() -> None:
    chosen, found = choice("q")
    found[0].is_deep = False
    chosen.set_reserve(monotonic())
    assert chosen.heard()
    assert chosen.heard(), "every hint wakes the claimer"
    assert chosen.begin_look(monotonic()) == []
