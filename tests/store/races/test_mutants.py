"""The races notice a statement that does not lock, or does not look again (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from holdfast.core.errors import StoreError
from holdfast.store import statement
from tests.model.mutants import Mutant
from tests.store.races import test_dependents, test_leases, test_unique
from tests.store.races.stage import Stage
from tests.store.races.test_inside_statement import claim_meets
from tests.support.stores import Kind, Labs

LOCK = r"FOR (NO KEY )?UPDATE( OF task)?( SKIP LOCKED)?"
RACES: dict[str, tuple[Mutant, Callable[[Stage], None]]] = {
    "a sender does not lock the parent": (
        Mutant("lock_tasks", LOCK),
        test_dependents.test_a_child_is_sent_while_its_parent_ends,
    ),
    "reapers do not lock the lease": (Mutant("expired_lease", LOCK), test_leases.test_two_reapers),
    "the janitor does not lock the task": (
        Mutant("free_tasks", LOCK),
        test_unique.test_prune_meets_resubmit,
    ),
}
CLAIMS = {
    "a claim does not lock": Mutant("claim", LOCK),
    "a claim does not look again": Mutant("claim", r"AND task\.status = 'PENDING'"),
}


@pytest.mark.parametrize("mutant", [*(m for m, _ in RACES.values()), *CLAIMS.values()])
def test_a_mutant_differs(mutant: Mutant) -> None:
    text = statement.text(mutant.statement, "postgresql")
    assert mutant.change(mutant.statement, text) != text


@pytest.mark.slow
@pytest.mark.parametrize("name", RACES)
def test_a_race_is_lost_without_its_lock(labs: Labs, name: str) -> None:
    mutant, race = RACES[name]
    with ExitStack() as closing, pytest.raises((AssertionError, StoreError, ValueError)):
        race(Stage(closing.enter_context(labs.open(Kind.POSTGRES)), closing, mutant.change))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_takes_what_is_gone(labs: Labs, name: str) -> None:
    with pytest.raises((AssertionError, StoreError)):
        claim_meets(labs, "claimed", CLAIMS[name].change)
