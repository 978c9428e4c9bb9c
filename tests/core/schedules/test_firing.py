"""What is made of ticks that are due; the table of it is tested on the store, too."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from holdfast.core.schedules.firing import LATE_US, MOST_AT_ONCE, MOST_COUNTED, FiringRule, plan
from holdfast.core.schedules.timing import Cron, Interval, Once, Timing

MINUTE = 60_000_000
RULE = FiringRule(Interval(MINUTE))


def test_nothing_is_due() -> None:
    assert plan(RULE, MINUTE, (), MINUTE - 1, is_live=False).next_us == MINUTE
    assert plan(RULE, None, (), MINUTE, is_live=False).fire == []


def test_exactly_sixty_seconds_are_not_late() -> None:
    rule = replace(RULE, missed="skip", timing=Interval(10 * MINUTE))
    assert plan(rule, 0, (), LATE_US, is_live=False).fire == [0]
    late = plan(rule, 0, (), LATE_US + 1, is_live=False)
    assert (late.fire, late.missed, late.missed_ticks) == ([], 1, [0])


def test_several_that_are_not_late_are_one() -> None:
    rule = replace(RULE, missed="skip", timing=Interval(10_000_000))
    made = plan(rule, 0, (), 25_000_000, is_live=False)
    assert (made.fire, made.missed, made.next_us) == ([20_000_000], 2, 30_000_000)


def test_wait_keeps_the_newest() -> None:
    rule = replace(RULE, overlap="wait")
    first = plan(rule, MINUTE, (), MINUTE, is_live=True)
    assert first.waiting == [MINUTE]
    second = plan(rule, 2 * MINUTE, first.waiting, 2 * MINUTE, is_live=True)
    assert (second.waiting, second.overlapped) == ([2 * MINUTE], [MINUTE])
    # An hour later it is fired all the same.
    last = plan(rule, None, second.waiting, 60 * MINUTE, is_live=False)
    assert (last.fire, last.waiting) == ([2 * MINUTE], [])


def test_all_waits_for_each() -> None:
    rule = replace(RULE, overlap="wait", missed="all", max_missed=1)
    waiting: list[int] = []
    for number in (1, 2, 3):
        waiting = [*plan(rule, number * MINUTE, waiting, number * MINUTE, is_live=True).waiting]
    # They were on time, so it does not matter how many may be missed.
    assert waiting == [MINUTE, 2 * MINUTE, 3 * MINUTE]
    made = plan(rule, 4 * MINUTE, waiting, 4 * MINUTE - 1, is_live=False)
    assert (made.fire, made.waiting) == ([MINUTE], [2 * MINUTE, 3 * MINUTE])


def test_many_are_fired_in_parts() -> None:
    rule = replace(RULE, overlap="allow", missed="all", max_missed=1000)
    made = plan(rule, 0, (), 250 * MINUTE, is_live=True)
    assert (len(made.fire), made.fire[0]) == (MOST_AT_ONCE, 0)
    assert made.waiting[-1] == 250 * MINUTE
    assert len(made.waiting) == 251 - MOST_AT_ONCE


@pytest.mark.parametrize("timing", [Cron("* * * * * *"), Interval(1_000_000)])
def test_years_of_seconds_take_no_time(timing: Timing) -> None:
    began = time.process_time()
    made = plan(FiringRule(timing), 0, (), 10**15, is_live=False)
    assert (made.fire, made.missed) == ([10**15], MOST_COUNTED - 1)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("timing", [Cron("0 0 29 2 *"), Once(5)])
def test_few_ticks_in_a_long_time(timing: Timing) -> None:
    made = plan(FiringRule(timing), 0, (), 10**15, is_live=False)
    assert len(made.fire) == 1
    assert made.missed == (7 if isinstance(timing, Cron) else 0)


def test_start_and_end() -> None:
    rule = replace(RULE, start_us=5 * MINUTE, end_us=7 * MINUTE)
    assert [*rule.after(0)] == [5 * MINUTE, 6 * MINUTE]
    assert rule.count(0, 100 * MINUTE) == 2
    assert rule.newest(0, 100 * MINUTE, 5) == [5 * MINUTE, 6 * MINUTE]


@pytest.mark.parametrize("beginning", [-(2**62), -62_135_596_800_000_000])
def test_a_time_at_the_end_of_the_calendar(beginning: int) -> None:
    made = plan(FiringRule(Cron("0 0 1 1 *")), beginning, (), 0, is_live=False)
    assert (made.fire, made.next_us) == ([0], 31_536_000_000_000)
