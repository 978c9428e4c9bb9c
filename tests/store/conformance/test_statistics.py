"""Counters over time: added up exactly, whenever they are read."""

from __future__ import annotations

import pytest

from holdfast.core.status import TaskStatus
from holdfast.store.verbs import statistics
from holdfast.store.verbs.statistics import CountedStep, Depth, Sent, Tally
from tests.support.stores import MORNING, SECOND, Lab
from tests.support.verbs import QUEUE, TASK

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def said(found: list[CountedStep]) -> list[tuple[object, ...]]:
    return [
        (each.at, each.queue_name, each.task_name, {k: n for k, n in each.counts.items() if n})
        for each in found
    ]


def test_a_series_is_the_same_before_and_after_it_is_folded(lab: Lab) -> None:
    start = lab.clock.move_to(MORNING // HOUR * HOUR + HOUR)
    lab.clock.advance(59.999_999)
    first = Tally.of("w-1", "q", "t", completed=3, wait_us=10, wait_00=3)
    lab.run(statistics.add_tallies([first, Tally.of("w-1", "r", "t", failed=1, run_15=1)]))
    lab.run(statistics.add_tallies([Tally.of("w-2", "q", "u", completed=10**12)]))
    lab.run(statistics.add_tallies([Tally.of("w-1", "q", "t", completed=2)]))
    lab.clock.advance(0.000_001)
    lab.run(statistics.add_tallies([Tally.of("w-1", "q", "t", completed=1)]))

    def read() -> list[list[tuple[object, ...]]]:
        return [
            said(
                lab.run(
                    statistics.series(
                        "minute", step_us=MINUTE, by_queue=True, start=start, until=start + HOUR
                    )
                )
            ),
            said(
                lab.run(
                    statistics.series(
                        "hour", step_us=HOUR, task="t", start=start, until=start + HOUR
                    )
                )
            ),
            said(lab.run(statistics.totals())),
        ]

    before = read()
    assert before[0] == [
        (start, "q", None, {"completed": 5 + 10**12, "wait_us": 10, "wait_00": 3}),
        (start, "r", None, {"failed": 1, "run_15": 1}),
        (start + MINUTE, "q", None, {"completed": 1}),
    ]
    assert before[1] == [
        (start, None, None, {"completed": 6, "wait_us": 10, "wait_00": 3, "failed": 1, "run_15": 1})
    ]
    assert [row[1:3] for row in before[2]] == [("q", "t"), ("q", "u"), ("r", "t")]
    lab.run(statistics.fold(lab.clock.now))
    assert read() == before
    assert lab.sql("SELECT count(*) FROM holdfast_stats") == [(1,)]
    lab.run(statistics.fold(lab.clock.advance(60)))
    lab.run(statistics.fold(lab.clock.now))
    assert read() == before
    assert lab.sql("SELECT count(*) FROM holdfast_stats") == [(0,)]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_counters_written_by_hand_overflow_nothing(number: int, lab: Lab) -> None:
    start = lab.clock.move_to(MORNING // HOUR * HOUR + HOUR)
    for worker in ("w-1", "w-2", "w-3"):
        lab.run(statistics.add_tallies([Tally.of(worker, "q", "t", completed=3, wait_00=3)]))
    lab.run(statistics.add_tallies([Tally.of("w-1", "q", "u", completed=7)]))

    def read() -> list[int]:
        found = lab.run(
            statistics.series("hour", step_us=HOUR, by_task=True, start=start, until=start + HOUR)
        )
        ever = lab.run(statistics.totals())
        assert [each.counts["completed"] for each in ever] == [
            each.counts["completed"] for each in found
        ]
        return [each.counts["completed"] for each in found]

    lab.sql(
        f"UPDATE holdfast_stats SET completed = {number}, run_us = {number} WHERE task_name = 't'"
    )
    expected = [4 * 10**18 if number > 0 else 0, 7]
    assert read() == expected
    lab.run(statistics.fold(lab.clock.advance(60)))
    assert lab.sql("SELECT count(*) FROM holdfast_stats") == [(0,)]
    assert read() == expected
    # What was added up is as damaged as it can be, and is added to.
    lab.sql(f"UPDATE holdfast_stats_series SET completed = {number} WHERE task_name = 't'")
    lab.run(statistics.add_tallies([Tally.of("w-1", "q", "t", completed=1)]))
    assert read() == expected
    lab.run(statistics.fold(lab.clock.advance(60)))
    assert read() == expected


def test_each_worker_counts_in_rows_of_its_own(lab: Lab) -> None:
    for name in ("w-1", "w-2"):
        for _ in range(3):
            lab.run(statistics.add_tallies([Tally.of(name, "q", "t", completed=1)]))
    assert lab.sql("SELECT worker_id, completed FROM holdfast_stats ORDER BY worker_id") == [
        ("w-1", 3),
        ("w-2", 3),
    ]


def test_nothing_to_count_is_no_work(lab: Lab) -> None:
    lab.run(statistics.add_tallies([]))
    lab.run(statistics.fold(lab.clock.now))
    assert lab.run(statistics.totals()) == []


def test_the_turn_is_one_for_all(lab: Lab) -> None:
    turn = lab.run(statistics.take_turn(every_us=5 * SECOND))
    assert turn == (lab.clock.now, None)
    assert lab.run(statistics.take_turn(every_us=5 * SECOND)) is None
    lab.clock.advance(5)
    assert lab.run(statistics.take_turn(every_us=5 * SECOND)) is not None


def test_sends_are_counted_once_whoever_counts_them(lab: Lab) -> None:
    before = lab.clock.now - 1
    margin = 1000 * 366 * 86_400 * SECOND  # the lab's clock is not that of its ids
    lab.send_many(3)
    lab.send(queue_name="other")
    after = lab.clock.now
    lab.clock.advance(1)
    lab.send()
    counted = lab.run(statistics.sends(before, after, margin_us=margin))
    minute = after // MINUTE * MINUTE
    assert counted == [Sent(minute, "other", TASK, 1), Sent(minute, QUEUE, TASK, 3)]
    lab.run(statistics.take_turn(every_us=0))
    assert lab.run(statistics.add_sends(counted, after=None, until=after)) is True
    assert lab.run(statistics.add_sends(counted, after=None, until=after)) is False
    assert [row[1:] for row in said(lab.run(statistics.totals()))] == [
        ("other", TASK, {"sent": 1}),
        (QUEUE, TASK, {"sent": 3}),
    ]
    turn = lab.run(statistics.take_turn(every_us=0))
    assert turn is not None
    assert turn.counted_until == after


def test_depths(lab: Lab) -> None:
    running = lab.task(lab.reach(TaskStatus.RUNNING).id).queue_name
    later = lab.task(lab.reach(TaskStatus.SCHEDULED).id).queue_name
    lab.send_many(2)
    lab.clock.advance(5)
    found = lab.run(statistics.depths())
    assert set(found) == {
        Depth(QUEUE, pending=2, oldest_us=5 * SECOND),
        Depth(running, running=1),
        Depth(later, scheduled=1),
    }
    assert lab.run(statistics.depths(cap=1))[0].pending == 1
    lab.run(statistics.add_depths(found))
    lab.run(statistics.add_depths([Depth(QUEUE, 1, 7)]))
    hours = lab.run(
        statistics.depth_series("hour", start=0, until=lab.clock.now, step_us=HOUR, queue=QUEUE)
    )
    assert hours == [(lab.clock.now // HOUR * HOUR, Depth(QUEUE, 2, 7, oldest_us=5 * SECOND))]


def test_the_turn_to_write_down_depths(lab: Lab) -> None:
    assert lab.run(statistics.take_depth_turn(every_us=60 * SECOND))
    assert not lab.run(statistics.take_depth_turn(every_us=60 * SECOND))


def test_a_program_that_makes_up_names_does_not_fill_the_store(lab: Lab) -> None:
    start = lab.clock.move_to(MORNING // HOUR * HOUR + HOUR)

    def count(*names: tuple[str, str]) -> None:
        lab.run(statistics.add_tallies([Tally.of("w", q, t, completed=1) for q, t in names]))

    def ever() -> dict[tuple[object, object], int]:
        found = lab.run(statistics.totals(most_names=3))
        return {(each.queue_name, each.task_name): each.counts["completed"] for each in found}

    count(("q", "a"), ("q", "b"))
    lab.run(statistics.fold(start + MINUTE, most_names=3))
    count(("q", "a"), ("q", "c"), ("q", "d"), ("r", "e"))
    expected = {("q", "a"): 2, ("q", "b"): 1, ("q", "c"): 1, ("q", "(other)"): 1}
    before = ever()
    assert before == {**expected, ("(other)", "(other)"): 1}
    lab.clock.move_to(start + MINUTE)
    lab.run(statistics.fold(start + MINUTE, most_names=3))
    assert ever() == before
    count(("q", "f"), ("q", "a"))
    assert ever() == {
        **before,
        ("q", "a"): 3,
        ("q", "(other)"): 2,
    }
    # What is kept for some days only is kept by name.
    by_minute = lab.run(
        statistics.series("minute", step_us=MINUTE, by_task=True, start=start, until=start + HOUR)
    )
    assert {each.task_name for each in by_minute} == {"a", "b", "c", "d", "e", "f"}
