"""The values of an operation: what cannot be said by them."""

from __future__ import annotations

from operator import itemgetter

import pytest

from holdfast.store.op import Changes, apart

ONE, OTHER, TOKEN = bytes(16), bytes([1] * 16), bytes([2] * 16)


def test_a_task_stands_in_a_batch_of_changes_once() -> None:
    """PostgreSQL would write the last of two rows and SQLite both."""
    Changes([])
    Changes([(ONE, TOKEN, ()), (OTHER, TOKEN, ())])
    with pytest.raises(ValueError, match="twice"):
        Changes([(ONE, TOKEN, ()), (OTHER, TOKEN, ()), (ONE, OTHER, ())])
    with pytest.raises(ValueError, match="twice"):
        Changes([(7, TOKEN, {"stage": "a"}), (7, TOKEN, {"stage": "b"})])


def test_what_names_a_task_twice_is_taken_apart() -> None:
    """A claim that was lost, and the one that came after it, may end in the same moment."""
    items = [(1, "a"), (2, "b"), (1, "c"), (3, "d"), (1, "e")]
    assert list(apart(items, itemgetter(0))) == [
        [(1, "a"), (2, "b"), (3, "d")],
        [(1, "c")],
        [(1, "e")],
    ]
    assert list(apart(items[:2], itemgetter(0))) == [items[:2]]
    assert list(apart([], itemgetter(0))) == []
