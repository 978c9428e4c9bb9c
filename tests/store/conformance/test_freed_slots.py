"""What came free of a limit is counted once, also by a claim that finds no room; and who waits for
it is told, whatever has ended the claim."""

from __future__ import annotations

import pytest

from holdfast.core.limiting import queue_scope, task_scope
from holdfast.core.options.limit import Limit
from holdfast.store.op import Channel, Freed, came_free, understand
from tests.store.conformance.test_hints import Listening
from tests.store.conformance.test_limits import (
    LEAVING,
    choose,
    claim,
    claim_keys,
    count,
    held,
    leave,
)
from tests.support.stores import Lab, on_each_engine
from tests.support.verbs import QUEUE, TASK

HERE, THERE = queue_scope(QUEUE), task_scope(TASK)
BOTH = {(Channel.READY, came_free(HERE)), (Channel.READY, came_free(THERE))}


def test_a_claim_without_room_loses_nothing_that_came_free(lab: Lab) -> None:
    """Two run from before there was a limit of one: when one ends, there is still no room."""
    first, second = lab.running(), lab.running()
    book = choose(lab, HERE, Limit(concurrency=1))
    lab.send(concurrency_key="m")
    assert held(lab) == {HERE: 2}
    lab.complete(first)
    assert count(claim_keys(lab, book, 1)) == 0
    assert held(lab) == {HERE: 1}
    lab.complete(second)
    assert count(claim_keys(lab, book, 1)) == 1
    assert held(lab) == {HERE: 1}


@on_each_engine
@pytest.mark.parametrize("has_key", [False, True], ids=["whole", "key"])
@pytest.mark.parametrize("way", sorted({*LEAVING} - {"complete"}))
def test_who_waits_for_a_slot_is_told_that_one_came_free(lab: Lab, way: str, has_key: bool) -> None:
    """Of a completion the worker says so that ran the task: once for many."""
    lab.send(concurrency_key="k" if has_key else None)
    limit = Limit(per_key=Limit(concurrency=1)) if has_key else Limit(concurrency=1)
    choose(lab, HERE, limit)
    book = choose(lab, THERE, limit)
    (task,) = (claim_keys if has_key else claim)(lab, book).claimed.tasks
    listening = Listening(lab)
    leave(listening, task, way)
    assert listening.heard >= BOTH


@on_each_engine
@pytest.mark.parametrize("way", LEAVING)
def test_of_what_has_no_limit_nothing_is_said(lab: Lab, way: str) -> None:
    listening = Listening(lab)
    leave(listening, lab.claimed(), way)
    assert not any(" " in payload for _, payload in listening.heard)


def test_what_is_said_is_understood() -> None:
    heard = understand(frozenset({came_free(HERE), came_free(THERE, "me"), "!paused", "q"}))
    assert heard.freed == {Freed(HERE, ""), Freed(THERE, "me")}
    assert heard.ready == {"q"}
    assert heard.paused == {"paused"}
