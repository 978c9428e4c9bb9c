"""Schedules: both engines fire what the model fires, and defects are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.core.errors import StoreError
from holdfast.store import statement
from tests.model.mutants import SCHEDULE_MUTANTS
from tests.model.scheduling import Scheduling
from tests.model.side import Side
from tests.model.test_lifecycle import COMMON
from tests.store.races.stage import Stage
from tests.support.stores import ENGINES, Kind, Labs

QUICK = settings(COMMON, max_examples=30, derandomize=True)
LONG = settings(COMMON, max_examples=1500)
HOW = settings(COMMON, max_examples=200, derandomize=True, phases=[Phase.generate])


def play(labs: Labs, how: settings) -> None:
    class Here(Scheduling):
        @staticmethod
        def open_sides(closing: ExitStack) -> Sequence[Side]:
            return [Side(closing.enter_context(labs.open(kind))) for kind in ENGINES]

    run_state_machine_as_test(Here, settings=how)


@pytest.mark.timeout(600)
def test_both_engines_fire_what_the_model_does(labs: Labs) -> None:
    play(labs, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_both_engines_fire_what_the_model_does_for_long(labs: Labs) -> None:
    play(labs, LONG)


@pytest.mark.parametrize("name", SCHEDULE_MUTANTS)
def test_a_mutant_differs(name: str) -> None:
    mutant = SCHEDULE_MUTANTS[name]
    postgres = statement.text(mutant.statement, "postgresql")
    assert mutant.change(mutant.statement, postgres) != postgres
    sqlite = statement.texts(mutant.statement)
    assert tuple(mutant.change(mutant.statement, text) for text in sqlite) != sqlite


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
def test_where_there_is_no_defect_none_is_noticed(labs: Labs, kind: Kind) -> None:
    with ExitStack() as closing:
        play_on(Stage(closing.enter_context(labs.open(kind)), closing))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
@pytest.mark.parametrize("name", SCHEDULE_MUTANTS)
def test_a_mutant_is_noticed(labs: Labs, kind: Kind, name: str) -> None:
    change = SCHEDULE_MUTANTS[name].change
    with ExitStack() as closing, pytest.raises((AssertionError, StoreError)):
        play_on(Stage(closing.enter_context(labs.open(kind)), closing, change))


def play_on(stage: Stage) -> None:
    class Mutated(Scheduling):
        @staticmethod
        def open_sides(closing: ExitStack) -> Sequence[Side]:
            del closing
            stage.empty("schedules", "schedule_ticks")
            return [Side(stage.lab, stage.store("mutant"))]

    run_state_machine_as_test(Mutated, settings=HOW)
