"""Eight who fire at the same moment: each tick is fired once, by one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from holdfast.store import statement
from holdfast.store.verbs import schedules, ticks
from tests.model.mutants import Mutant
from tests.support.schedules import schedule
from tests.support.stores import Kind, Labs

SCHEDULERS = 8
ROUNDS = 15


@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
def test_eight_schedulers_fire_each_tick_once(labs: Labs, kind: Kind) -> None:
    with labs.open(kind) as lab, ThreadPoolExecutor(SCHEDULERS) as pool:
        lab.run(schedules.add(schedule(timedelta(seconds=10), overlap="allow")))
        barrier = Barrier(SCHEDULERS)

        def fire(_: int) -> int:
            barrier.wait(30)
            done = lab.store.attempt(lambda: ticks.fire("s"))
            return 0 if done is None else len(done.runs)

        for _ in range(ROUNDS):
            lab.clock.advance(10)
            assert sum(pool.map(fire, range(SCHEDULERS))) == 1
        assert lab.run(schedules.show("s")).run_count == ROUNDS
        assert lab.sql("SELECT count(*), count(DISTINCT schedule_tick) FROM holdfast_tasks") == [
            (ROUNDS, ROUNDS)
        ]


@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
def test_by_hand_and_on_time_at_once(labs: Labs, kind: Kind) -> None:
    """A pause, a backfill and the schedulers meet: no tick is fired twice, and none is lost."""
    with labs.open(kind) as lab, ThreadPoolExecutor(SCHEDULERS) as pool:
        lab.run(schedules.add(schedule(timedelta(seconds=10), overlap="allow", missed="all")))
        begin = lab.run(schedules.show("s")).next_run_at or 0
        barrier = Barrier(SCHEDULERS)

        def act(number: int) -> None:
            barrier.wait(30)
            if number < 3:
                lab.store.attempt(lambda: ticks.backfill("s", begin, lab.clock.now + 1, begin))
            else:
                lab.store.attempt(lambda: ticks.fire("s"))

        for _ in range(ROUNDS):
            lab.clock.advance(10)
            list(pool.map(act, range(SCHEDULERS)))
        assert lab.sql("SELECT count(*), count(DISTINCT schedule_tick) FROM holdfast_tasks") == [
            (ROUNDS, ROUNDS)
        ]


AGAIN = Mutant("take_tick", r"WHERE (holdfast_schedule_ticks\.)?status <> 'fired'")


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_mutant_differs(dialect: statement.Dialect) -> None:
    text = statement.text("take_tick", dialect)
    assert AGAIN.change("take_tick", text) != text


def test_a_tick_that_is_fired_again_is_noticed(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    real = statement.texts
    monkeypatch.setattr(
        statement, "texts", lambda name: tuple(AGAIN.change(name, text) for text in real(name))
    )
    with pytest.raises(AssertionError):
        test_by_hand_and_on_time_at_once(labs, Kind.SQLITE_FILE)
