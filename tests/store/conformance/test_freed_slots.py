"""What came free of a limit is counted once, also by a claim that finds no room."""

from __future__ import annotations

from holdfast.core.limiting import queue_scope
from holdfast.core.options.limit import Limit
from tests.store.conformance.test_limits import choose, claim_keys, count, held
from tests.support.stores import Lab
from tests.support.verbs import QUEUE

HERE = queue_scope(QUEUE)


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
