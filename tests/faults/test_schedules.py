"""Processes that fire are killed, and their clocks are wrong: each tick is fired once.

Which ticks there should be is reckoned here, from the pattern; which were fired is counted from the
tasks that are there, not from what schedules say of themselves.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.core.records import TaskFilter
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.store.op import Mode, Op, Row, Steps
from holdfast.store.open import open_store
from holdfast.store.protocol import Store
from holdfast.store.verbs import inspect, schedules
from tests.support.deadline import passed, until
from tests.support.schedules import schedule
from tests.support.sites import MakeSite
from tests.support.stores import SECOND

ROOT = Path(__file__).parents[2]
SHIFTS = (0, 3600, -3600, 1800)


class Firer:
    """A process that fires."""

    def __init__(self, url: str, shift: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.programs.firer", url, "", str(shift)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

        self._is_ready = False

    def ready(self) -> None:
        """Wait until it has looked for the first time."""
        assert self._process.stdout is not None
        if not self._is_ready:
            assert self._process.stdout.readline() == "ready\n"
        self._is_ready = True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(20) == 0
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def firers(url: str, number: int) -> Iterator[list[Firer]]:
    """So many, with clocks that are right and wrong by turns."""
    running = [Firer(url, SHIFTS[place % len(SHIFTS)]) for place in range(number)]
    try:
        for each in running:
            each.ready()
        yield running
    finally:
        for each in running:
            each.kill()


def definitions(number: int) -> list[ScheduleDefinition]:
    """Several that fire every second or so, so that hardly a moment is without a tick."""
    whens = ("* * * * * *", "*/2 * * * * *", timedelta(seconds=1), timedelta(seconds=1.5))
    return [
        schedule(whens[place % 4], f"s{place}", overlap="allow", missed="all", max_missed=10_000)
        for place in range(number)
    ]


def run(url: str, store: Store, *, processes: int, kills: int, many: int, seed: int) -> None:
    chance = random.Random(seed)
    wanted = definitions(many)
    begins = {each.name: store.run(schedules.add(each)).next_run_at or 0 for each in wanted}
    with firers(url, processes) as running:
        for _ in range(kills):
            place = chance.randrange(len(running))
            passed(chance.uniform(0.0, 0.6))
            running[place].kill()
            running[place] = Firer(url, chance.choice(SHIFTS))
        for each in running:
            each.ready()
        until_us = store.run(_now())
        until(lambda: _all_fired(store, until_us), within=60, what="what was due to be fired")
        for each in running:
            each.stop()
        running.clear()
    fired: dict[str, list[int]] = {}
    for name, tick in store.run(_ticks()):
        fired.setdefault(str(name), []).append(int(tick))
    for known in wanted:
        ticks = fired[known.name]
        twice = [tick for tick, times in Counter(ticks).items() if times > 1]
        assert twice == [], known.name
        expected = list(known.rule.until(begins[known.name] - 1, max(ticks)))
        assert sorted(ticks) == expected, known.name
        assert max(ticks) >= until_us - 2 * SECOND
        assert store.run(schedules.show(known.name)).run_count == len(ticks)


def _now() -> Op[int]:
    return Op(schedules.clock(), Mode.READ, "now")


def _ticks() -> Op[list[Row]]:
    def steps() -> Steps[list[Row]]:
        found: list[Row] = []
        before: bytes | None = None
        while True:
            # The tasks, and not the rows of the ticks.
            page = yield from inspect.list_tasks(TaskFilter(), before=before, limit=1000)
            found += [(task.schedule_name, task.schedule_tick) for task in page.tasks]
            before = page.next
            if before is None:
                return found

    return Op(steps(), Mode.READ, "ticks")


def _all_fired(store: Store, until_us: int) -> bool:
    found = store.run(schedules.list_schedules())
    return all((each.next_run_at or 0) > until_us and not each.has_waiting for each in found)


@pytest.mark.timeout(180)
def test_four_processes_four_kills_and_wrong_clocks(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.faults.programs.plain")
    store = open_store(site.app.config.store)
    try:
        run(site.url, store, processes=4, kills=4, many=8, seed=1)
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [2, 3])
def test_eight_processes_twenty_kills_and_wrong_clocks(fresh_site: MakeSite, seed: int) -> None:
    site = fresh_site("tests.faults.programs.plain")
    store = open_store(site.app.config.store)
    try:
        run(site.url, store, processes=8, kills=20, many=40, seed=seed)
    finally:
        store.close()
