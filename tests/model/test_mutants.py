"""The model notices every seeded defect, on both engines: it is not blind."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.core.errors import StoreError
from holdfast.store import statement
from tests.model.lifecycle import Lifecycle
from tests.model.machine import Move
from tests.model.mutants import MUTANTS
from tests.model.side import Side
from tests.model.test_lifecycle import COMMON
from tests.store.races.stage import Stage
from tests.support.stores import Kind, Labs

HOW = settings(COMMON, max_examples=400, derandomize=True, phases=[Phase.generate])


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_differs(name: str) -> None:
    """Otherwise the statement was rewritten, and the defect with it."""
    mutant = MUTANTS[name]
    postgres = statement.text(mutant.statement, "postgresql")
    assert mutant.change(mutant.statement, postgres) != postgres
    sqlite = statement.texts(mutant.statement)
    assert tuple(mutant.change(mutant.statement, text) for text in sqlite) != sqlite


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
def test_where_there_is_no_defect_none_is_noticed(labs: Labs, kind: Kind) -> None:
    """The same examples, and the statements as they are."""
    with ExitStack() as closing:
        _play(Stage(closing.enter_context(labs.open(kind)), closing))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(labs: Labs, kind: Kind, name: str) -> None:
    """By the model, or by a constraint of the schema."""
    with ExitStack() as closing, pytest.raises((AssertionError, StoreError)):
        _play(Stage(closing.enter_context(labs.open(kind)), closing, MUTANTS[name].change))


def _play(stage: Stage) -> None:
    class Mutated(Lifecycle):
        seen: ClassVar[Counter[Move]] = Counter()

        @staticmethod
        def open_sides(closing: ExitStack) -> list[Side]:
            del closing
            stage.empty()
            return [Side(stage.lab, stage.store("mutant"))]

    run_state_machine_as_test(Mutated, settings=HOW)
