"""Workers are killed while workflows run: each join runs once, and nothing is stuck.

What became of each step is read from the record that the database keeps of each row's changes, and
from what the code of the steps noted, not from the counts of workflows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from holdfast import IllegalTransition, TaskHandle, WorkflowHandle
from holdfast.core.status import WorkflowStatus
from holdfast.store.op import Op
from holdfast.store.verbs import resubmits, steering, step_audit
from tests.faults import history
from tests.faults.storm import Storm
from tests.support.deadline import passed, until
from tests.support.site import Site
from tests.support.sites import MakeSite

PROGRAM = "tests.faults.programs.flows"
LEASE = 3.0
PATIENCE = 240.0
POLICIES = ("continuing", "fast", "pausing")
BECOMES_FREE = ("PENDING", "WAITING", "SCHEDULED")

Handles = list[TaskHandle[Any]]
Wholes = list[WorkflowHandle[Any]]


def miscounted(site: Site) -> list[bytes]:
    """Scopes whose counts are not what there is."""
    found: list[bytes] = []
    after: bytes | None = bytes(16)
    while after is not None:
        page = site.run(partial(step_audit.look, after))
        found += page.scopes
        after = page.next
    return found


# Diamonds: each join once.


def run_diamonds(site: Site, *, number: int, width: int, kills: int, seed: int) -> None:
    storm = Storm(site, lease=LEASE, seed=seed, workers=3)
    wholes: Wholes = [site.module.diamond.send(f"d{n}", width, 0.0) for n in range(number)]
    steps = number * (width + 2)
    for kill in range(kills):
        wanted = (kill + 1) * steps // (kills + 2)
        until(partial(_done, site, wanted), within=PATIENCE, what=f"{wanted} steps to be done")
        storm.strike()
    for whole in wholes:
        assert whole.get(PATIENCE) == sum(range(width))
    storm.calm()
    names: list[str] = []
    everything: Handles = []
    diamonds: list[Handles] = []
    for n, whole in enumerate(wholes):
        diamonds.append(whole.steps())
        everything += diamonds[-1]
        names += [f"d{n}:top", *(f"d{n}:{place}" for place in range(width)), f"d{n}:join"]
    history.check_rows(site, everything)
    history.check_runs(site, everything, storm.kills, names=names, lease=LEASE)
    history.check_rest(site)
    check_order(site, diamonds)
    assert miscounted(site) == []


def _done(site: Site, wanted: int) -> bool:
    return site.ledger.count("done") >= wanted


def check_order(site: Site, diamonds: Sequence[Handles]) -> None:
    """Each step was released once, after all that it waits for had completed."""
    released: dict[str, list[int]] = {}
    completed: dict[str, int] = {}
    for place, (id, step) in enumerate(history.changes(site)):
        if step.was == "WAITING":
            released.setdefault(id, []).append(place)
        if step.becomes == "COMPLETED":
            completed[id] = place
    for steps in diamonds:
        top, *sides, join = (str(handle.id) for handle in steps)
        for side in sides:
            (once,) = released[side]
            assert once > completed[top]
        (once,) = released[join]
        assert once > max(completed[side] for side in sides), f"{join} came too early"


@pytest.mark.timeout(180)
def test_two_kills_among_six_diamonds(fresh_site: MakeSite) -> None:
    run_diamonds(fresh_site(PROGRAM), number=6, width=12, kills=2, seed=11)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_200_diamonds_of_width_50_and_twenty_kills(fresh_site: MakeSite) -> None:
    run_diamonds(fresh_site(PROGRAM), number=200, width=50, kills=20, seed=12)


# Steered while workers are killed.


def run_steered(site: Site, *, number: int, actions: int, kills: int, seed: int) -> None:
    storm = Storm(site, lease=LEASE, seed=seed, workers=2)
    chance = random.Random(seed)
    wholes: Wholes = [
        getattr(site.module, POLICIES[n % len(POLICIES)]).send(f"m{n}") for n in range(number)
    ]
    for action in range(actions):
        steer(site, chance.choice(wholes), chance)
        passed(0.05)
        if (action + 1) % (actions // kills) == 0:
            storm.strike()
    until(
        partial(all_have_completed, wholes),
        within=PATIENCE,
        what="all workflows to complete, however often they are resubmitted",
    )
    storm.calm()
    for whole in wholes:
        assert whole.get(1) == site.module.MIXED_VALUE
    history.check_rest(site)
    check_moves(site)
    assert miscounted(site) == []


def steer(site: Site, whole: WorkflowHandle[Any], chance: random.Random) -> None:
    """One thing that an operator may do; whose program may end before the steps know of it."""
    id = whole.id.bytes
    cleanup = chance.random() < 0.5
    said: list[Callable[[], Op[Any]]] = [
        lambda: steering.pause(id, by="ada"),
        lambda: steering.resume(id),
        lambda: steering.cancel(id, cleanup=cleanup),
        lambda: resubmits.begin(id),
    ]
    done: list[Callable[[], object]] = [
        whole.pause,
        whole.resume,
        partial(whole.cancel, cleanup=cleanup),
        whole.resubmit,
    ]
    place = chance.randrange(len(said))
    if chance.random() < 0.5:
        site.run(said[place])
        return
    with suppress(IllegalTransition):
        done[place]()


def all_have_completed(wholes: Wholes) -> bool:
    """Resume and resubmit what can be; whether nothing is left."""
    left = 0
    for whole in wholes:
        status = whole.status()
        left += status is not WorkflowStatus.COMPLETED
        with suppress(IllegalTransition):
            if status is WorkflowStatus.PAUSED:
                whole.resume()
            elif status in (WorkflowStatus.FAILED, WorkflowStatus.CANCELLED):
                whole.resubmit()
    return not left


def check_moves(site: Site) -> None:
    """What has completed does not run again, and every claim has a token of its own."""
    for id, path in history.steps(site).items():
        tokens = [step.token for step in path if step.becomes == "RUNNING"]
        assert len(set(tokens)) == len(tokens), f"{id}: a token was used twice: {path}"
        for before, step in pairwise(path):
            assert before.becomes == step.was, f"{id}: {before} then {step}"
        for step in path:
            if step.was in history.TERMINAL:
                assert step.was != "COMPLETED", f"{id} had completed: {path}"
                assert step.becomes in BECOMES_FREE, f"{id}: {step}"
        assert path[-1].becomes in ("COMPLETED", "CANCELLED"), f"{id}: {path}"


@pytest.mark.timeout(300)
def test_two_kills_among_workflows_that_are_steered(fresh_site: MakeSite) -> None:
    run_steered(fresh_site(PROGRAM), number=4, actions=20, kills=2, seed=13)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [14, 15])
def test_twenty_kills_among_workflows_that_are_steered(fresh_site: MakeSite, seed: int) -> None:
    run_steered(fresh_site(PROGRAM), number=30, actions=400, kills=20, seed=seed)
