"""Which sources are looked into: all of a few, and of many only those that were named."""

from __future__ import annotations

import threading

from holdfast.core.records import Position
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.state.queue_source import FEW, SourceList, sources
from holdfast.runtime.wire.messages import KnownTask

TASK = KnownTask("task", 1, "default", "process", None, None)
NOW = 100.0


def of(number: int) -> SourceList:
    found = SourceList(
        sources([QueueChoice(f"t{n}") for n in range(number)], [TASK]), threading.RLock()
    )
    if found.are_many:
        assert found.begin_asking(NOW)
        found.asked([], NOW, NOW)
    return found


def awake(found: SourceList) -> list[str]:
    return [source.queue for source in found.in_turn()]


def test_a_few_are_all_looked_into_at_all_times() -> None:
    few = of(FEW)
    assert not few.are_many
    assert awake(few) == few.queues
    source = few.in_turn()[0]
    source.cursor.start(NOW)
    few.short(source, None, NOW)
    assert awake(few) == few.queues


def test_of_many_a_hint_wakes_only_the_queue_it_names() -> None:
    many = of(1_000)
    assert many.are_many
    assert awake(many) == []
    assert not many.may_find(NOW)
    assert many.wake(["t999", "t3", "nobody's"])
    assert awake(many) == ["t3", "t999"]
    assert not many.wake(["nobody's"])
    assert awake(many) == ["t3", "t999"]


def test_of_many_one_is_left_alone_when_it_is_empty() -> None:
    many = of(1_000)
    many.wake(["t3", "t4"])
    third, fourth = many.in_turn()
    third.cursor.start(NOW)
    many.found(third, Position(1, 1, bytes(16)), NOW)
    fourth.cursor.start(NOW)
    many.short(fourth, None, NOW)
    assert awake(many) == ["t3"]
    many.wake(["t4"])
    assert awake(many) == ["t3", "t4"]
