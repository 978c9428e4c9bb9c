"""What code declares of limits: in force at once, but for an older version beside a newer one."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.limiting import LimitBook, task_scope
from holdfast.core.options.limit import Limit
from holdfast.store.verbs import declared_limits, limits, workers
from tests.support.schedules import register
from tests.support.stores import Lab


def choose(lab: Lab, scope: str, *given: Limit) -> LimitBook:
    lab.run(limits.choose(scope, given))
    return lab.run(limits.book())


def declare(lab: Lab, given: Sequence[Limit], worker: str | None = None) -> LimitBook:
    """What a worker does at its start, and from time to time if others had it their way."""
    return lab.run(declared_limits.declare({"t": given}, worker_id=worker)).book


def test_code_declares_and_an_operator_overrides(lab: Lab) -> None:
    declared = (Limit(concurrency=3),)
    book = declare(lab, declared)
    assert book.limits == {task_scope("t"): declared}
    assert declare(lab, declared).version == book.version
    chosen = choose(lab, task_scope("t"), Limit(concurrency=1))
    assert chosen.limits == {task_scope("t"): (Limit(concurrency=1),)}
    assert declare(lab, declared).version == chosen.version
    assert choose(lab, task_scope("t")).limits == {task_scope("t"): declared}
    assert declare(lab, ()).limits == {}


def test_two_versions_side_by_side_do_not_take_turns(lab: Lab) -> None:
    old, new = (Limit(concurrency=3),), (Limit(concurrency=1),)
    for worker in ("w1", "w2", "w3"):
        register(lab, worker)
    assert declare(lab, old, "w1").limits == {task_scope("t"): old}
    assert declare(lab, new, "w2").limits == {task_scope("t"): new}
    # One with the old code starts anew, and asks again: the new limits hold, and nothing changes.
    version = lab.run(limits.book()).version
    for worker in ("w1", "w3", "w1"):
        done = lab.run(declared_limits.declare({"t": old}, worker_id=worker))
        assert (done.yielded, done.book.version) == (["t"], version)
        assert done.book.limits == {task_scope("t"): new}
    # A step back: the last worker with the new code goes.
    lab.run(workers.stop("w2"))
    assert declare(lab, old, "w1").limits == {task_scope("t"): old}
    # The new code comes again: it has been seen before, and the old one is live.
    register(lab, "w4")
    assert declare(lab, new, "w4").limits == {task_scope("t"): old}
    lab.clock.advance(60)
    assert declare(lab, new, "w4").limits == {task_scope("t"): new}


def test_a_limit_that_the_new_code_has_no_more(lab: Lab) -> None:
    old = (Limit(concurrency=3),)
    for worker in ("w1", "w2"):
        register(lab, worker)
    declare(lab, old, "w1")
    assert declare(lab, (), "w2").limits == {}
    assert declare(lab, old, "w1").limits == {}
    assert lab.run(limits.list_rules()) == []
    lab.run(workers.stop("w2"))
    assert declare(lab, old, "w1").limits == {task_scope("t"): old}
    # And one that only the new code has.
    newer = (Limit(concurrency=7),)
    register(lab, "w5")
    assert declare(lab, newer, "w5").limits == {task_scope("t"): newer}
    assert declare(lab, (), "w1").limits == {task_scope("t"): newer}


def test_what_is_no_declaration_declares_nothing(lab: Lab) -> None:
    old, new = (Limit(concurrency=3),), (Limit(concurrency=1),)
    for worker in ("w1", "w2"):
        register(lab, worker)
    declare(lab, old, "w1")
    declare(lab, new, "w2")
    for text in ("nope", "[1]", '{"t": 1}', "{"):
        lab.sql("UPDATE holdfast_workers SET limits = :said", said=text)
        lab.sql("UPDATE holdfast_limits SET seen = :said", said=text)
        # Nobody is known to declare what holds, so whoever says something has it.
        first, second = (old, "w1"), (new, "w2")
        if lab.run(limits.book()).limits == {task_scope("t"): old}:
            first, second = second, first
        assert declare(lab, *first).limits == {task_scope("t"): first[0]}
        assert declare(lab, *second).limits == {task_scope("t"): first[0]}
