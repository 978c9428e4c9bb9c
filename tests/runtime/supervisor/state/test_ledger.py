"""What the ledger makes of claims."""

from __future__ import annotations

from holdfast.core.records import ClaimedTask
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.supervisor.state.ledger import Ledger
from tests.support.verbs import new_token


def claimed(key: int, token: bytes) -> ClaimedTask:
    return ClaimedTask(
        key, bytes(16), "t", 1, "q", 50, 0, "[]", "{}", None, 0, 0, 0, 0, None,
        None, None, None, None, None, None, None, token,
    )  # fmt: skip


def test_a_task_that_is_claimed_again_is_held_once() -> None:
    """It was taken from us, and we have not heard of it yet; the rest of its lease is ours."""
    ledger, old, new = Ledger(WorkerOptions(), []), new_token(), new_token()
    ledger.hold_claimed([claimed(key, old) for key in (1, 2, 3)])
    ledger.hold_claimed([claimed(2, new)])
    assert ledger.known_keys() == {1, 2, 3}
    assert ledger._tokens == {old: 2, new: 1}
    ledger.hold_claimed([claimed(1, new), claimed(3, new)])
    assert ledger.tokens() == [new]
    assert ledger.take_spent() == {old}
    ledger.stop_accepting()
    assert [(task.key, task.token) for task in ledger.take_stale()] == [
        (2, new),
        (1, new),
        (3, new),
    ]
